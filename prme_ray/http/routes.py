"""Routes under ``/v1`` that read and write memories (digest b §6.3)."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from prme_ray.answer import Answer
from prme_ray.http.access import Identity
from prme_ray.http.bodies import (
    AnswerBody,
    BatchBody,
    EdgeBody,
    EdgeStoredBody,
    ItemsStoredBody,
    NodeBody,
    Owned,
    RetrieveBody,
    StoreBody,
    StoredBody,
)
from prme_ray.http.openapi import body_of, errors_of
from prme_ray.http.service import Key, Reader, Service, Writer, json_response, read_body, service_of
from prme_ray.http.verbs import MemoryVerbs
from prme_ray.model.enums import Scope
from prme_ray.model.errors import InvalidRequest, NotFound
from prme_ray.model.nodes import Event, Node
from prme_ray.model.service_errors import Forbidden
from prme_ray.writing import Stored

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["memory"])
_WRITES = errors_of(401, 403, 409, 413, 415, 422, 429, 503)


# First, as routes are tried in their order and most requests want this one.
@router.post(
    "/retrieve",
    responses={200: {"model": AnswerBody}, **errors_of(401, 403, 409, 410, 413, 415, 422, 429, 503)},
    openapi_extra=body_of(RetrieveBody),
)
async def retrieve(request: Request, identity: Reader) -> Response:
    """Answer a question from one owner's memories."""
    service = service_of(request)
    body = await read_body(request, RetrieveBody, service.limits.body_bytes)
    tenant, owner = identity.whose(body.tenant, body.owner)
    service.check_text("query", body.query, service.limits.query_characters)
    arguments = _given(body)
    filters = arguments.pop("filters", {})
    if identity.scope is not None:
        filters = {**_scoped(identity, filters), "include_cross_scope": False}
    request_id: str = request.state.request_id

    def call(memory: MemoryVerbs) -> tuple[Answer, bytes]:
        answer: Answer = memory.retrieve(**arguments, **filters, tenant=tenant, owner=owner, request_id=request_id)
        return answer, service.encoder.encode(answer)

    answer, content = await service.run(request, call)
    if service.observe_answer is None:
        return json_response(content)
    return _Told(content, answer, service.observe_answer)


@router.post("/store", responses={200: {"model": StoredBody}, **_WRITES}, openapi_extra=body_of(StoreBody))
async def store(request: Request, identity: Writer, key: Key) -> Response:
    """Remember a text; answered when it is durable and every channel finds it."""
    service = service_of(request)
    body = await read_body(request, StoreBody, service.limits.body_bytes)
    tenant, owner = identity.whose(body.tenant, body.owner)
    arguments = _scoped(identity, _given(body))
    _check_texts(service, arguments)
    stored = await service.run(
        request, lambda memory: memory.store(**arguments, tenant=tenant, owner=owner, idempotency_key=key)
    )
    return json_response(orjson.dumps(_receipt(stored)))


@router.post("/store/batch", responses={200: {"model": ItemsStoredBody}, **_WRITES}, openapi_extra=body_of(BatchBody))
async def store_batch(request: Request, identity: Writer, key: Key) -> Response:
    """Remember many texts; where some are refused, all others are stored and the error carries both."""
    service = service_of(request)
    body = await read_body(request, BatchBody, service.limits.body_bytes)
    tenant, owner = identity.whose(body.tenant, body.owner)
    common = _scoped(identity, _given(body))
    items = [item if isinstance(item, str) else _allowed(identity, item) for item in common.pop("items")]
    if len(items) > service.limits.items:
        raise InvalidRequest(argument="items", given=f"{len(items)} items", allowed=f"up to {service.limits.items}")
    for item in [common, *items]:
        _check_texts(service, {"content": item} if isinstance(item, str) else item)
    stored = await service.run(
        request, lambda memory: memory.store_many(items, **common, tenant=tenant, owner=owner, idempotency_key=key)
    )
    return json_response(orjson.dumps({"stored": [_receipt(item) for item in stored]}))


