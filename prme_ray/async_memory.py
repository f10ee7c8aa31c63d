"""The same verbs for asyncio: calls run in threads, the event loop never waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prme_ray.answer import Answer
from prme_ray.health import Health
from prme_ray.memory import Memory
from prme_ray.model.feedback import Citations, CitationsPage, Relevance, RelevancePage
from prme_ray.model.nodes import Event, Node
from prme_ray.model.retrievals import ChainReport, Replay, Reproduction, Retrieval, RetrievalPage
from prme_ray.writing import Stored

__all__ = ["AsyncMemory"]

_END = object()


class AsyncMemory:
    """Asyncio face of :class:`~prme_ray.memory.Memory`; every verb takes the same arguments.

    Example:
        >>> import asyncio, tempfile
        >>> from prme_ray import AsyncMemory
        >>> async def main(folder):
        ...     async with await AsyncMemory.open(folder + "/memory") as memory:
        ...         await memory.store("Oscar is a cat.", owner="dana")
        ...         answer = await memory.retrieve("Who is Oscar?", owner="dana")
        ...         return answer.metadata.outcome.value
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     asyncio.run(main(folder))
        'results'
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @classmethod
    async def open(cls, path: str | Path, **options: Any) -> AsyncMemory:
        """Open a store; see ``Memory.open``."""
        return cls(await asyncio.to_thread(Memory.open, path, **options))

    async def store(self, content: str, **arguments: Any) -> Stored:
        """Remember a text; see ``Memory.store``."""
        return await asyncio.to_thread(self._memory.store, content, **arguments)

    async def store_many(self, items: Iterable[Any] | AsyncIterable[Any], **arguments: Any) -> list[Stored]:
        """Remember a stream of texts; see ``Memory.store_many``. Takes async iterables too."""
        if not isinstance(items, AsyncIterable):
            return await asyncio.to_thread(self._memory.store_many, items, **arguments)
        pulled = _pulled(aiter(items), asyncio.get_running_loop())
        return await asyncio.to_thread(self._memory.store_many, pulled, **arguments)

    async def store_node(self, content: str, **arguments: Any) -> Stored:
        """Store a structured memory; see ``Memory.store_node``."""
        return await asyncio.to_thread(self._memory.store_node, content, **arguments)

    async def store_edge(self, source_id: str, target_id: str, edge_type: str, **arguments: Any) -> str:
        """Relate two memories; see ``Memory.store_edge``."""
        return await asyncio.to_thread(self._memory.store_edge, source_id, target_id, edge_type, **arguments)

    async def retrieve(self, query: str, **arguments: Any) -> Answer:
        """Answer a question; see ``Memory.retrieve``."""
        return await asyncio.to_thread(self._memory.retrieve, query, **arguments)

    async def get(self, node_id: str, **arguments: Any) -> Node:
        """Return a memory by id; see ``Memory.get``."""
        return await asyncio.to_thread(self._memory.get, node_id, **arguments)

    async def get_event(self, event_id: str, **arguments: Any) -> Event:
        """Return a source event by id; see ``Memory.get_event``."""
        return await asyncio.to_thread(self._memory.get_event, event_id, **arguments)

    async def get_retrieval(self, request_id: str, **arguments: Any) -> Retrieval:
        """Return a past retrieval; see ``Memory.get_retrieval``."""
        return await asyncio.to_thread(self._memory.get_retrieval, request_id, **arguments)

    async def list_retrievals(self, **arguments: Any) -> RetrievalPage:
        """Return a page of past retrievals; see ``Memory.list_retrievals``."""
        return await asyncio.to_thread(self._memory.list_retrievals, **arguments)

    async def replay(self, request_id: str, **arguments: Any) -> Replay:
        """Derive scores and order from a receipt; see ``Memory.replay``."""
        return await asyncio.to_thread(self._memory.replay, request_id, **arguments)

    async def reproduce(self, request_id: str, **arguments: Any) -> Reproduction:
        """Run a past retrieval again; see ``Memory.reproduce``."""
        return await asyncio.to_thread(self._memory.reproduce, request_id, **arguments)

    async def verify_chain(self, **arguments: Any) -> ChainReport:
        """Follow the chain of an owner's records; see ``Memory.verify_chain``."""
        return await asyncio.to_thread(self._memory.verify_chain, **arguments)

    async def record_relevance(self, request_id: str, labels: Mapping[str, bool], **arguments: Any) -> Relevance:
        """Say which memories were relevant; see ``Memory.record_relevance``."""
        return await asyncio.to_thread(self._memory.record_relevance, request_id, labels, **arguments)

    async def get_relevance(self, feedback_id: str, **arguments: Any) -> Relevance:
        """Return a judgement; see ``Memory.get_relevance``."""
        return await asyncio.to_thread(self._memory.get_relevance, feedback_id, **arguments)

    async def list_relevance(self, **arguments: Any) -> RelevancePage:
        """Return a page of judgements; see ``Memory.list_relevance``."""
        return await asyncio.to_thread(self._memory.list_relevance, **arguments)

    async def record_citations(self, request_id: str, cited_node_ids: Sequence[str], **arguments: Any) -> Citations:
        """Say which memories an answer cites; see ``Memory.record_citations``."""
        return await asyncio.to_thread(self._memory.record_citations, request_id, cited_node_ids, **arguments)

    async def get_citations(self, citation_id: str, **arguments: Any) -> Citations:
        """Return an answer's citations; see ``Memory.get_citations``."""
        return await asyncio.to_thread(self._memory.get_citations, citation_id, **arguments)

    async def list_citations(self, **arguments: Any) -> CitationsPage:
        """Return a page of citations; see ``Memory.list_citations``."""
        return await asyncio.to_thread(self._memory.list_citations, **arguments)

    async def health(self) -> Health:
        """Return the state of every shard; see ``Memory.health``."""
        return await asyncio.to_thread(self._memory.health)

    async def flush(self) -> None:
        """Write everything to the LanceDB tables now."""
        await asyncio.to_thread(self._memory.flush)

    async def close(self) -> None:
        """Finish writes, flush, release the lock."""
        await asyncio.to_thread(self._memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _pulled(items: AsyncIterator[Any], loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    """Yield, in a worker thread, what the loop's iterator gives, one at a time."""

    async def following() -> Any:
        return await anext(items, _END)

    while (item := asyncio.run_coroutine_threadsafe(following(), loop).result()) is not _END:
        yield item
