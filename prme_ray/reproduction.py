"""Runs a recorded retrieval again on its snapshot and says whether the same came out (decision 22).

The record gives the request, the settings that were in force and the answers of helpers outside (other
wordings of the question, failures of channels); the owner's log gives the state that was read. Everything
else is done again, on whatever executor this process has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from prme_ray.executors.engine import Run
from prme_ray.in_force import InForce, in_force
from prme_ray.model.enums import Path
from prme_ray.model.errors import (
    ContentErased,
    InvalidSettings,
    SnapshotExpired,
    SnapshotGone,
    TokenizerUnavailable,
)
from prme_ray.model.request import Request
from prme_ray.model.retrievals import Difference, Reason, ReasonCode, Reproduction
from prme_ray.records.asked import request_of, settings_of, wordings_of
from prme_ray.records.ledger import Entry, Ledger
from prme_ray.records.record import RetrievalRecord, decode_record
from prme_ray.retrieval import Retriever
from storage.records import OwnerKey
from storage.store import Store
from storage.view import OwnerView

if TYPE_CHECKING:  # Ray is only loaded where the flow runs on it
    from actors.remote_store import RemoteStore

__all__ = ["Reproducer"]

_ATTEMPTS = 5
_ANSWERED = (
    "alternate_queries",
    "query_intent",
    "query_time_from",
    "query_time_to",
    "candidates_generated",
    "candidates_after_filter",
    "candidates_filtered",
    "objects_included_in_bundle",
    "tokens_used",
    "backend_failures",
    "min_score_skipped",
    "applied_weights",
    "ranking_policy",
    "aggregation_coverage",
    "historical_coverage",
    "scoring_config_version",
    "reasons",
    "contents_sha256",
)
"""What the head says of the answer; the rest says what was asked."""
_SNAPSHOT = ("lexical_digest", "graph_digest", "context_sha256")
_NAMED = {
    "memory": "order",
    "score": "scores",
    "excluded": "exclusions",
    "excluded_reason": "exclusions",
    "level": "representations",
    "tokens": "token costs",
    "hint": "hints",
    "embedding": "embedding",
}


class Reproducer:
    """Reproduces recorded retrievals.

    Args:
        store: Where the records and memories are.
        retriever: Runs the flow.
    """

    def __init__(self, store: Store | RemoteStore, retriever: Retriever) -> None:
        self._store = store
        self._retriever = retriever
        self._ledger = Ledger(store)

    def reproduce(self, key: OwnerKey, request_id: str, *, confined_to: str | None = None) -> Reproduction:
        """Run a retrieval again and compare.

        Args:
            key: The owner.
            request_id: The recorded request.
            confined_to: See :meth:`Ledger.entry`.

        Returns:
            Whether the same came out; where it could not be run, why.

        Raises:
            NotFound: the owner has no such record.
            AmbiguousRecord: several requests with this id were answered.
        """
        entry = self._ledger.entry(key, request_id, confined_to=confined_to)
        head = entry.record.head
        if entry.record.failed:
            return _not_run(head, Reason(code=ReasonCode.REQUEST_FAILED, detail=f"it ended with {head['error']}"))
        try:
            force = in_force(settings_of(head, self._retriever.in_force.settings))
        except (InvalidSettings, TokenizerUnavailable) as error:
            return _not_run(head, Reason(code=ReasonCode.SETTINGS_CHANGED, detail=str(error)))
        request = request_of(head, force.settings)
        refused = self._helpers_differ(entry.record, request, force)
        if refused is not None:
            return _not_run(head, refused)
        try:
            entry.memories()
            run, view = self._run(key, entry, request, force)
        except ContentErased as error:
            return _not_run(head, Reason(code=ReasonCode.CONTENT_ERASED, detail=str(error)))
        except SnapshotExpired as error:
            return _not_run(head, Reason(code=ReasonCode.SNAPSHOT_EXPIRED, detail=str(error)))
        return self._compared(entry.record, request, run, view=view, force=force)

    def _helpers_differ(self, record: RetrievalRecord, request: Request, force: InForce) -> Reason | None:
        """Return why the helpers of this process cannot stand in for those of then."""
        head = record.head
        here = self._retriever.encoder.identity
        searched = Path.VECTOR not in head["backend_failures"] and Path.VECTOR not in force.disabled
        missing = (not len(record.columns["embedding"]) and bool(request.query.strip())) or head["alternate_queries"]
        if here != head["encoder"] and searched and missing:
            detail = f"it was {head['encoder']}, here it is {here}; the record holds the question's own vector only"
            return Reason(code=ReasonCode.ENCODER_CHANGED, detail=detail)
        if head["reranker"] != self._retriever.reranker and force.settings.rerank.enabled:
            detail = f"it was {head['reranker']}, here it is {self._retriever.reranker}"
            return Reason(code=ReasonCode.RERANKER_CHANGED, detail=detail)
        return None

    def _run(self, key: OwnerKey, entry: Entry, request: Request, force: InForce) -> tuple[Run, OwnerView]:
        head = entry.record.head
        given: dict[str, Any] = {"alternates": wordings_of(head, request)}
        if self._retriever.encoder.identity != head["encoder"]:
            vector = entry.record.columns["embedding"]
            given["embedding"] = vector if len(vector) else None
        attempt = 0
        while True:
            view = self._state(key, head)
            try:
                run = self._retriever.execute(
                    request, view=view, force=force, failures=head["backend_failures"], given=given
                )
            except SnapshotGone:
                attempt += 1
                if attempt == _ATTEMPTS:
                    raise
            else:
                return run, view

    def _state(self, key: OwnerKey, head: Mapping[str, Any]) -> OwnerView:
        sequence = head["snapshot"]["sequence"]
        if sequence == 0:
            return self._retriever.nothing
        return self._store.view_at(key, sequence, past=True, generation=head["generation"])

    def _compared(
        self, record: RetrievalRecord, request: Request, run: Run, *, view: OwnerView, force: InForce
    ) -> Reproduction:
        """Make the record that this run would have left, and compare it with the one that was left."""
        retriever = self._retriever
        setup = retriever.setup(
            request,
            force,
            snapshot=view.owner_seq,
            generation=record.head["generation"],
            mismatch=record.head["embedding_mismatch"],
        )
        again = decode_record(retriever.record(request, run, view=view, force=force, setup=setup))
        differences = _differences(record, again)
        reasons: list[Reason] = []
        then, now = (one.head["features"].get("source_files_sha256", {}) for one in (record, again))
        if differences and then != now:
            changed = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
            reasons.append(Reason(code=ReasonCode.CODE_CHANGED, detail=f"in {', '.join(changed)}"))
        packed = run.values["packed"]
        return Reproduction(
            request_id=request.request_id,
            reproduced=not differences,
            reasons=reasons,
            differences=differences,
            snapshot=view.owner_seq,
            context=packed.context,
            context_sha256=again.head["snapshot"]["context_sha256"],
        )


def _differences(then: RetrievalRecord, now: RetrievalRecord) -> list[Difference]:
    """Return what differs, the first of each kind; empty when every number and every byte is the same."""
    found: dict[str, Difference] = {}
    for name, recorded in then.columns.items():
        made = now.columns[name]
        if recorded.dtype == made.dtype and recorded.tobytes() == made.tobytes():
            continue
        what = _NAMED.get(name, "lineage")
        found.setdefault(what, _first_difference(what, name, recorded, made))
    for name in _ANSWERED:
        if then.head[name] != now.head[name]:
            found.setdefault(name, Difference(what=name, recorded=then.head[name], reproduced=now.head[name]))
    for name in _SNAPSHOT:
        recorded, made = then.head["snapshot"][name], now.head["snapshot"][name]
        if recorded != made:
            found.setdefault(name, Difference(what=name, recorded=recorded, reproduced=made))
    return list(found.values())


def _first_difference(what: str, name: str, recorded: Any, made: Any) -> Difference:
    if len(recorded) != len(made):
        return Difference(what=what, recorded=f"{len(recorded)} x {name}", reproduced=f"{len(made)} x {name}")
    # By their bytes: a NaN stands for "none", and is equal to itself here.
    row = int(np.flatnonzero(recorded.view("u1") != made.view("u1"))[0]) // recorded.dtype.itemsize
    return Difference(
        what=what,
        recorded=f"{name} {recorded[row]!s} at place {row + 1}",
        reproduced=f"{name} {made[row]!s} at place {row + 1}",
    )


def _not_run(head: Mapping[str, Any], reason: Reason) -> Reproduction:
    return Reproduction(
        request_id=head["request_id"],
        reproduced=False,
        reasons=[reason],
        differences=[],
        snapshot=(head.get("snapshot") or {}).get("sequence", 0),
        context=None,
        context_sha256=None,
    )
