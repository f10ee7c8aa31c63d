"""The verbs of both clients about past retrievals and what became of them."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from prme_ray.client_calls import Call, post_call, read_call
from prme_ray.model.feedback import Citations, CitationsPage, Relevance, RelevancePage
from prme_ray.model.retrievals import ChainReport, Replay, Reproduction, Retrieval, RetrievalPage
from prme_ray.model.text import uuid_of

__all__ = ["AsyncRecordVerbs", "RecordVerbs"]

T = TypeVar("T")


def _retrieval(request_id: str, whose: Mapping[str, Any]) -> Call[Retrieval]:
    return read_call(f"/v1/retrievals/{uuid_of(request_id, 'request_id')}", Retrieval, whose)


def _replay(request_id: str, whose: Mapping[str, Any]) -> Call[Replay]:
    return post_call(f"/v1/retrievals/{uuid_of(request_id, 'request_id')}/replay", Replay, whose)


def _reproduce(request_id: str, whose: Mapping[str, Any]) -> Call[Reproduction]:
    return post_call(f"/v1/retrievals/{uuid_of(request_id, 'request_id')}/reproduce", Reproduction, whose)


def _judge(request_id: str, labels: Mapping[str, bool], arguments: Mapping[str, Any]) -> Call[Relevance]:
    body = _named("feedback_id", {**arguments, "request_id": request_id, "labels": labels})
    return post_call("/v1/relevance", Relevance, body)


def _cite(request_id: str, cited_node_ids: Sequence[str], arguments: Mapping[str, Any]) -> Call[Citations]:
    body = _named("citation_id", {**arguments, "request_id": request_id, "cited_node_ids": cited_node_ids})
    return post_call("/v1/answer-citations", Citations, body)


def _named(argument: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return a body with an id of the caller's, so that a repeat of a lost answer is not a second record."""
    return body if body.get(argument) is not None else {**body, argument: str(uuid.uuid4())}


def _relevance(feedback_id: str, whose: Mapping[str, Any]) -> Call[Relevance]:
    return read_call(f"/v1/relevance/{uuid_of(feedback_id, 'feedback_id')}", Relevance, whose)


def _citations(citation_id: str, whose: Mapping[str, Any]) -> Call[Citations]:
    return read_call(f"/v1/answer-citations/{uuid_of(citation_id, 'citation_id')}", Citations, whose)


class RecordVerbs(ABC):
    """Of :class:`~prme_ray.client.Client`."""

    @abstractmethod
    def _ask(self, call: Call[T]) -> T:
        """Return what a call gives."""

    def get_retrieval(self, request_id: str, **whose: Any) -> Retrieval:
        """Return a past retrieval; see ``Memory.get_retrieval``."""
        return self._ask(_retrieval(request_id, whose))

    def list_retrievals(self, **arguments: Any) -> RetrievalPage:
        """Return a page of past retrievals; see ``Memory.list_retrievals``."""
        return self._ask(read_call("/v1/retrievals", RetrievalPage, arguments))

    def replay(self, request_id: str, **whose: Any) -> Replay:
        """Derive scores and order from a receipt; see ``Memory.replay``."""
        return self._ask(_replay(request_id, whose))

    def reproduce(self, request_id: str, **whose: Any) -> Reproduction:
        """Run a past retrieval again; see ``Memory.reproduce``."""
        return self._ask(_reproduce(request_id, whose))

    def verify_chain(self, **whose: Any) -> ChainReport:
        """Follow the chain of an owner's records; see ``Memory.verify_chain``."""
        return self._ask(read_call("/v1/chain", ChainReport, whose))

    def record_relevance(self, request_id: str, labels: Mapping[str, bool], **arguments: Any) -> Relevance:
        """Say which memories were relevant; see ``Memory.record_relevance``."""
        return self._ask(_judge(request_id, labels, arguments))

    def get_relevance(self, feedback_id: str, **whose: Any) -> Relevance:
        """Return a judgement; see ``Memory.get_relevance``."""
        return self._ask(_relevance(feedback_id, whose))

    def list_relevance(self, **arguments: Any) -> RelevancePage:
        """Return a page of judgements; see ``Memory.list_relevance``."""
        return self._ask(read_call("/v1/relevance", RelevancePage, arguments))

    def record_citations(self, request_id: str, cited_node_ids: Sequence[str], **arguments: Any) -> Citations:
        """Say which memories an answer cites; see ``Memory.record_citations``."""
        return self._ask(_cite(request_id, cited_node_ids, arguments))

    def get_citations(self, citation_id: str, **whose: Any) -> Citations:
        """Return an answer's citations; see ``Memory.get_citations``."""
        return self._ask(_citations(citation_id, whose))

    def list_citations(self, **arguments: Any) -> CitationsPage:
        """Return a page of citations; see ``Memory.list_citations``."""
        return self._ask(read_call("/v1/answer-citations", CitationsPage, arguments))


class AsyncRecordVerbs(ABC):
    """Of :class:`~prme_ray.client.AsyncClient`; every verb takes the arguments of :class:`RecordVerbs`."""

    @abstractmethod
    async def _ask(self, call: Call[T]) -> T:
        """Return what a call gives."""

    async def get_retrieval(self, request_id: str, **whose: Any) -> Retrieval:
        """Return a past retrieval; see ``Memory.get_retrieval``."""
        return await self._ask(_retrieval(request_id, whose))

    async def list_retrievals(self, **arguments: Any) -> RetrievalPage:
        """Return a page of past retrievals; see ``Memory.list_retrievals``."""
        return await self._ask(read_call("/v1/retrievals", RetrievalPage, arguments))

    async def replay(self, request_id: str, **whose: Any) -> Replay:
        """Derive scores and order from a receipt; see ``Memory.replay``."""
        return await self._ask(_replay(request_id, whose))

    async def reproduce(self, request_id: str, **whose: Any) -> Reproduction:
        """Run a past retrieval again; see ``Memory.reproduce``."""
        return await self._ask(_reproduce(request_id, whose))

    async def verify_chain(self, **whose: Any) -> ChainReport:
        """Follow the chain of an owner's records; see ``Memory.verify_chain``."""
        return await self._ask(read_call("/v1/chain", ChainReport, whose))

    async def record_relevance(self, request_id: str, labels: Mapping[str, bool], **arguments: Any) -> Relevance:
        """Say which memories were relevant; see ``Memory.record_relevance``."""
        return await self._ask(_judge(request_id, labels, arguments))

    async def get_relevance(self, feedback_id: str, **whose: Any) -> Relevance:
        """Return a judgement; see ``Memory.get_relevance``."""
        return await self._ask(_relevance(feedback_id, whose))

    async def list_relevance(self, **arguments: Any) -> RelevancePage:
        """Return a page of judgements; see ``Memory.list_relevance``."""
        return await self._ask(read_call("/v1/relevance", RelevancePage, arguments))

    async def record_citations(self, request_id: str, cited_node_ids: Sequence[str], **arguments: Any) -> Citations:
        """Say which memories an answer cites; see ``Memory.record_citations``."""
        return await self._ask(_cite(request_id, cited_node_ids, arguments))

    async def get_citations(self, citation_id: str, **whose: Any) -> Citations:
        """Return an answer's citations; see ``Memory.get_citations``."""
        return await self._ask(_citations(citation_id, whose))

    async def list_citations(self, **arguments: Any) -> CitationsPage:
        """Return a page of citations; see ``Memory.list_citations``."""
        return await self._ask(read_call("/v1/answer-citations", CitationsPage, arguments))
