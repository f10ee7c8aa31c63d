"""Routes under ``/v1`` about what became of past retrievals: relevance and citations (digest b §3.6, §6.3)."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from prme_ray.http.bodies import CitationsBody, Owned, PageQuery, RelevanceBody
from prme_ray.http.openapi import body_of, errors_of
from prme_ray.http.service import Reader, Writer, read_body, reply, service_of
from prme_ray.model.feedback import Citations, CitationsPage, Relevance, RelevancePage

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["feedback"])
_PAGE = errors_of(401, 403, 409, 422, 429, 503)
_READ = _PAGE | errors_of(404)
_WRITE = _READ | errors_of(400, 410, 413, 415)


@router.post("/relevance", responses={200: {"model": Relevance}, **_WRITE}, openapi_extra=body_of(RelevanceBody))
async def record_relevance(request: Request, identity: Writer) -> Response:
    """Keep which memories of a retrieval were relevant; the same id and content again changes nothing."""
    body = await read_body(request, RelevanceBody, service_of(request).limits.body_bytes)
    tenant, owner = identity.whose(body.tenant, body.owner)
    given = body.model_dump(exclude={"owner", "tenant"})
    return await reply(
        request,
        lambda memory: memory.record_relevance(**given, tenant=tenant, owner=owner, confined_to=identity.scope),
    )


@router.get("/relevance", responses={200: {"model": RelevancePage}, **_PAGE})
async def list_relevance(request: Request, identity: Reader, page: Annotated[PageQuery, Query()]) -> Response:
    """Return an owner's relevance records by id ascending, a page at a time."""
    tenant, owner = identity.whose(page.tenant, page.owner)
    return await reply(
        request,
        lambda memory: memory.list_relevance(
            tenant=tenant, owner=owner, after_id=page.after_id, limit=page.limit, confined_to=identity.scope
        ),
    )


@router.get("/relevance/{feedback_id}", responses={200: {"model": Relevance}, **_READ})
async def get_relevance(
    request: Request, identity: Reader, feedback_id: str, whose: Annotated[Owned, Query()]
) -> Response:
    """Return a relevance record; another owner's is as unknown as one that never was."""
    tenant, owner = identity.whose(whose.tenant, whose.owner)
    return await reply(
        request,
        lambda memory: memory.get_relevance(feedback_id, tenant=tenant, owner=owner, confined_to=identity.scope),
    )


@router.post("/answer-citations", responses={200: {"model": Citations}, **_WRITE}, openapi_extra=body_of(CitationsBody))
async def record_citations(request: Request, identity: Writer) -> Response:
    """Keep which memories an answer cites; the same id and content again changes nothing."""
    body = await read_body(request, CitationsBody, service_of(request).limits.body_bytes)
    tenant, owner = identity.whose(body.tenant, body.owner)
    given = body.model_dump(exclude={"owner", "tenant"})
    return await reply(
        request,
        lambda memory: memory.record_citations(**given, tenant=tenant, owner=owner, confined_to=identity.scope),
    )


@router.get("/answer-citations", responses={200: {"model": CitationsPage}, **_PAGE})
async def list_citations(request: Request, identity: Reader, page: Annotated[PageQuery, Query()]) -> Response:
    """Return an owner's answer citations by id ascending, a page at a time."""
    tenant, owner = identity.whose(page.tenant, page.owner)
    return await reply(
        request,
        lambda memory: memory.list_citations(
            tenant=tenant, owner=owner, after_id=page.after_id, limit=page.limit, confined_to=identity.scope
        ),
    )


@router.get("/answer-citations/{citation_id}", responses={200: {"model": Citations}, **_READ})
async def get_citations(
    request: Request, identity: Reader, citation_id: str, whose: Annotated[Owned, Query()]
) -> Response:
    """Return an answer's citations; another owner's are as unknown as ones that never were."""
    tenant, owner = identity.whose(whose.tenant, whose.owner)
    return await reply(
        request,
        lambda memory: memory.get_citations(citation_id, tenant=tenant, owner=owner, confined_to=identity.scope),
    )
