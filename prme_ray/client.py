"""Clients of the HTTP service: the verbs, results and errors of ``Memory``, from another process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

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
from prme_ray.health import Health
from prme_ray.http.wire import error_of
from prme_ray.model.errors import InvalidItems, InvalidRequest, PrmeRayError, ServiceUnavailable
from prme_ray.model.nodes import Event, Node
from prme_ray.writing import Stored

__all__ = ["AsyncClient", "Client"]

T = TypeVar("T")

_RETRIED = frozenset({429, 503})
_SUCCESS = 200
_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 30.0


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

    def _delay(self, attempt: int, response: httpx.Response | None) -> float | None:
        """Return how long to wait before the next attempt, in seconds; ``None`` where there is none."""
        if attempt >= self._retries or (response is not None and response.status_code not in _RETRIED):
            return None
        told = "" if response is None else response.headers.get("Retry-After", "")
        wanted = float(told) if told.isdecimal() else _FIRST_DELAY_S * 2**attempt
        return min(wanted, _LONGEST_DELAY_S)

    def _unreachable(self, error: httpx.TransportError) -> PrmeRayError:
        return ServiceUnavailable(what=self._base_url, detail=type(error).__name__)


def _read(call: Call[T], response: httpx.Response) -> T:
    if response.status_code != _SUCCESS:
        raise error_of(response.status_code, response.content)
    return call.read(response.content)


class Client(_Common):
    """A service's memory with the verbs of :class:`~prme_ray.memory.Memory`. Safe to use from many threads.

    Calls are repeated on a broken connection, 429 and 503: reads change nothing, and writes carry an
    idempotency key, so a repeat never stores twice. ``owner`` and ``tenant`` may be left out where the
    key is bound to them. Errors are those of ``Memory``; one that this version does not know is a
    ``ServiceError``.

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


class AsyncClient(_Common):
    """Asyncio face of :class:`Client`; every verb takes the same arguments."""

    def __init__(self, base_url: str, *, api_key: str | None = None, timeout: float = 30.0, retries: int = 2) -> None:
        super().__init__(base_url, api_key, retries)
        self._http = httpx.AsyncClient(timeout=timeout)
