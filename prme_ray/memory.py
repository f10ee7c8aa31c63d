"""The embedded product: open a store, remember, retrieve."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from prme_ray.answer import Answer
from prme_ray.defaults import DEFAULT_TENANT, new_uuid, owner_key, utc_now
from prme_ray.feedback import Feedback
from prme_ray.feedback_verbs import FeedbackVerbs
from prme_ray.health import Health, health_of
from prme_ray.model.errors import NotFound, StoreClosed
from prme_ray.model.nodes import Event, Node
from prme_ray.model.protocols import CrossEncoder, EmbeddingProvider, Reformulator
from prme_ray.model.settings import ScoringSettings, Settings
from prme_ray.model.text import check_text
from prme_ray.model.times import Instant
from prme_ray.opening import open_parts
from prme_ray.receipt_verbs import ReceiptVerbs
from prme_ray.receipts import Receipts
from prme_ray.retrieval import Retriever
from prme_ray.writing import Writer
from prme_ray.writing_verbs import WritingVerbs
from storage.encoder.cache import CachedEncoder
from storage.records import EntryKind
from storage.store import Store

if TYPE_CHECKING:  # Ray is only loaded where the flow runs on it
    from actors.remote_store import RemoteStore
    from prme_ray.connected import ConnectedMemory

__all__ = ["Memory"]


class Memory(WritingVerbs, ReceiptVerbs, FeedbackVerbs):
    """The long-term memory of agents, in one folder. Safe to use from many threads.

    Example:
        >>> import tempfile
        >>> from prme_ray import Memory
        >>> with tempfile.TemporaryDirectory() as folder, Memory.open(folder + "/memory") as memory:
        ...     _ = memory.store("Caroline: I adopted a cat called Oscar.", owner="dana")
        ...     answer = memory.retrieve("What is Caroline's cat called?", owner="dana", token_budget=1024)
        ...     "Oscar" in answer.bundle.context
        True

    Use :meth:`open`; close it, or use it as a context manager.
    """

    def __init__(
        self,
        store: Store | RemoteStore,
        retriever: Retriever,
        writer: Writer,
        *,
        after: Callable[[], None] | None = None,
        new_id: Callable[[], str] = new_uuid,
    ) -> None:
        self._after = after
        self._new_id = new_id
        self._store = store
        self._retriever = retriever
        self._writer = writer
        self._closed = False

    @staticmethod
    def connect(address: str = "auto", *, store: str | None = None) -> ConnectedMemory:
        """Use a store that a Ray cluster serves, from any process that can reach the cluster.

        Args:
            address: The cluster; ``"auto"`` for the one this machine or job belongs to.
            store: Name of the store; may be left out where the cluster serves one only.

        Returns:
            The verbs of a memory. Answers come as HTTP gives them; nothing of the store is read here.

        Raises:
            NotFound: the cluster serves no such store, or several and none was named.
        """
        from prme_ray.connected import connect

        return connect(address, store=store)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        settings: Settings | Mapping[str, Any] | None = None,
        encoder: EmbeddingProvider | None = None,
        cross_encoder: CrossEncoder | None = None,
        reformulate: Reformulator | None = None,
        read_only: bool = False,
        executor: str = "inline",
        address: str | None = None,
        keep: bool = False,
        clock: Callable[[], datetime] = utc_now,
        new_id: Callable[[], str] = new_uuid,
    ) -> Memory:
        """Open a store, creating it when the folder is missing or empty.

        Args:
            path: Folder of the store.
            settings: Settings or a mapping of them; the product defaults when left out.
            encoder: Your own embedding provider; it must be given again at every open.
            cross_encoder: Orders the best candidates where ``settings.rerank`` is on.
            reformulate: Words questions differently where ``settings.reformulation`` is on.
            read_only: Read beside a writer, in this or another process. Such a process writes nothing, so its
                requests are not on record: ``metadata.receipt_persisted`` is false.
            executor: ``inline`` (plain calls in this process), ``ray`` (search, embedding and writing on
                actors) or ``compiled`` (the same through Ray's compiled graphs). All give the same bytes.
            address: Ray cluster to join, ``"auto"`` for this machine's; the cluster this process has
                joined, or one started for it, when left out.
            keep: Leave the actors running at close, for other processes.
            clock: Returns the current time, aware; for tests and imports.
            new_id: Returns a fresh UUID as text; for tests.

        Raises:
            StoreLocked: another writer has it open; the message names its process.
            StoreFormatTooNew: it was written by a newer prme-ray.
            StoreCorrupt: the folder is something else, or files contradict the log.
            InvalidSettings: naming the wrong key, or an option that is on without its helper.
            EncoderFileMismatch: the model file is not the expected one.
        """
        parts = open_parts(
            path,
            settings=settings,
            encoder=encoder,
            cross_encoder=cross_encoder,
            reformulate=reformulate,
            read_only=read_only,
            executor=executor,
            address=address,
            keep=keep,
            clock=clock,
            new_id=new_id,
            again=functools.partial(
                cls.open,
                str(Path(path).absolute()),
                settings=settings,
                encoder=encoder,
                cross_encoder=cross_encoder,
                reformulate=reformulate,
                executor=executor,
                keep=True,
            ),
        )
        return cls(parts.store, parts.retriever, parts.writer, after=parts.after, new_id=new_id)

    # -- reading --------------------------------------------------------------------------------

    def retrieve(
        self,
        query: str,
        *,
        owner: str,
        tenant: str = DEFAULT_TENANT,
        token_budget: int | None = None,
        scope: str | Collection[str] | None = None,
        reference_time: Instant | None = None,
        time_from: Instant | None = None,
        time_to: Instant | None = None,
        knowledge_at: Instant | None = None,
        event_time_from: Instant | None = None,
        event_time_to: Instant | None = None,
        min_fidelity: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
        max_per_source: int | None = None,
        max_per_evidence: int | None = None,
        exclude_node_types: Collection[str] | None = None,
        source_types: Collection[str] | None = None,
        weights: ScoringSettings | Mapping[str, Any] | None = None,
        ranking_multipliers: Mapping[str, float] | None = None,
        retrieval_mode: str = "default",
        include_cross_scope: bool = True,
        as_of: int | Instant | None = None,
        request_id: str | None = None,
    ) -> Answer:
        """Answer a question from one owner's memories.

        Args:
            query: Plain text; nothing in it is an operator.
            owner: On whose behalf; no other owner's memory can be seen or change a score.
            tenant: Tenant of the owner.
            token_budget: Tokens the packed context may take, the caller's overhead included.
            scope: A scope or several; all when left out.
            reference_time: "Now" of the question: relative dates and decay.
            time_from: Keep memories still valid after it.
            time_to: Keep memories already valid at it.
            knowledge_at: Keep what had been stored by then.
            event_time_from: Keep what happened at or after it.
            event_time_to: Keep what happened at or before it.
            min_fidelity: Lowest representation a memory may be packed at.
            min_score: Lowest relevance: cosine under rank fusion, score under the weighted formula.
            limit: Most memories, pins included.
            max_per_source: Most memories with one evidence set and one text.
            max_per_evidence: Most memories with one evidence set.
            exclude_node_types: Kinds of memory to leave out.
            source_types: Kinds of source to keep; an empty list keeps nothing.
            weights: Scoring settings of this request.
            ranking_multipliers: Factors of the weighted formula's signals.
            retrieval_mode: default, explicit (no epistemic filter) or audit (retired memories too).
            include_cross_scope: Also hint at memories outside ``scope``.
            as_of: Answer exactly from the owner's state at this number of theirs (``metadata.snapshot`` of
                an answer, ``sequence`` of a store), or at this time. ``reference_time`` stays as it is.
            request_id: UUID of the request; made up when left out.

        Raises:
            InvalidRequest: an argument is not allowed; checked before anything is searched.
            SnapshotExpired: with ``as_of``: the vectors of that time are no longer kept.
            EncoderMismatch: vectors of another encoder, with ``embedding_mismatch_policy="reject"``.
            ReadOnlyStore: with ``strict_receipts``, in a process that only reads.
            WriteFailed: with ``strict_receipts``: the record could not be made durable.
        """
        if self._closed:
            raise StoreClosed(path=str(self._store.path))
        return self._retriever.retrieve(
            query,
            owner=owner,
            tenant=tenant,
            request_id=request_id,
            token_budget=token_budget,
            scope=scope,
            reference_time=reference_time,
            time_from=time_from,
            time_to=time_to,
            knowledge_at=knowledge_at,
            event_time_from=event_time_from,
            event_time_to=event_time_to,
            min_fidelity=min_fidelity,
            min_score=min_score,
            limit=limit,
            max_per_source=max_per_source,
            max_per_evidence=max_per_evidence,
            exclude_node_types=exclude_node_types,
            source_types=source_types,
            weights=weights,
            ranking_multipliers=ranking_multipliers,
            retrieval_mode=retrieval_mode,
            include_cross_scope=include_cross_scope,
            as_of=as_of,
        )

    def get(self, node_id: str, *, owner: str, tenant: str = DEFAULT_TENANT) -> Node:
        """Return a memory by id, whatever its state.

        Raises:
            NotFound: this owner has no such memory; the same for another owner's id.
        """
        subject = check_text(node_id, "node_id").lower()
        row = self._open_store().record(owner_key(tenant, owner), EntryKind.NODE, subject)
        node = None if row is None else Node.model_validate_json(row.payload)
        if node is None or node.structural:
            raise NotFound(kind="memory", id=node_id)
        return node

    def get_event(self, event_id: str, *, owner: str, tenant: str = DEFAULT_TENANT) -> Event:
        """Return a source event by id.

        Raises:
            NotFound: this owner has no such event.
        """
        subject = check_text(event_id, "event_id").lower()
        row = self._open_store().record(owner_key(tenant, owner), EntryKind.EVENT, subject)
        if row is None:
            raise NotFound(kind="event", id=event_id)
        return Event.model_validate_json(row.payload)

    @property
    def encoder(self) -> CachedEncoder:
        """The encoder behind its cache, which counts hits and misses."""
        return self._retriever.encoder

    def health(self) -> Health:
        """Return the state of every shard; counts of log and channels must agree."""
        return health_of(self._open_store())

    # -- life -----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write everything to the LanceDB tables now. Nothing depends on it; backups may like it."""
        self._open_store().flush()

    def close(self) -> None:
        """Finish writes, flush, release the lock. Closing twice is harmless."""
        self._closed = True
        try:
            self._store.close()
        finally:
            after, self._after = self._after, None
            if after is not None:
                after()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_store(self) -> Store | RemoteStore:
        if self._closed:
            raise StoreClosed(path=str(self._store.path))
        return self._store

    def _open_receipts(self) -> Receipts:
        return Receipts(self._open_store(), self._retriever)

    def _open_feedback(self) -> Feedback:
        return Feedback(self._open_store(), self._open_receipts(), new_id=self._new_id)

    def _open_writer(self) -> Writer:
        self._open_store()
        return self._writer
