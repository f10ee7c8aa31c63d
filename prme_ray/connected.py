"""A store that a Ray cluster serves, from a process that only reaches the cluster."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from prme_ray.model.feedback import Citations, CitationsPage, Relevance, RelevancePage
from prme_ray.model.nodes import Event, Node
from prme_ray.model.retrievals import ChainReport, Replay, Reproduction, Retrieval, RetrievalPage
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

    def get_retrieval(self, request_id: str, **arguments: Any) -> Retrieval:
        """Return a past retrieval; see ``Memory.get_retrieval``."""
        found: Retrieval = self._call("get_retrieval", request_id, **arguments)
        return found

    def list_retrievals(self, **arguments: Any) -> RetrievalPage:
        """Return a page of past retrievals; see ``Memory.list_retrievals``."""
        found: RetrievalPage = self._call("list_retrievals", **arguments)
        return found

    def replay(self, request_id: str, **arguments: Any) -> Replay:
        """Derive scores and order from a receipt; see ``Memory.replay``."""
        found: Replay = self._call("replay", request_id, **arguments)
        return found

    def reproduce(self, request_id: str, **arguments: Any) -> Reproduction:
        """Run a past retrieval again; see ``Memory.reproduce``."""
        found: Reproduction = self._call("reproduce", request_id, **arguments)
        return found

    def verify_chain(self, **arguments: Any) -> ChainReport:
        """Follow the chain of an owner's records; see ``Memory.verify_chain``."""
        found: ChainReport = self._call("verify_chain", **arguments)
        return found

    def record_relevance(self, request_id: str, labels: Mapping[str, bool], **arguments: Any) -> Relevance:
        """Say which memories were relevant; see ``Memory.record_relevance``."""
        found: Relevance = self._call("record_relevance", request_id, labels, **arguments)
        return found

    def get_relevance(self, feedback_id: str, **arguments: Any) -> Relevance:
        """Return a judgement; see ``Memory.get_relevance``."""
        found: Relevance = self._call("get_relevance", feedback_id, **arguments)
        return found

    def list_relevance(self, **arguments: Any) -> RelevancePage:
        """Return a page of judgements; see ``Memory.list_relevance``."""
        found: RelevancePage = self._call("list_relevance", **arguments)
        return found

    def record_citations(self, request_id: str, cited_node_ids: Sequence[str], **arguments: Any) -> Citations:
        """Say which memories an answer cites; see ``Memory.record_citations``."""
        found: Citations = self._call("record_citations", request_id, cited_node_ids, **arguments)
        return found

    def get_citations(self, citation_id: str, **arguments: Any) -> Citations:
        """Return an answer's citations; see ``Memory.get_citations``."""
        found: Citations = self._call("get_citations", citation_id, **arguments)
        return found

    def list_citations(self, **arguments: Any) -> CitationsPage:
        """Return a page of citations; see ``Memory.list_citations``."""
        found: CitationsPage = self._call("list_citations", **arguments)
        return found

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
