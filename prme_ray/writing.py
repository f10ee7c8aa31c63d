"""Writes: check, embed one text an inference, append, wait until every channel sees it."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from prme_ray.admission import Draft, admission_of, draft_memory, draft_node, edge_entry
from prme_ray.arguments import check_arguments
from prme_ray.idempotency import WriteKey, settle, write_key
from prme_ray.model.enums import EdgeType
from prme_ray.model.errors import EncoderMismatch, InvalidItems, InvalidRequest, InvalidText, NotFound
from prme_ray.model.json_values import is_number, json_object
from prme_ray.model.nodes import Edge
from prme_ray.model.request import one_of
from prme_ray.model.settings import Settings
from prme_ray.model.text import uuid_of
from prme_ray.model.times import Instant, instant
from storage.encoder.cache import CachedEncoder
from storage.records import Admission, Appended, EntryKind, OwnerKey
from storage.shard import Shard
from storage.store import Store

if TYPE_CHECKING:  # Ray is only loaded where the flow runs on it
    from actors.remote_store import RemoteShard, RemoteStore

__all__ = ["MonotonicClock", "Stored", "Writer"]

_IN_FLIGHT = 64
_NOT_OF_STORE = {"settings", "item", "lifecycle_state", "salience", "pinned"}
_ITEM_KEYS = tuple(name for name in inspect.signature(check_arguments).parameters if name not in _NOT_OF_STORE)


@dataclass(frozen=True, slots=True)
class Stored:
    """Receipt of an acknowledged write: durable, and visible to every channel.

    Attributes:
        node_id: Id of the memory.
        event_id: Id of its source event; ``None`` for ``store_node``.
        sequence: The owner's own number of its last entry; a retrieval with ``snapshot >= sequence`` sees it.
    """

    node_id: str
    event_id: str | None
    sequence: int


class MonotonicClock:
    """A clock that never gives one instant twice, so that order of admission is order of time."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._last: datetime | None = None
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        """Return the current time, at least a microsecond after the last one given."""
        with self._lock:
            now = self._clock()
            if self._last is not None and now <= self._last:
                now = self._last + timedelta(microseconds=1)
            self._last = now
            return now


