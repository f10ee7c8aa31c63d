"""Clients of the HTTP service: the verbs, results and errors of ``Memory``, from another process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import httpx

from prme_ray.answer import Answer
from prme_ray.client_calls import (
    Call,
    ItemsResult,
    batches,
    edge_call,
    get_call,
    health_call,
    retrieve_call,
    write_call,
)
from prme_ray.client_records import AsyncRecordVerbs, RecordVerbs
from prme_ray.health import Health
from prme_ray.http.wire import error_of
from prme_ray.model.errors import InvalidItems, InvalidRequest, ServiceUnavailable
from prme_ray.model.nodes import Event, Node
from prme_ray.writing import Stored

__all__ = ["AsyncClient", "Client"]

T = TypeVar("T")

_RETRIED = frozenset({429, 503})
_SUCCESS = 200
_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 30.0

_Came = httpx.Response | httpx.TransportError


class _Common:
    """What both clients keep: where the service is, and how often a call is tried."""

    def __init__(self, base_url: str, api_key: str | None, retries: int) -> None:
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InvalidRequest(argument="retries", given=retries, allowed="a whole number of at least 0")
        self._base_url = base_url.rstrip("/")
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._retries = retries

    def _request(self, call: Call[Any]) -> dict[str, Any]:
        headers = {**self._headers, **call.headers}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        return {"method": call.method, "url": self._base_url + call.path, "headers": headers, "content": call.body}

    def _attempts(self, call: Call[T]) -> _Attempts[T]:
        return _Attempts(call, self._retries, self._base_url)


class _Attempts(Generic[T]):
    """The attempts of one call: takes what came of each, says whether and when there is another."""

    def __init__(self, call: Call[T], retries: int, service: str) -> None:
        self._call = call
        self._left = retries
        self._service = service
        self._backoff = _FIRST_DELAY_S

    def after(self, came: _Came) -> float | None:
        """Return how long to wait before the next attempt, in seconds; ``None`` where there is none."""
        told = ""
        if isinstance(came, httpx.Response):
            if came.status_code not in _RETRIED:
                return None
            told = came.headers.get("Retry-After", "")
        if self._left == 0:
            return None
        self._left -= 1
        delay, self._backoff = float(told) if told.isdecimal() else self._backoff, self._backoff * 2
        return min(delay, _LONGEST_DELAY_S)

    def result(self, came: _Came) -> T:
        """Return what the last attempt gave, or raise what it failed with."""
        if isinstance(came, httpx.TransportError):
            raise ServiceUnavailable(what=self._service, detail=type(came).__name__) from came
        if came.status_code != _SUCCESS:
            raise error_of(came.status_code, came.content)
        return self._call.read(came.content)


class Client(RecordVerbs, _Common):
    """A service's memory with the verbs of :class:`~prme_ray.memory.Memory`. Safe to use from many threads.

    Calls are repeated on a broken connection, 429 and 503: reads change nothing, and writes carry an
    idempotency key or an id of their own, so a repeat never stores twice. ``owner`` and ``tenant`` may be
    left out where the key is bound to them. Errors are those of ``Memory``; one that this version does not
    know is a ``ServiceError``.

    Args:
        base_url: Address of the service, such as ``http://127.0.0.1:8000``.
        api_key: A key of ``prme-ray keys create``.
        timeout: Longest wait for a part of an answer, in seconds.
        retries: Attempts after the first.
    """

    def __init__(self, base_url: str, *, api_key: str | None = None, timeout: float = 30.0, retries: int = 2) -> None:
        super().__init__(base_url, api_key, retries)
        self._http = httpx.Client(timeout=timeout)

    def store(self, content: str, **arguments: Any) -> Stored:
        """Remember a text; see ``Memory.store``."""
        return self._ask(write_call("/v1/store", content, arguments))

    def store_many(self, items: Iterable[Any], **arguments: Any) -> list[Stored]:
        """Remember a stream of texts, some hundreds a request; see ``Memory.store_many``."""
        result = ItemsResult()
        for call in batches(items, arguments):
            try:
                result.add(self._ask(call))
            except InvalidItems as error:
                result.refuse(error)
        return result.receipts()

    def store_node(self, content: str, **arguments: Any) -> Stored:
        """Store a structured memory; see ``Memory.store_node``."""
        return self._ask(write_call("/v1/nodes", content, arguments))

    def store_edge(self, source_id: str, target_id: str, edge_type: str, **arguments: Any) -> str:
        """Relate two memories; see ``Memory.store_edge``."""
        return self._ask(edge_call(source_id, target_id, edge_type, arguments))

    def retrieve(self, query: str, **arguments: Any) -> Answer:
        """Answer a question; see ``Memory.retrieve``."""
        return self._ask(retrieve_call(query, arguments))

    def get(self, node_id: str, **whose: Any) -> Node:
        """Return a memory by id; see ``Memory.get``."""
        return self._ask(get_call("node", node_id, Node, whose))

    def get_event(self, event_id: str, **whose: Any) -> Event:
        """Return a source event by id; see ``Memory.get_event``."""
        return self._ask(get_call("event", event_id, Event, whose))

    def health(self) -> Health:
        """Return the state of every shard; needs ``memory:admin``."""
        return self._ask(health_call())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, call: Call[T]) -> T:
        attempts = self._attempts(call)
        while True:
            came: _Came
            try:
                came = self._http.request(**self._request(call))
            except httpx.TransportError as error:
                came = error
            delay = attempts.after(came)
            if delay is None:
                return attempts.result(came)
            time.sleep(delay)


class AsyncClient(AsyncRecordVerbs, _Common):
    """Asyncio face of :class:`Client`; every verb takes the same arguments."""

    def __init__(self, base_url: str, *, api_key: str | None = None, timeout: float = 30.0, retries: int = 2) -> None:
        super().__init__(base_url, api_key, retries)
        self._http = httpx.AsyncClient(timeout=timeout)

    async def store(self, content: str, **arguments: Any) -> Stored:
        """Remember a text; see ``Memory.store``."""
        return await self._ask(write_call("/v1/store", content, arguments))

    async def store_many(self, items: Iterable[Any] | AsyncIterable[Any], **arguments: Any) -> list[Stored]:
        """Remember a stream of texts; see ``Memory.store_many``. An async iterable is read to its end first."""
        given = [item async for item in items] if isinstance(items, AsyncIterable) else items
        result = ItemsResult()
        for call in batches(given, arguments):
            try:
                result.add(await self._ask(call))
            except InvalidItems as error:
                result.refuse(error)
        return result.receipts()

    async def store_node(self, content: str, **arguments: Any) -> Stored:
        """Store a structured memory; see ``Memory.store_node``."""
        return await self._ask(write_call("/v1/nodes", content, arguments))

    async def store_edge(self, source_id: str, target_id: str, edge_type: str, **arguments: Any) -> str:
        """Relate two memories; see ``Memory.store_edge``."""
        return await self._ask(edge_call(source_id, target_id, edge_type, arguments))

    async def retrieve(self, query: str, **arguments: Any) -> Answer:
        """Answer a question; see ``Memory.retrieve``."""
        return await self._ask(retrieve_call(query, arguments))

    async def get(self, node_id: str, **whose: Any) -> Node:
        """Return a memory by id; see ``Memory.get``."""
        return await self._ask(get_call("node", node_id, Node, whose))

    async def get_event(self, event_id: str, **whose: Any) -> Event:
        """Return a source event by id; see ``Memory.get_event``."""
        return await self._ask(get_call("event", event_id, Event, whose))

    async def health(self) -> Health:
        """Return the state of every shard; needs ``memory:admin``."""
        return await self._ask(health_call())

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(self, call: Call[T]) -> T:
        attempts = self._attempts(call)
        while True:
            came: _Came
            try:
                came = await self._http.request(**self._request(call))
            except httpx.TransportError as error:
                came = error
            delay = attempts.after(came)
            if delay is None:
                return attempts.result(came)
            await asyncio.sleep(delay)
