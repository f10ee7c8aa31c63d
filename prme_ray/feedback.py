"""Keeps judgements of past retrievals, each bound to a receipt that allows it (digest b §3.6).

A record never changes: the same id again gives back what is held, with other content it is refused. What is
judged is the receipt, so nothing can be said about memories that the retrieval did not return.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from prme_ray.model.errors import ConflictingOperation, FeedbackAltered, FeedbackRejected, NotFound, ReadOnlyStore
from prme_ray.model.feedback import (
    Citations,
    CitationsGiven,
    CitationsPage,
    Relevance,
    RelevanceGiven,
    RelevancePage,
    Surface,
)
from prme_ray.model.receipts import Receipt
from prme_ray.model.text import uuid_of
from prme_ray.model.times import from_micros
from prme_ray.receipts import Receipts
from prme_ray.records.ledger import page_size
from storage.records import Operation, OperationRow, OwnerKey
from storage.store import Store

if TYPE_CHECKING:  # Ray is only loaded where the flow runs on it
    from actors.remote_store import RemoteStore

__all__ = ["CITED", "JUDGED", "Feedback"]

JUDGED = "RELEVANCE_RECORDED"
CITED = "ANSWER_CITATIONS_RECORDED"
_KINDS: dict[str, str] = {JUDGED: "relevance record", CITED: "answer citations"}

R = TypeVar("R", Relevance, Citations)


class Feedback:
    """Records and reads judgements.

    Args:
        store: Where they are kept.
        receipts: What they are bound to.
        new_id: Returns a fresh UUID as text, for callers without ids of their own.
    """

    def __init__(self, store: Store | RemoteStore, receipts: Receipts, *, new_id: Callable[[], str]) -> None:
        self._store = store
        self._receipts = receipts
        self.new_id = new_id

    def record_relevance(self, key: OwnerKey, given: RelevanceGiven, *, confined_to: str | None = None) -> Relevance:
        """Keep a judgement; errors as ``Memory.record_relevance``."""
        self._check_writable()
        held = self._held(key, JUDGED, given.feedback_id, Relevance)
        if held is None:
            receipt, bound = self._bound(key, given.request_id, confined_to)
            _check_labels(given, receipt)
            record = Relevance(**given.model_dump(), **bound)
            try:
                held = self._keep(key, JUDGED, given.feedback_id, record)
            except ConflictingOperation:
                held = None  # somebody used the id for something else at the same moment
        if held is None or not _same(held, given, confined_to):
            raise FeedbackRejected(
                argument="feedback_id",
                given=given.feedback_id,
                allowed="an id of its own to every judgement: this one stands for another",
            )
        return held

    def record_citations(self, key: OwnerKey, given: CitationsGiven, *, confined_to: str | None = None) -> Citations:
        """Keep an answer's citations; errors as ``Memory.record_citations``."""
        self._check_writable()
        held = self._held(key, CITED, given.citation_id, Citations)
        if held is None:
            receipt, bound = self._bound(key, given.request_id, confined_to)
            _check_cited(given, receipt)
            record = Citations(**given.model_dump(), **bound, context_sha256=receipt["context_sha256"])
            held = self._keep(key, CITED, given.citation_id, record)
        if not _same(held, given, confined_to):
            raise ConflictingOperation(op_type=CITED, target=given.citation_id)
        return held

    def get_relevance(self, key: OwnerKey, feedback_id: str, *, confined_to: str | None = None) -> Relevance:
        """Return a judgement; errors as ``Memory.get_relevance``."""
        return self._get(key, JUDGED, uuid_of(feedback_id, "feedback_id"), Relevance, confined_to)

    def get_citations(self, key: OwnerKey, citation_id: str, *, confined_to: str | None = None) -> Citations:
        """Return an answer's citations; errors as ``Memory.get_citations``."""
        return self._get(key, CITED, uuid_of(citation_id, "citation_id"), Citations, confined_to)

    def list_relevance(
        self, key: OwnerKey, *, after_id: str | None, limit: int, confined_to: str | None = None
    ) -> RelevancePage:
        """Return some of an owner's judgements; errors as ``Memory.list_relevance``."""
        records, following = self._page(key, JUDGED, Relevance, after_id, limit, confined_to)
        return RelevancePage(relevance=records, next_after_id=following)

    def list_citations(
        self, key: OwnerKey, *, after_id: str | None, limit: int, confined_to: str | None = None
    ) -> CitationsPage:
        """Return some of an owner's citations; errors as ``Memory.list_citations``."""
        records, following = self._page(key, CITED, Citations, after_id, limit, confined_to)
        return CitationsPage(citations=records, next_after_id=following)

    def _check_writable(self) -> None:
        if self._store.read_only:
            raise ReadOnlyStore(path=str(self._store.path))

    def _bound(self, key: OwnerKey, request_id: str, confined_to: str | None) -> tuple[Receipt, dict[str, Any]]:
        """Return the receipt of a retrieval, and what a record bound to it says of it."""
        entry = self._receipts.entry(key, request_id, confined_to=confined_to)
        receipt, checksum = self._receipts.checked(key, entry)
        return receipt, {
            "tenant": key.tenant,
            "owner": key.owner,
            "scope": entry.record.confined_to,
            "receipt_checksum": checksum,
            "recorded_at": from_micros(entry.row.recorded_at),  # of the retrieval, until the log says its own
        }

    def _held(self, key: OwnerKey, op_type: str, client_id: str, model: type[R]) -> R | None:
        rows = self._store.operations_of(key, client_id, op_type=op_type)
        return _read(key, rows[0], model) if rows else None

    def _keep(self, key: OwnerKey, op_type: str, client_id: str, record: R) -> R:
        text = record.model_dump_json(exclude={"recorded_at"})
        # Text and its digest as strings: no JSON column can put the fields in another order (digest b §3.3).
        payload = json.dumps({"record": text, "record_sha256": _digest(text)}, ensure_ascii=False).encode()
        row = self._store.record_operation(key, Operation(key, op_type, client_id, payload))
        return _read(key, row, type(record))

    def _get(self, key: OwnerKey, op_type: str, client_id: str, model: type[R], confined_to: str | None) -> R:
        found = self._held(key, op_type, client_id, model)
        if found is None or confined_to not in {None, found.scope}:
            raise NotFound(kind=_KINDS[op_type], id=client_id)
        return found

    def _page(
        self,
        key: OwnerKey,
        op_type: str,
        model: type[R],
        after_id: str | None,
        limit: int,
        confined_to: str | None,
    ) -> tuple[list[R], str | None]:
        size = page_size(limit)
        after = None if after_id is None else uuid_of(after_id, "after_id")
        rows = self._store.operations_by_target(key, op_type=op_type, after_target=after, limit=size + 1)
        records = [_read(key, row, model) for row in rows[:size]]
        following = rows[size - 1].target if len(rows) > size else None
        return [record for record in records if confined_to in {None, record.scope}], following


