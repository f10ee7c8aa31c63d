"""What the routes share: the memory behind the service, its keys, its limits and its threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, HTTPConnection

from prme_ray.answer import Answer
from prme_ray.http.access import Access, Identity
from prme_ray.http.answer_json import AnswerEncoder
from prme_ray.http.gate import Gate
from prme_ray.http.limits import Limits
from prme_ray.http.verbs import MemoryVerbs
from prme_ray.keys import Permission
from prme_ray.model.errors import InvalidRequest, ServiceUnavailable
from prme_ray.model.service_errors import BodyTooLarge, UnsupportedMediaType
from prme_ray.model.text import uuid_of

__all__ = ["Admin", "Key", "Reader", "Service", "Writer", "json_response", "read_body", "reply"]

T = TypeVar("T")
B = TypeVar("B", bound=BaseModel)


@dataclass(slots=True)
class Service:
    """State of one process of the service.

    Attributes:
        access: Who may come in.
        limits: What one request may bring.
        gate: Threads, and who waits for one.
        memory: The memory; ``None`` before the start and after the end.
        metrics: Returns the text of ``/metrics``.
        ready: Raises while the service should get no requests.
        observe_answer: Told of every answer once it is sent or its client gone.
        encoder: Makes answers into JSON.
    """

    access: Access
    limits: Limits
    gate: Gate
    memory: MemoryVerbs | None
    metrics: Callable[[], bytes] | None
    ready: Callable[[], None] | None
    observe_answer: Callable[[Answer], None] | None = None
    encoder: AnswerEncoder = field(default_factory=AnswerEncoder)

    def opened(self) -> MemoryVerbs:
        """Return the memory.

        Raises:
            ServiceUnavailable: it is not open yet, or not any more.
        """
        if self.memory is None:
            raise ServiceUnavailable(what="the service", detail="it is starting or stopping")
        return self.memory

    async def run(self, request: Request, call: Callable[[MemoryVerbs], T]) -> T:
        """Run a call of the memory in a thread.

        Raises:
            Overloaded: too many are in progress or wait.
            ClientDisconnect: whoever asked went away while waiting.
        """
        memory = self.opened()
        if await self.gate.enter() and await request.is_disconnected():
            self.gate.leave()
            raise ClientDisconnect
        return await self.gate.run(lambda: call(memory))

    def check_text(self, argument: str, text: str | None, limit: int) -> None:
        """Refuse a text that is too long.

        Raises:
            InvalidRequest: naming the limit.
        """
        if text is not None and len(text) > limit:
            raise InvalidRequest(
                argument=argument, given=f"{len(text)} characters", allowed=f"up to {limit} characters"
            )


_BEARER = "A key of `prme-ray keys create`; none where the service has no keys."
_bearer = HTTPBearer(auto_error=False, description=_BEARER)
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def service_of(request: HTTPConnection) -> Service:
    """Return the service a request came to."""
    found: Service = request.app.state.service
    return found


class _Permitted(HTTPBearer):
    """Says who asks, where their key permits what they ask for; one dependency instead of three on every request."""

    def __init__(self, permission: Permission) -> None:
        super().__init__(auto_error=False, scheme_name=_bearer.scheme_name, description=_BEARER)
        self._permission = permission

    async def __call__(self, request: HTTPConnection) -> Identity:  # type: ignore[override]
        bearer = await super().__call__(request)
        identity = service_of(request).access.identify(None if bearer is None else bearer.credentials)
        identity.require(self._permission)
        return identity


Reader = Annotated[Identity, Depends(_Permitted(Permission.READ))]
Writer = Annotated[Identity, Depends(_Permitted(Permission.WRITE))]
Admin = Annotated[Identity, Depends(_Permitted(Permission.ADMIN))]


async def _idempotency_key(
    key: Annotated[
        str | None,
        Header(alias="Idempotency-Key", description="UUID; a repeat of the same request stores nothing more."),
    ] = None,
) -> str | None:
    return None if key is None else uuid_of(key, "Idempotency-Key")


Key = Annotated[str | None, Depends(_idempotency_key)]


async def read_body(request: Request, model: type[B], limit: int) -> B:
    """Return a checked body; it is counted while it is read, whatever its header says.

    Raises:
        UnsupportedMediaType: it is not declared as JSON. Asking for that also keeps the pages of other
            sites from writing to a service without keys: a browser asks first, and is not answered.
        BodyTooLarge: more than ``limit`` bytes.
        InvalidRequest: no JSON, an unknown key, a wrong type.
    """
    media = request.headers.get("content-type", "")
    if media.partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType(given=media)
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise BodyTooLarge(limit_bytes=limit)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise BodyTooLarge(limit_bytes=limit)
    try:
        return model.model_validate_json(bytes(body))
    except ValidationError as error:
        raise invalid(error) from None


def invalid(error: ValidationError) -> InvalidRequest:
    """Return what is wrong with a body or a query, the first thing in full; never the value given."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    first = problems[0]
    return InvalidRequest(
        argument=_name(first["loc"]),
        given=first["type"],
        allowed=f"what the schema of the service allows ({first['msg']})",
        errors=[f"{_name(problem['loc'])}: {problem['msg']}" for problem in problems[:20]],
    )


def _name(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "body"


def json_response(body: bytes) -> Response:
    """Return a body that is JSON already."""
    return Response(body, media_type="application/json")


async def reply(request: Request, call: Callable[[MemoryVerbs], BaseModel]) -> Response:
    """Return what a call of the memory gives, made into JSON in the call's thread."""
    text = await service_of(request).run(request, lambda memory: call(memory).model_dump_json())
    return json_response(text.encode())
