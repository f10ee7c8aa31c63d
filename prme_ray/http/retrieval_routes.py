"""Routes under ``/v1`` about past retrievals: read, replay, reproduce, verify (digest b §6.3)."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from prme_ray.http.bodies import Owned, RetrievalsQuery
from prme_ray.http.openapi import body_of, errors_of
from prme_ray.http.service import Reader, read_body, reply, service_of
from prme_ray.model.retrievals import ChainReport, Replay, Reproduction, Retrieval, RetrievalPage

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["retrievals"])
_PAGE = errors_of(401, 403, 422, 429, 503)
_READ = _PAGE | errors_of(404, 409, 410)
_RUN = _READ | errors_of(413, 415)


@router.get("/retrievals", responses={200: {"model": RetrievalPage}, **_PAGE})
async def list_retrievals(request: Request, identity: Reader, page: Annotated[RetrievalsQuery, Query()]) -> Response:
    """Return an owner's retrievals, oldest first, a page at a time."""
    tenant, owner = identity.whose(page.tenant, page.owner)
    return await reply(
        request,
        lambda memory: memory.list_retrievals(
            tenant=tenant, owner=owner, cursor=page.cursor, limit=page.limit, confined_to=identity.scope
        ),
    )


@router.get("/retrievals/{id}", responses={200: {"model": Retrieval}, **_READ})
async def get_retrieval(request: Request, identity: Reader, id: str, whose: Annotated[Owned, Query()]) -> Response:
    """Return a past retrieval; its receipt is a text, whose bytes are what the checksum is of."""
    tenant, owner = identity.whose(whose.tenant, whose.owner)
    return await reply(
        request,
        lambda memory: memory.get_retrieval(id, tenant=tenant, owner=owner, confined_to=identity.scope),
    )


@router.post("/retrievals/{id}/replay", responses={200: {"model": Replay}, **_RUN}, openapi_extra=body_of(Owned))
async def replay(request: Request, identity: Reader, id: str) -> Response:
    """Derive scores and order of a past retrieval from its receipt alone."""
    whose = await read_body(request, Owned, service_of(request).limits.body_bytes)
    tenant, owner = identity.whose(whose.tenant, whose.owner)
    return await reply(
        request,
        lambda memory: memory.replay(id, tenant=tenant, owner=owner, confined_to=identity.scope),
    )


@router.post(
    "/retrievals/{id}/reproduce", responses={200: {"model": Reproduction}, **_RUN}, openapi_extra=body_of(Owned)
)
async def reproduce(request: Request, identity: Reader, id: str) -> Response:
    """Run a past retrieval again on the snapshot it read, and compare; the outcome says why it differs."""
    whose = await read_body(request, Owned, service_of(request).limits.body_bytes)
    tenant, owner = identity.whose(whose.tenant, whose.owner)
    return await reply(
        request,
        lambda memory: memory.reproduce(id, tenant=tenant, owner=owner, confined_to=identity.scope),
    )


@router.get("/chain", responses={200: {"model": ChainReport}, **_PAGE})
async def verify_chain(request: Request, identity: Reader, whose: Annotated[Owned, Query()]) -> Response:
    """Follow the hash chain over all of an owner's records, and say what was removed, altered or moved."""
    tenant, owner = identity.whose(whose.tenant, whose.owner)
    return await reply(request, lambda memory: memory.verify_chain(tenant=tenant, owner=owner))
