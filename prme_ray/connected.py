"""A store that a Ray cluster serves, from a process that only reaches the cluster."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from itertools import islice
from types import TracebackType
from typing import Any, Self

import ray

from actors.handles import directory_of
from actors.results import result_of
from actors.spec import NAMESPACE
from prme_ray.answer import Answer
from prme_ray.client_calls import answer_of
from prme_ray.health import Health
from prme_ray.http.answer_json import AnswerEncoder
from prme_ray.model.errors import InvalidItems, NotFound, StoreClosed
from prme_ray.model.nodes import Event, Node
from prme_ray.writing import Stored

__all__ = ["ConnectedMemory", "connect", "encode_answer"]

_BATCH = 200
"""Items of one call of ``store_many``."""
_ANSWER_S = 120.0


@functools.cache
def _encoder() -> AnswerEncoder:
    return AnswerEncoder()


def encode_answer(answer: Answer) -> bytes:
    """Return an answer as JSON, the way the HTTP service gives it."""
    return _encoder().encode(answer)


def connect(address: str, *, store: str | None) -> ConnectedMemory:
    """Return the verbs of a store; see ``Memory.connect``."""
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    names = _served()
    if store is None and len(names) == 1:
        store = names[0]
    if store not in names:
        told = ", ".join(names) or "none"
        raise NotFound(kind="store", id=f"{store or 'unnamed'} (this cluster serves: {told})")
    directory = directory_of(store)
    name = result_of(directory.coordinator.remote(), "directory", _ANSWER_S)
    coordinator = ray.get_actor(name, NAMESPACE)
    result_of(coordinator.ready.remote(), "coordinator", _ANSWER_S)
    return ConnectedMemory(store, coordinator)


def _served() -> list[str]:
    named = ray.util.list_named_actors(all_namespaces=True)
    mine = [item["name"] for item in named if item["namespace"] == NAMESPACE]
    return sorted(name.removesuffix("/directory") for name in mine if name.endswith("/directory"))


class ConnectedMemory:
    """The verbs of ``Memory``, with its arguments, results and errors. Closing it ends nothing in the cluster."""

    def __init__(self, store: str, coordinator: Any) -> None:
        self.store_name = store
        """Name of the store in the cluster."""
        self._coordinator = coordinator
        self._closed = False

    def store(self, content: str, **arguments: Any) -> Stored:
        """Remember a text; see ``Memory.store``."""
        stored: Stored = self._call("store", content, **arguments)
        return stored

    def store_many(self, items: Iterable[Any], **arguments: Any) -> list[Stored]:
        """Remember a stream of texts; see ``Memory.store_many``.

        Raises:
            InvalidItems: some items were refused, all others are stored; positions are those of the stream.
        """
        stored: list[Stored] = []
        rejected: list[Any] = []
        for start, batch in _batches(items):
            try:
                stored += self._call("store_many", batch, **arguments)
            except InvalidItems as error:
                stored += error.stored
                for refusal in error.rejected:
                    refusal.fields["item"] += start
                    rejected.append(refusal)
        if rejected:
            raise InvalidItems(rejected=tuple(rejected), stored=tuple(stored))
        return stored

    def store_node(self, content: str, **arguments: Any) -> Stored:
        """Store a structured memory; see ``Memory.store_node``."""
        stored: Stored = self._call("store_node", content, **arguments)
        return stored

    def store_edge(self, source_id: str, target_id: str, edge_type: str, **arguments: Any) -> str:
        """Relate two memories; see ``Memory.store_edge``."""
        return str(self._call("store_edge", source_id, target_id, edge_type, **arguments))

    def retrieve(self, query: str, **arguments: Any) -> Answer:
        """Answer a question; see ``Memory.retrieve``. Candidates are made when they are looked at."""
        self._check_open()
        return answer_of(result_of(self._coordinator.retrieve.remote(query, arguments), "coordinator", _ANSWER_S))

    def get(self, node_id: str, **arguments: Any) -> Node:
        """Return a memory by id; see ``Memory.get``."""
        node: Node = self._call("get", node_id, **arguments)
        return node

    def get_event(self, event_id: str, **arguments: Any) -> Event:
        """Return a source event by id; see ``Memory.get_event``."""
        event: Event = self._call("get_event", event_id, **arguments)
        return event

    def health(self) -> Health:
        """Return the state of the store."""
        health: Health = self._call("health")
        return health

    def flush(self) -> None:
        """Write everything to the tables now."""
        self._call("flush")

    def close(self) -> None:
        """Let go of the store. Repeatable."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, verb: str, *positional: Any, **named: Any) -> Any:
        self._check_open()
        return result_of(self._coordinator.call.remote(verb, positional, named), "coordinator", _ANSWER_S)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(path=self.store_name)


def _batches(items: Iterable[Any]) -> Iterator[tuple[int, list[Any]]]:
    source, start = iter(items), 0
    while batch := list(islice(source, _BATCH)):
        yield start, batch
        start += len(batch)
