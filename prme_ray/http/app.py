"""The service as an ASGI application over any object with the verbs of ``prme_ray.Memory``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from prme_ray import __version__
from prme_ray.answer import Answer
from prme_ray.defaults import new_uuid
from prme_ray.http import feedback_routes, operations, retrieval_routes, routes
from prme_ray.http.access import Access
from prme_ray.http.gate import Gate
from prme_ray.http.guard import Guard, ObserveRequest
from prme_ray.http.limits import Limits
from prme_ray.http.openapi import describe
from prme_ray.http.service import Service
from prme_ray.http.verbs import MemoryVerbs
from prme_ray.http.wire import envelope, headers_of, public_error, status_of
from prme_ray.model.errors import InvalidRequest, PrmeRayError
from prme_ray.model.frames import where

__all__ = ["create_app"]

_log = logging.getLogger("prme_ray.http")
_INTERNAL = 500
_CODES = {404: "ROUTE_NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}


def create_app(
    memory: MemoryVerbs | Callable[[], MemoryVerbs],
    *,
    access: Access | None = None,
    limits: Limits | None = None,
    metrics: Callable[[], bytes] | None = None,
    observe: ObserveRequest | None = None,
    observe_answer: Callable[[Answer], None] | None = None,
    ready: Callable[[], None] | None = None,
    new_id: Callable[[], str] = new_uuid,
    tells_request_id: bool = True,
) -> FastAPI:
    """Return the application; whoever serves it calls :func:`~prme_ray.http.access.check_bind` first.

    Args:
        memory: An open memory, which stays the caller's; or what opens one when the application starts,
            which is then closed when it ends.
        access: Who may come in; everybody when left out.
        limits: What one request may bring and how many are served at once.
        metrics: Returns the text of ``/metrics``.
        observe: Told route, status and seconds of every request.
        observe_answer: Told of every answer once it is sent or its client gone, on the event loop: it must be quick.
        ready: Raises a transient error while ``/readyz`` should say no.
        new_id: Returns a fresh UUID as text, for requests without ``X-Request-ID``.
        tells_request_id: Send ``X-Request-ID`` back; not behind a server that does.
    """
    bounds = limits or Limits()
    given = None if callable(memory) else memory
    service = Service(access or Access(), bounds, _gate(bounds), given, metrics, ready, observe_answer)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        # An application may be started again after its end.
        service.gate = _gate(bounds)
        service.memory = await asyncio.to_thread(memory) if callable(memory) else memory
        try:
            yield
        finally:
            opened, service.memory = service.memory, None
            await asyncio.to_thread(service.gate.close)
            if callable(memory) and opened is not None:
                await asyncio.to_thread(opened.close)

    app = FastAPI(
        title="prme-ray",
        version=__version__,
        description="Long-term memory of LLM agents.",
        lifespan=life,
        redirect_slashes=False,
    )
    app.state.service = service
    for part in (routes, retrieval_routes, feedback_routes, operations):
        app.include_router(part.router)
    app.add_exception_handler(PrmeRayError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.add_middleware(
        Guard,
        new_id=new_id,
        check_host=service.access.check_host,
        tells_id=tells_request_id,
        observe=observe,
    )
    describe(app)
    return app


def _gate(limits: Limits) -> Gate:
    return Gate(places=limits.in_progress, waiting=limits.waiting, patience_s=limits.patience_s)


async def _known(request: Request, error: Exception) -> Response:
    if not isinstance(error, PrmeRayError):
        raise error
    status = status_of(error)
    request_id: str = request.state.request_id
    if status == _INTERNAL:
        _log.error("request %s failed: %s, %s", request_id, error.code, where(error))
        return _response(status, envelope("INTERNAL", "internal error", {"id": request_id}))
    return _response(status, public_error(error), headers_of(error))


async def _invalid(request: Request, error: Exception) -> Response:
    # Path and query; bodies are checked by the service itself.
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    told = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems]
    refusal = InvalidRequest(
        argument=".".join(map(str, problems[0]["loc"])) if problems else "request",
        given=problems[0]["type"] if problems else "unreadable",
        allowed="what the schema of the service allows",
        errors=told,
    )
    return await _known(request, refusal)


async def _plain(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else _INTERNAL
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    message = error.detail if isinstance(error, HTTPException) else "internal error"
    return _response(status, envelope(_CODES.get(status, "HTTP_ERROR"), message, {}), headers)


def _response(status: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")