@router.post("/nodes", responses={200: {"model": StoredBody}, **_WRITES}, openapi_extra=body_of(NodeBody))
async def store_node(request: Request, identity: Writer, key: Key) -> Response:
    """Store a structured memory: a fact, a preference, an entity, a task, a pin."""
    service = service_of(request)
    body = await read_body(request, NodeBody, service.limits.body_bytes)
    tenant, owner = identity.whose(body.tenant, body.owner)
    arguments = _scoped(identity, _given(body))
    _check_texts(service, arguments)
    stored = await service.run(
        request, lambda memory: memory.store_node(**arguments, tenant=tenant, owner=owner, idempotency_key=key)
    )
    return json_response(orjson.dumps(_receipt(stored)))


@router.post(
    "/edges", responses={200: {"model": EdgeStoredBody}, **_WRITES, **errors_of(404)}, openapi_extra=body_of(EdgeBody)
)
async def store_edge(request: Request, identity: Writer, key: Key) -> Response:
    """Relate two memories of one owner."""
    service = service_of(request)
    body = await read_body(request, EdgeBody, service.limits.body_bytes)
    tenant, owner = identity.whose(body.tenant, body.owner)
    arguments = _given(body)

    def call(memory: MemoryVerbs) -> str:
        if identity.scope is not None:
            for end in (body.source_id, body.target_id):
                _in_scope(memory.get(end, tenant=tenant, owner=owner), identity, end)
        return memory.store_edge(**arguments, tenant=tenant, owner=owner, idempotency_key=key)

    return json_response(orjson.dumps({"edge_id": await service.run(request, call)}))


@router.get("/nodes/{id}", responses={200: {"model": Node}, **errors_of(401, 403, 404, 422, 429, 503)})
async def get_node(request: Request, identity: Reader, id: str, whose: Annotated[Owned, Query()]) -> Response:
    """Return a memory, whatever its state; another owner's is as unknown as one that never was."""
    tenant, owner = identity.whose(whose.tenant, whose.owner)
    node = await service_of(request).run(request, lambda memory: memory.get(id, tenant=tenant, owner=owner))
    _in_scope(node, identity, id)
    return json_response(node.model_dump_json().encode())


@router.get("/events/{id}", responses={200: {"model": Event}, **errors_of(401, 403, 404, 422, 429, 503)})
async def get_event(request: Request, identity: Reader, id: str, whose: Annotated[Owned, Query()]) -> Response:
    """Return the source of a memory; another owner's is as unknown as one that never was."""
    tenant, owner = identity.whose(whose.tenant, whose.owner)
    event = await service_of(request).run(request, lambda memory: memory.get_event(id, tenant=tenant, owner=owner))
    if identity.scope not in {None, event.scope}:
        raise NotFound(kind="event", id=id)
    return json_response(event.model_dump_json().encode())


class _Told(Response):
    """An answer that ``observe`` is told of when it was sent, or could not be: nobody waits for being counted."""

    def __init__(self, content: bytes, answer: Answer, observe: Callable[[Answer], None]) -> None:
        super().__init__(content, media_type="application/json")
        self._answer = answer
        self._observe = observe

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._observe(self._answer)


def _given(body: Owned) -> dict[str, Any]:
    """Return what the body says, as arguments of the Python call."""
    return body.model_dump(exclude_unset=True, exclude={"owner", "tenant"})


def _scoped(identity: Identity, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the scope of a key that has only one."""
    return arguments if identity.scope is None else {"scope": identity.scope, **_allowed(identity, arguments)}


def _allowed(identity: Identity, arguments: dict[str, Any]) -> dict[str, Any]:
    wanted = arguments.get("scope")
    scopes = wanted if isinstance(wanted, list) else [wanted]
    if identity.scope is not None and "scope" in arguments and any(scope != identity.scope for scope in scopes):
        raise Forbidden(detail=f"it is bound to scope {Scope(identity.scope)}")
    return arguments


def _in_scope(node: Node, identity: Identity, wanted: str) -> None:
    if identity.scope not in {None, node.scope}:
        raise NotFound(kind="memory", id=wanted)


def _check_texts(service: Service, arguments: Mapping[str, Any]) -> None:
    for name in ("content", "retrieval_content"):
        service.check_text(name, arguments.get(name), service.limits.content_characters)


def _receipt(stored: Stored) -> dict[str, Any]:
    return {"node_id": stored.node_id, "event_id": stored.event_id, "sequence": stored.sequence}