def _check_labels(given: RelevanceGiven, receipt: Receipt) -> None:
    saved = {candidate["node_id"]: candidate for candidate in receipt["candidates"]}
    for node, relevant in given.labels.items():
        found = saved.get(node)
        if found is None:
            raise FeedbackRejected(argument="labels", given=node, allowed="ids of memories that the retrieval returned")
        if given.surface is Surface.RESULTS:
            continue
        if not found["in_context"]:
            allowed = "ids of memories that are in the context, or surface 'results'"
            raise FeedbackRejected(argument="labels", given=node, allowed=allowed)
        if relevant and not found["has_content"]:
            allowed = "False, as the context has none of its text, or surface 'results'"
            raise FeedbackRejected(argument=f"labels.{node}", given=relevant, allowed=allowed)


def _check_cited(given: CitationsGiven, receipt: Receipt) -> None:
    readable = {
        candidate["node_id"]
        for candidate in receipt["candidates"]
        if candidate["in_context"] and candidate["has_content"]
    }
    for node in given.cited_node_ids:
        if node not in readable:
            allowed = "ids of memories whose text is in the context of the retrieval"
            raise FeedbackRejected(argument="cited_node_ids", given=node, allowed=allowed)


def _read(key: OwnerKey, row: OperationRow, model: type[R]) -> R:
    """Return the record of a log row.

    Raises:
        FeedbackAltered: it is not what was recorded.
    """
    kind = _KINDS[row.op_type]
    try:
        held = json.loads(row.payload)
        text, digest = held["record"], held["record_sha256"]
        if _digest(text) != digest:
            raise FeedbackAltered(kind=kind, id=row.target, detail="its digest is that of another text")
        found = model.model_validate({**json.loads(text), "recorded_at": from_micros(row.recorded_at)})
    except (ValueError, TypeError, KeyError, AttributeError, ValidationError) as error:
        raise FeedbackAltered(kind=kind, id=row.target, detail=f"it cannot be read ({type(error).__name__})") from None
    client_id = found.feedback_id if isinstance(found, Relevance) else found.citation_id
    if (found.tenant, found.owner, client_id) != (key.tenant, key.owner, row.target):
        raise FeedbackAltered(kind=kind, id=row.target, detail="it stands under another owner or id than its own")
    return found


def _same(held: Relevance | Citations, given: RelevanceGiven | CitationsGiven, confined_to: str | None) -> bool:
    """Return whether a record is what is given again, by somebody who may see it."""
    said = held.model_dump(include=set(type(given).model_fields))
    return said == given.model_dump() and confined_to in {None, held.scope}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
