"""Routes that tell about the service: whether it lives, takes requests, is well, and its metrics."""

from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from prme_ray import __version__
from prme_ray.http.bodies import HealthBody, StateBody
from prme_ray.http.openapi import errors_of
from prme_ray.http.service import Admin, Bearer, json_response, service_of
from prme_ray.keys import Permission

__all__ = ["router"]

router = APIRouter(tags=["operations"])


@router.get("/livez", responses={200: {"model": StateBody}})
async def livez() -> Response:
    """Say that the process lives; nothing is looked at."""
    return json_response(b'{"status":"ok"}')


@router.get("/readyz", responses={200: {"model": StateBody}, **errors_of(503)})
async def readyz(request: Request) -> Response:
    """Say whether requests can be taken: the memory is open and the keys can be read."""
    service = service_of(request)
    service.opened()
    service.access.refresh()
    if service.ready is not None:
        service.ready()
    return json_response(b'{"status":"ok"}')


@router.get("/v1/health", responses={200: {"model": HealthBody}, **errors_of(401, 429, 503)})
async def health(request: Request, bearer: Bearer) -> Response:
    """Say status and version to everybody, and the state of the store to keys with ``memory:admin``."""
    service = service_of(request)
    said: dict[str, Any] = {"status": "ok", "version": __version__}
    if service.access.open or bearer is not None:
        identity = service.access.identify(None if bearer is None else bearer.credentials)
        if Permission.ADMIN in identity.permissions:
            details = (await service.run(request, lambda memory: memory.health())).to_dict()
            said |= {"status": "ok" if details["healthy"] else "unhealthy", "details": details}
    return json_response(orjson.dumps(said, default=str))


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **errors_of(401, 403, 429, 503)},
)
async def metrics(request: Request, identity: Admin) -> Response:
    """Return metrics as Prometheus text; they have no tenant, owner or text in them."""
    service = service_of(request)
    text = service.metrics
    # Gauges are read from the store, which takes a while.
    told = b"" if text is None else await service.run(request, lambda _: text())
    return Response(told, media_type="text/plain; version=0.0.4; charset=utf-8")