class Writer:
    """Stores memories, nodes and edges.

    Args:
        store: Where they go.
        encoder: Makes their vectors.
        settings: Settings in force.
        clock: Monotonic clock of admissions.
        new_id: Returns a fresh UUID as text.
    """

    def __init__(
        self,
        store: Store | RemoteStore,
        *,
        encoder: CachedEncoder,
        settings: Settings,
        clock: MonotonicClock,
        new_id: Callable[[], str],
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._settings = settings
        self._clock = clock
        self._new_id = new_id

    def store(self, content: str, *, owner: OwnerKey, idempotency_key: str | None = None, **arguments: Any) -> Stored:
        """Store one memory and return when it is durable and visible."""
        shard, generation = self._shard(owner)
        key = write_key(idempotency_key, owner, "store", {**arguments, "content": content})
        draft = self._draft(content, owner=owner, key=key, **arguments)
        admission = admission_of(draft, vector=self._embed(draft), generation=generation)
        return self._stored(draft, admission, shard.submit(admission), key)

    def store_many(
        self, items: Iterable[Any], *, owner: OwnerKey, idempotency_key: str | None = None, **common: Any
    ) -> list[Stored]:
        """Store a stream of memories; texts are embedded side by side, one an inference.

        At most a few dozen items are held at a time, whatever the length of the stream. With an
        idempotency key all items must be there, since the key stands for exactly them.

        Raises:
            InvalidItems: some items were refused; it names them and carries the receipts of all others.
            IdempotencyConflict: the key was used for other items.
        """
        if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
            raise InvalidRequest(
                argument="items", given=type(items).__name__, allowed="an iterable of texts or mappings"
            )
        _check_keys(common)
        if idempotency_key is not None and not isinstance(items, list):
            raise InvalidRequest(
                argument="items", given=type(items).__name__, allowed="a list, where an idempotency key is given"
            )
        shard, generation = self._shard(owner)
        key = write_key(idempotency_key, owner, "store_many", [common, *items] if idempotency_key else None)
        rejected: list[InvalidRequest] = []
        stored: list[Stored] = []
        embedding: deque[tuple[Draft, Future[bytes | None]]] = deque()
        committing: deque[tuple[Draft, Admission, Future[Appended]]] = deque()
        drafts = self._drafts(items, owner, common, rejected, key)

        def submit_one() -> None:
            draft, vector = embedding.popleft()
            admission = admission_of(draft, vector=vector.result(), generation=generation)
            # The last one takes all before it along.
            committing.append((draft, admission, shard.submit(admission, patient=bool(embedding))))

        for draft in itertools.islice(drafts, 0 if key is None else 1):
            # The first says whether the key is free for these items, before any other of them is stored.
            admission = admission_of(draft, vector=self._embed(draft), generation=generation)
            stored.append(self._stored(draft, admission, shard.submit(admission), key))
        with ThreadPoolExecutor(self._settings.encoder.workers, thread_name_prefix="embed") as pool:
            try:
                for draft in drafts:
                    embedding.append((draft, pool.submit(self._embed, draft)))
                    if len(embedding) > self._settings.encoder.workers * 4:
                        submit_one()
                    while len(committing) > _IN_FLIGHT or (committing and committing[0][2].done()):
                        stored.append(self._stored(*committing.popleft(), key))
            finally:
                # Whatever the stream of items raises, what it gave before is stored.
                while embedding:
                    submit_one()
                stored.extend(self._stored(*write, key) for write in committing)
        if rejected:
            raise InvalidItems(rejected=tuple(rejected), stored=tuple(stored))
        return stored

    def store_node(
        self,
        content: str,
        *,
        owner: OwnerKey,
        node_id: str | None = None,
        evidence_refs: Iterable[str] = (),
        idempotency_key: str | None = None,
        **arguments: Any,
    ) -> Stored:
        """Store a structured memory without a source event of its own."""
        if isinstance(evidence_refs, str) or not isinstance(evidence_refs, Iterable):
            raise InvalidRequest(argument="evidence_refs", given=evidence_refs, allowed="a list of UUIDs")
        shard, generation = self._shard(owner)
        refs = tuple(uuid_of(ref, "evidence_refs") for ref in evidence_refs)
        given = {**arguments, "content": content, "node_id": node_id, "evidence_refs": refs}
        key = write_key(idempotency_key, owner, "store_node", given)
        if node_id is None:
            node_id = self._new_id() if key is None else key.id_of("node")
        now = self._clock()
        draft = draft_node(
            check_arguments(content, settings=self._settings, **arguments),
            owner=owner,
            now=now,
            node_id=uuid_of(node_id, "node_id"),
            evidence_refs=refs,
            link_entities=self._settings.link_entities,
        )
        admission = _marked(admission_of(draft, vector=self._embed(draft), generation=generation), key, now)
        return self._stored(draft, admission, shard.submit(admission), key)

    def store_edge(
        self,
        source_id: str,
        target_id: str,
        edge_type: str,
        *,
        owner: OwnerKey,
        confidence: float = 0.5,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> str:
        """Store an edge between two memories of one owner and return its id."""
        shard, generation = self._shard(owner)
        given = [source_id, target_id, edge_type, confidence, valid_from, valid_to, metadata]
        key = write_key(idempotency_key, owner, "store_edge", given)
        now = self._clock()
        start, end = instant(valid_from, "valid_from"), instant(valid_to, "valid_to")
        if end is not None and (start is None or end <= start):
            raise InvalidRequest(argument="valid_to", given=valid_to, allowed="a time after an explicit valid_from")
        if not is_number(confidence, 0, 1):
            raise InvalidRequest(argument="confidence", given=confidence, allowed="a number from 0 to 1")
        source, target = uuid_of(source_id, "source_id"), uuid_of(target_id, "target_id")
        for node_id in (source, target):
            if self._store.record(owner, EntryKind.NODE, node_id) is None:
                raise NotFound(kind="memory", id=node_id)
        edge = Edge(
            id=self._new_id() if key is None else key.id_of("edge"),
            source_id=source,
            target_id=target,
            edge_type=one_of(EdgeType, edge_type, "edge_type"),
            confidence=float(confidence),
            created_at=now,
            valid_from=start or now,
            valid_to=end,
            metadata=None if metadata is None else json_object(metadata, "metadata"),
        )
        admission = _marked(Admission(owner, (edge_entry(edge),), generation), key, now)
        settle(self._store, admission, shard.submit(admission), key)
        return edge.id

    def _stored(self, draft: Draft, admission: Admission, future: Future[Appended], key: WriteKey | None) -> Stored:
        event_id = None if draft.event is None else draft.event.id
        return Stored(node_id=draft.node.id, event_id=event_id, sequence=settle(self._store, admission, future, key))

    def _shard(self, owner: OwnerKey) -> tuple[Shard | RemoteShard, int]:
        """Return the owner's shard and the generation of its vectors.

        Raises:
            EncoderMismatch: any shard has vectors of another encoder; a store never mixes two.
        """
        shard = self._store.writer(owner)
        stored = self._store.mismatched_encoder
        if stored is not None:
            raise EncoderMismatch(stored=stored, configured=self._encoder.identity)
        return shard, shard.writing_generation()

    def _drafts(
        self,
        items: Iterable[Any],
        owner: OwnerKey,
        common: Mapping[str, Any],
        rejected: list[InvalidRequest],
        key: WriteKey | None,
    ) -> Iterator[Draft]:
        for position, item in enumerate(items):
            try:
                yield self._item(item, position, owner, common, key)
            except InvalidRequest as error:
                rejected.append(_at(error, position))

    def _item(
        self, item: Any, position: int, owner: OwnerKey, common: Mapping[str, Any], key: WriteKey | None
    ) -> Draft:
        if isinstance(item, Mapping):
            _check_keys(item)
            arguments = {**common, **item}
            if "content" not in arguments:
                raise InvalidRequest(argument="content", given="nothing", allowed="the memory's text")
            content = arguments.pop("content")
        else:
            content, arguments = item, dict(common)
        return self._draft(content, owner=owner, key=key, item=position, **arguments)

    def _draft(
        self, content: str, *, owner: OwnerKey, key: WriteKey | None, item: int | None = None, **arguments: Any
    ) -> Draft:
        return draft_memory(
            check_arguments(content, settings=self._settings, item=item, **arguments),
            owner=owner,
            now=self._clock(),
            new_id=self._new_id if key is None else key.ids(item or 0),
            link_entities=self._settings.link_entities,
            request_digest=None if key is None else key.digest,
        )

    def _embed(self, draft: Draft) -> bytes | None:
        text = draft.text
        if text is None:
            return None
        return self._encoder.embed_documents([text])[0].astype(np.dtype("<f4"), copy=False).tobytes()


def _marked(admission: Admission, key: WriteKey | None, now: datetime) -> Admission:
    """Return the admission, with the event of its key in front."""
    if key is None:
        return admission
    return dataclasses.replace(admission, entries=(key.marker(now), *admission.entries))


def _check_keys(arguments: Mapping[Any, Any]) -> None:
    for key in arguments:
        if key not in _ITEM_KEYS:
            raise InvalidRequest(argument=str(key), given="an unknown name", allowed=f"only {', '.join(_ITEM_KEYS)}")


def _at(error: InvalidRequest, position: int) -> InvalidRequest:
    """Return the refusal with the place of its item."""
    if isinstance(error, InvalidText):
        return InvalidText(argument=error.argument, given=error.given, allowed=error.allowed, item=position)
    error.fields["item"] = position
    return error
