"""The retrieval records of a store, read by owner."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from prme_ray.model.errors import AmbiguousRecord, ContentErased, InvalidRequest, NotFound
from prme_ray.model.retrievals import RetrievalPage, RetrievalSummary, Snapshot
from prme_ray.model.settings import Settings
from prme_ray.model.tables import refer, references, target_of, texts
from prme_ray.model.text import uuid_of
from prme_ray.model.times import from_micros
from prme_ray.records.asked import settings_of
from prme_ray.records.encode import OP_TYPE
from prme_ray.records.receipt import Memories, receipt_of
from prme_ray.records.record import RetrievalRecord, decode_record
from stages.known_rows import RowFacts
from storage.records import OperationRow, OwnerKey
from storage.store import Store
from storage.view import OwnerView

if TYPE_CHECKING:  # Ray is only loaded where the flow runs on it
    from actors.remote_store import RemoteStore

__all__ = ["Entry", "Ledger", "cursor_of", "page_size"]

PAGE = 100
LARGEST_PAGE = 1000
"""Most entries of one page."""
_CURSOR = re.compile(r"[0-9]{1,18}")


class Entry:
    """One record, with what it takes to read it: the owner's memories by number.

    Attributes:
        row: The record in the log.
        record: Its contents.
    """

    def __init__(self, row: OperationRow, *, view: Callable[[], OwnerView]) -> None:
        self.row = row
        self.record: RetrievalRecord = decode_record(row.payload)
        self._view = view

    def memories(self) -> Memories:
        """Return id, scope and text of the recorded candidates.

        Raises:
            ContentErased: they are not what they were when the record was made.
        """
        view, record = self._view(), self.record
        numbers = np.array(record.memories, np.int64)
        if len(numbers) and int(numbers.max()) >= len(view):
            raise ContentErased(request_id=record.head["request_id"])
        chosen = target_of(view.nodes.take(pa.array(numbers)).combine_chunks())
        table = references(refer(chosen, np.arange(len(numbers))))
        found = hashlib.sha256(RowFacts(chosen).content_marks.tobytes()).hexdigest()
        if found != record.head["contents_sha256"]:
            raise ContentErased(request_id=record.head["request_id"])
        return Memories(self.ids(), table)

    def ids(self) -> list[str]:
        """Return the id of every memory of the owner, by number."""
        return texts(self._view().nodes, "node_id")

    def receipt(self, present: Settings) -> tuple[str, str]:
        """Return the receipt's canonical JSON text and its SHA-256.

        Args:
            present: Settings in force now, for what of them changes no answer.

        Raises:
            ContentErased: see :meth:`memories`.
            InvalidSettings: this version of prme-ray does not know the recorded settings.
            ReceiptRejected: the record contradicts itself.
        """
        return receipt_of(self.record, self.memories(), settings_of(self.record.head, present))

    def snapshot(self) -> Snapshot | None:
        """Return what was read and the record's place in the chain; ``None`` for a request that failed."""
        found = self.record.head.get("snapshot")
        if found is None:
            return None
        row = self.row
        return Snapshot(**found, number=row.owner_op_seq, previous=row.previous.hex(), chain=row.chain.hex())


class Ledger:
    """Reads retrieval records.

    Args:
        store: Where they are.
    """

    def __init__(self, store: Store | RemoteStore) -> None:
        self._store = store

    def entry(self, key: OwnerKey, request_id: str, *, confined_to: str | None = None) -> Entry:
        """Return the record of a request.

        Where a request failed and was sent again under the same id, the one that was answered counts.

        Args:
            key: The owner.
            request_id: The request.
            confined_to: Only a request that could see nothing but this scope; others are unknown.

        Raises:
            InvalidRequest: the id is no UUID.
            NotFound: the owner has no such record.
            AmbiguousRecord: several requests with this id were answered.
        """
        wanted = uuid_of(request_id, "request_id")
        self._store.settle(key)  # a record may still be on its way to the log
        rows = self._store.operations_of(key, wanted, op_type=OP_TYPE)
        if not rows:
            raise NotFound(kind="retrieval", id=wanted)
        entries = [Entry(row, view=partial(self._view, key)) for row in rows]
        if confined_to is not None:
            entries = [entry for entry in entries if entry.record.confined_to == confined_to]
            if not entries:
                raise NotFound(kind="retrieval", id=wanted)
        answered = [entry for entry in entries if not entry.record.failed]
        # A request that was sent again and read the same state left the same record twice.
        different = len({entry.row.payload for entry in answered})
        if different > 1:
            raise AmbiguousRecord(request_id=wanted, count=different)
        return (answered or entries)[0]

    def _view(self, key: OwnerKey) -> OwnerView:
        found = self._store.view(key)
        return self._store.empty_view() if found is None else found

    def page(self, key: OwnerKey, *, cursor: str | None, limit: int, confined_to: str | None = None) -> RetrievalPage:
        """Return some of an owner's retrievals, oldest first; unknown owners have none.

        Args:
            key: The owner.
            cursor: ``next_cursor`` of the page before; the first page when ``None``.
            limit: Most retrievals, 1 to 1000.
            confined_to: Leave out those that could see more than this scope; a page may then have fewer.

        Raises:
            InvalidRequest: ``limit`` or ``cursor`` is not allowed.
        """
        size = page_size(limit)
        after = cursor_of(cursor)
        if after == 0:
            self._store.settle(key)
        rows = self._store.operations(key, op_type=OP_TYPE, after=after, limit=size + 1)
        records = [(row, decode_record(row.payload)) for row in rows[:size]]
        return RetrievalPage(
            retrievals=[_summary(*one) for one in records if confined_to in {None, one[1].confined_to}],
            next_cursor=str(rows[size - 1].owner_op_seq) if len(rows) > size else None,
        )


def page_size(limit: Any) -> int:
    """Return ``limit``.

    Raises:
        InvalidRequest: it is not 1 to 1000.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LARGEST_PAGE:
        raise InvalidRequest(argument="limit", given=limit, allowed=f"1 to {LARGEST_PAGE}")
    return limit


def cursor_of(cursor: str | None) -> int:
    """Return the number of the record that a cursor stands behind.

    Raises:
        InvalidRequest: no page gave this cursor.
    """
    if cursor is None:
        return 0
    if not isinstance(cursor, str) or not _CURSOR.fullmatch(cursor):
        raise InvalidRequest(argument="cursor", given=cursor, allowed="next_cursor of the page before")
    return int(cursor)


def _summary(row: OperationRow, record: RetrievalRecord) -> RetrievalSummary:
    head = record.head
    return RetrievalSummary(
        request_id=row.target,
        recorded_at=from_micros(row.recorded_at),
        query=head["query"],
        retrieval_mode=head["retrieval_mode"],
        sequence=(head.get("snapshot") or {}).get("sequence", 0),
        candidates=len(record.memories),
        objects_included_in_bundle=head["objects_included_in_bundle"],
        tokens_used=head["tokens_used"],
        error=head["error"],
        number=row.owner_op_seq,
    )
