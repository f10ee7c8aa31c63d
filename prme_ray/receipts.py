"""Past retrievals of a store: their records, receipts, replay and reproduction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prme_ray.model.errors import NotFound
from prme_ray.model.receipts import Receipt, read_receipt
from prme_ray.model.retrievals import ChainBreak, ChainReport, Replay, Reproduction, Retrieval, RetrievalPage
from prme_ray.model.times import from_micros
from prme_ray.records.ledger import Entry, Ledger
from prme_ray.reproduction import Reproducer
from prme_ray.retrieval import Retriever
from stages.replay import replay
from storage.records import OwnerKey
from storage.store import Store

if TYPE_CHECKING:  # Ray is only loaded where the flow runs on it
    from actors.remote_store import RemoteStore

__all__ = ["Receipts"]


class Receipts:
    """Reads and checks past retrievals.

    Args:
        store: Where their records are.
        retriever: Runs a retrieval again.
    """

    def __init__(self, store: Store | RemoteStore, retriever: Retriever) -> None:
        self._store = store
        self._settings = retriever.in_force.settings
        self._ledger = Ledger(store)
        self._reproducer = Reproducer(store, retriever)

    def entry(self, key: OwnerKey, request_id: str, *, confined_to: str | None = None) -> Entry:
        """Return the record of a request; see :meth:`Ledger.entry`."""
        return self._ledger.entry(key, request_id, confined_to=confined_to)

    def checked(self, key: OwnerKey, entry: Entry) -> tuple[Receipt, str]:
        """Return the receipt of an entry, checked, and its SHA-256.

        Raises:
            NotFound: the request failed.
            ContentErased: memories it returned have been erased.
            ReceiptRejected: the record was altered.
        """
        if entry.record.failed:
            raise NotFound(kind="receipt of a failed request", id=entry.row.target)
        text, checksum = entry.receipt(self._settings)
        return read_receipt(text, checksum=checksum, request_id=entry.row.target, owner=key.owner), checksum

    def get(self, key: OwnerKey, request_id: str, *, confined_to: str | None = None) -> Retrieval:
        """Return a past retrieval; errors as ``Memory.get_retrieval``."""
        entry = self._ledger.entry(key, request_id, confined_to=confined_to)
        failed = entry.record.failed
        receipt, checksum = (None, None) if failed else entry.receipt(self._settings)
        return Retrieval(
            request_id=entry.row.target,
            recorded_at=from_micros(entry.row.recorded_at),
            record=entry.record.named(entry.ids()),
            receipt=receipt,
            receipt_checksum=checksum,
            snapshot=entry.snapshot(),
        )

    def page(self, key: OwnerKey, *, cursor: str | None, limit: int, confined_to: str | None = None) -> RetrievalPage:
        """Return some of an owner's retrievals; see :meth:`Ledger.page`."""
        return self._ledger.page(key, cursor=cursor, limit=limit, confined_to=confined_to)

    def replay(self, key: OwnerKey, request_id: str, *, confined_to: str | None = None) -> Replay:
        """Return what a receipt gives when its scores are computed again; errors as ``Memory.replay``."""
        entry = self._ledger.entry(key, request_id, confined_to=confined_to)
        receipt, checksum = self.checked(key, entry)
        found = replay(receipt)
        return Replay(
            request_id=entry.row.target,
            schema_version=receipt["schema_version"],
            receipt_checksum=checksum,
            ranking_policy=receipt["ranking_policy"],
            ranking=list(found.ranking),
            scores=dict(found.scores),
        )

    def reproduce(self, key: OwnerKey, request_id: str, *, confined_to: str | None = None) -> Reproduction:
        """Return the outcome of running a past retrieval again; errors as ``Memory.reproduce``."""
        return self._reproducer.reproduce(key, request_id, confined_to=confined_to)

    def verify_chain(self, key: OwnerKey) -> ChainReport:
        """Return the outcome of following an owner's chain."""
        self._store.settle(key)
        found = self._store.verify_chain(key)
        return ChainReport(
            records=found.checked,
            head=found.head,
            breaks=[ChainBreak(number=one.owner_op_seq, problem=one.kind, detail=one.detail) for one in found.breaks],
        )
