"""What the service is built over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from prme_ray.answer import Answer
from prme_ray.health import Health
from prme_ray.model.feedback import Citations, CitationsPage, Relevance, RelevancePage
from prme_ray.model.nodes import Event, Node
from prme_ray.model.retrievals import ChainReport, Replay, Reproduction, Retrieval, RetrievalPage
from prme_ray.writing import Stored

__all__ = ["MemoryVerbs"]


class MemoryVerbs(Protocol):
    """The verbs of ``prme_ray.Memory``, whatever executor it has."""

    def store(self, content: str, **arguments: Any) -> Stored:
        """Remember a text."""
        ...

    def store_many(self, items: list[Any], **arguments: Any) -> list[Stored]:
        """Remember many texts."""
        ...

    def store_node(self, content: str, **arguments: Any) -> Stored:
        """Store a structured memory."""
        ...

    def store_edge(self, source_id: str, target_id: str, edge_type: str, **arguments: Any) -> str:
        """Relate two memories."""
        ...

    def retrieve(self, query: str, **arguments: Any) -> Answer:
        """Answer a question."""
        ...

    def get(self, node_id: str, **arguments: Any) -> Node:
        """Return a memory."""
        ...

    def get_event(self, event_id: str, **arguments: Any) -> Event:
        """Return a source event."""
        ...

    def get_retrieval(self, request_id: str, **arguments: Any) -> Retrieval:
        """Return a past retrieval."""
        ...

    def list_retrievals(self, **arguments: Any) -> RetrievalPage:
        """Return a page of past retrievals."""
        ...

    def replay(self, request_id: str, **arguments: Any) -> Replay:
        """Derive a past retrieval's scores and order from its receipt."""
        ...

    def reproduce(self, request_id: str, **arguments: Any) -> Reproduction:
        """Run a past retrieval again."""
        ...

    def verify_chain(self, **arguments: Any) -> ChainReport:
        """Follow the chain of an owner's records."""
        ...

    def record_relevance(self, request_id: str, labels: Mapping[str, bool], **arguments: Any) -> Relevance:
        """Keep a judgement."""
        ...

    def get_relevance(self, feedback_id: str, **arguments: Any) -> Relevance:
        """Return a judgement."""
        ...

    def list_relevance(self, **arguments: Any) -> RelevancePage:
        """Return a page of judgements."""
        ...

    def record_citations(self, request_id: str, cited_node_ids: Sequence[str], **arguments: Any) -> Citations:
        """Keep an answer's citations."""
        ...

    def get_citations(self, citation_id: str, **arguments: Any) -> Citations:
        """Return an answer's citations."""
        ...

    def list_citations(self, **arguments: Any) -> CitationsPage:
        """Return a page of citations."""
        ...

    def health(self) -> Health:
        """Return the state of the store."""
        ...

    def close(self) -> None:
        """Finish writes and release the store."""
        ...
