"""Errors as JSON and back: ``{"error": {"code", "message", "details"}}`` for every one (digest b §6.4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import orjson

from prme_ray.model.errors import (
    FeedbackAltered,
    InvalidItems,
    InvalidRequest,
    InvalidText,
    PrmeRayError,
    ReceiptRejected,
    StoreClosed,
)
from prme_ray.model.service_errors import BodyTooLarge, Forbidden, ServiceError, Unauthenticated
from prme_ray.writing import Stored

__all__ = ["envelope", "error_of", "headers_of", "public_error", "status_of"]

_LONGEST = 200
_ITEMS = 1000
_RETRY_AFTER_S = 1
_RETRIABLE = {429, 503}
# What only the operator may know: the service's files, processes and databases.
_HIDDEN = {
    "path": "the store of the service",
    "what": "the service",
    "detail": "see the log of the service",
    "pid": "hidden",
    "host": "hidden",
    "since": "hidden",
}

# Their detail is about the request, or about a record of whoever asks.
_TOLD = Forbidden | Unauthenticated | ReceiptRejected | FeedbackAltered


def envelope(code: str, message: str, details: dict[str, Any]) -> bytes:
    """Return the body of an error."""
    return orjson.dumps({"error": {"code": code, "message": message, "details": details}})


def status_of(error: PrmeRayError) -> int:
    """Return the HTTP status of an error."""
    # A store that was closed is a service that stops, not a fault of it.
    return 503 if isinstance(error, StoreClosed) else error.http_status


def headers_of(error: PrmeRayError) -> dict[str, str]:
    """Return the headers that come with an error: when to retry, how to authenticate."""
    status = status_of(error)
    if status in _RETRIABLE:
        return {"Retry-After": str(max(1, math.ceil(error.fields.get("retry_after_s", _RETRY_AFTER_S))))}
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": "Bearer"}
    # The rest of the body will not be read, so nothing else can come on this connection.
    return {"Connection": "close"} if isinstance(error, BodyTooLarge) else {}


def public_error(error: PrmeRayError) -> bytes:
    """Return the body that a caller sees, without what only the operator may know."""
    details = _details(error)
    if isinstance(error, InvalidItems):
        details["rejected"] = [{"code": item.code, **_details(item)} for item in error.rejected]
        details["stored"] = [_stored(item) for item in error.stored]
        return envelope(error.code, str(error), details)
    if isinstance(error, _TOLD):
        return envelope(error.code, str(error), details)
    hidden = {name: _HIDDEN[name] for name in details if name in _HIDDEN}
    shown = type(error)(**{**error.fields, **hidden}) if hidden else error
    return envelope(error.code, str(shown), {**details, **hidden})


def error_of(status: int, body: bytes) -> PrmeRayError:
    """Return the error that a body tells of, as the service raised it; a :class:`ServiceError` where unknown."""
    try:
        told = orjson.loads(body)["error"]
        code, message, details = str(told["code"]), str(told["message"]), dict(told["details"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(status=status, reason="without a code", message=body[:_LONGEST].decode(errors="replace"))
    found = _rebuilt(code, details)
    return ServiceError(status=status, reason=code, message=message) if found is None else found


def _rebuilt(code: str, details: dict[str, Any]) -> PrmeRayError | None:
    kind = next((kind for kind in _kinds(PrmeRayError) if kind.code == code and kind is not PrmeRayError), None)
    if kind is None:
        return None
    try:
        if issubclass(kind, InvalidItems):
            rejected = [_rebuilt(item.pop("code"), item) for item in details["rejected"]]
            return kind(
                rejected=tuple(error for error in rejected if isinstance(error, InvalidRequest)),
                stored=tuple(Stored(**item) for item in details["stored"]),
            )
        if issubclass(kind, InvalidText):
            details.pop("where", None)
        return kind(**details)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None  # another version's fields


def _kinds(kind: type[PrmeRayError]) -> Iterator[type[PrmeRayError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _kinds(child)


def _details(error: PrmeRayError) -> dict[str, Any]:
    return {name: _plain(value) for name, value in error.fields.items()}


def _stored(item: Any) -> dict[str, Any]:
    return {"node_id": item.node_id, "event_id": item.event_id, "sequence": item.sequence}


def _plain(value: Any) -> Any:
    """Return a field as short JSON."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else _cut(f"an integer of {value.bit_length()} bits")
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in list(value)[:_ITEMS]]
    return _cut(repr(value))


def _cut(text: str) -> str:
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
    return short.encode(errors="replace").decode()
