"""Around every request: its id, its log line, and an answer whatever happens inside."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prme_ray.http.wire import envelope, public_error, status_of
from prme_ray.model.errors import InvalidRequest, PrmeRayError
from prme_ray.model.frames import where
from prme_ray.model.service_errors import WrongHost
from prme_ray.model.text import uuid_of
from prme_ray.observe.spans import request_span

__all__ = ["Guard", "ObserveRequest"]

_log = logging.getLogger("prme_ray.http")
_REQUEST_ID = b"x-request-id"
_CLIENT_CLOSED = 499

ObserveRequest = Callable[[str, int, float], Any]
"""Told of every request: template of its route, status, seconds."""


class Guard:
    """ASGI middleware that gives requests their id and turns unexpected exceptions into a 500.

    Args:
        app: What answers.
        new_id: Returns a fresh UUID as text.
        check_host: Raises for a ``Host`` header that is not answered.
        tells_id: Send the id back, on every response.
        observe: Told of every request, where given.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        new_id: Callable[[], str],
        check_host: Callable[[str | None], None],
        tells_id: bool = True,
        observe: ObserveRequest | None = None,
    ) -> None:
        self._app = app
        self._new_id = new_id
        self._check_host = check_host
        self._tells_id = tells_id
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        refusal: PrmeRayError | None = None
        request_id: str | None = None
        try:
            request_id = self._request_id(_header(scope, _REQUEST_ID))
            self._check_host(_header(scope, b"host"))
        except (InvalidRequest, WrongHost) as error:
            refusal, request_id = error, request_id or self._new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._tells_id:
                    message = {**message, "headers": [*message["headers"], (_REQUEST_ID, request_id.encode())]}
            await send(message)

        with request_span(scope["method"], scope["headers"]) as ended:
            try:
                if refusal is not None:
                    await _answer(send_with_id, status_of(refusal), public_error(refusal))
                else:
                    await self._app(scope, receive, send_with_id)
            except ClientDisconnect:
                status = status or _CLIENT_CLOSED
            except Exception as error:
                # Type and places only: a message may quote the text of a memory.
                _log.error(
                    "request %s failed: %s",
                    request_id,
                    where(error),
                    extra={"request_id": request_id, "status": 500},
                )
                if status:
                    raise ConnectionAbortedError("the answer broke off") from None  # it cannot be taken back
                await _answer(send_with_id, 500, envelope("INTERNAL", "internal error", {"id": request_id}))
            finally:
                # The template, not the path: a path may hold anything, and ids in labels would never end.
                route = str(getattr(scope.get("route"), "path", "unknown"))
                ended(route, status)
                self._tell(scope["method"], route, request_id, status, time.perf_counter() - started)

    def _request_id(self, given: str | None) -> str:
        return self._new_id() if given is None else uuid_of(given, "X-Request-ID")

    def _tell(self, method: str, route: str, request_id: str, status: int, seconds: float) -> None:
        if self._observe is not None:
            self._observe(route, status, seconds)
        if _log.isEnabledFor(logging.INFO):
            duration = round(seconds * 1e3, 3)
            said = {"request_id": request_id, "route": route, "status": status, "duration_ms": duration}
            _log.info("%s %s %s %.1f ms", method, route, status, duration, extra=said)


def _header(scope: Scope, wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == wanted), None)


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
