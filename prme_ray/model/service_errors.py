"""Errors that only the HTTP service and its clients raise; the rest of the tree is in ``errors``."""

from __future__ import annotations

from prme_ray.model.errors import TerminalError, TransientError

__all__ = [
    "BodyTooLarge",
    "Forbidden",
    "KeyFileUnreadable",
    "Overloaded",
    "RateLimited",
    "ServiceError",
    "Unauthenticated",
    "UnsupportedMediaType",
    "WrongHost",
]


class Unauthenticated(TerminalError):
    """No valid key came with the request. Fields: ``detail``."""

    code = "UNAUTHENTICATED"
    http_status = 401
    template = "{detail}: send 'Authorization: Bearer prk_…' with a key of `prme-ray keys create`"


class Forbidden(TerminalError):
    """The key does not allow it; the same whether what was asked for exists or not. Fields: ``detail``."""

    code = "FORBIDDEN"
    http_status = 403
    template = "this key does not allow it: {detail}"


class BodyTooLarge(TerminalError):
    """A request's body is over the limit. Fields: ``limit_bytes``."""

    code = "BODY_TOO_LARGE"
    http_status = 413
    template = "the body has more than {limit_bytes} bytes; send less at once"


class UnsupportedMediaType(TerminalError):
    """A body that is not declared as JSON. Fields: ``given``."""

    code = "UNSUPPORTED_MEDIA_TYPE"
    http_status = 415
    template = "Content-Type {given!r} is not supported: send application/json"


class WrongHost(TerminalError):
    """A service without keys was asked under a name that is not this machine's own. Fields: ``given``."""

    code = "WRONG_HOST"
    http_status = 421
    template = "a service without keys is reached as 127.0.0.1, ::1 or localhost only, not as Host {given!r}"


class RateLimited(TransientError):
    """The key's rate is used up. Fields: ``retry_after_s``."""

    code = "RATE_LIMITED"
    http_status = 429
    template = "this key's rate is used up; retry in {retry_after_s:.1f} s"


class Overloaded(TransientError):
    """All places are taken. Fields: ``in_progress``, ``waiting``, ``retry_after_s``."""

    code = "OVERLOADED"
    template = "{in_progress} requests are in progress and {waiting} wait; retry in {retry_after_s:.1f} s"


class KeyFileUnreadable(TransientError):
    """The file of keys is missing or broken, so nobody is let in. Fields: ``path``, ``detail``."""

    code = "KEYS_UNREADABLE"
    template = "the keys in {path} cannot be read ({detail}); repair the file, it is read again by itself"


class ServiceError(TerminalError):
    """An answer this client does not know. Fields: ``status``, ``reason``, ``message``."""

    code = "SERVICE_ERROR"
    http_status = 502
    template = "the service answered {status} {reason}: {message}"
