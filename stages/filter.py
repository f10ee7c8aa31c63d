"""Stage 4: what a request may see (RFC-0005 §4, digest a sections 3.9 and 5, decisions 7 and 8).

Filters run before scoring, and again on every memory that a later stage brings in. What is left
out is reported with its reason, except by the time filters, which define the question's world.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import (
    ACTIVE_STATES,
    ConditionState,
    EpistemicType,
    LifecycleState,
    NodeType,
    RetrievalMode,
    SourceType,
    code,
    member,
)
from prme_ray.model.tables import codes, column, exclusions, floats, no_exclusions, take, times
from prme_ray.model.times import NO_TIME, micros

__all__ = ["default_reasons", "filter_epistemic", "filter_time", "filter_types"]

_RETIRED = np.array([state not in ACTIVE_STATES for state in LifecycleState])
_CONDITIONAL = code(EpistemicType.CONDITIONAL)
_UNVERIFIED = code(EpistemicType.UNVERIFIED)
_HIDDEN_TYPES = (EpistemicType.HYPOTHETICAL, EpistemicType.DEPRECATED)
_HIDDEN = np.array([kind in _HIDDEN_TYPES for kind in EpistemicType])
_SUSPECT = np.array(
    [kind in (*_HIDDEN_TYPES, EpistemicType.CONDITIONAL, EpistemicType.UNVERIFIED) for kind in EpistemicType]
)
_CONDITIONS = frozenset(str(state) for state in ConditionState)
_TIMELESS = np.array([kind in (NodeType.ENTITY, NodeType.PREFERENCE) for kind in NodeType])


def filter_epistemic(
    candidates: pa.Table, *, mode: RetrievalMode, unverified_threshold: float
) -> tuple[pa.Table, pa.Table]:
    """Drop what a mode does not show.

    DEFAULT drops, first match deciding: a lifecycle state outside ACTIVE, a conditional memory whose
    condition is not true, a hypothetical or deprecated one, an unverified one with stored (not
    decayed) confidence at or below ``unverified_threshold``. EXPLICIT and AUDIT drop nothing.

    Returns:
        The kept rows (the same table when nothing is dropped) and an EXCLUSION table, both in row order.
    """
    if mode is not RetrievalMode.DEFAULT:
        return candidates, no_exclusions()
    found = _reasons(candidates, unverified_threshold)
    return _split(candidates, found)


def default_reasons(candidates: pa.Table, *, unverified_threshold: float) -> list[str | None]:
    """Return why DEFAULT would drop each row, ``None`` where it would not; AUDIT marks rows with it."""
    found = _reasons(candidates, unverified_threshold)
    return [found.get(row) for row in range(candidates.num_rows)]


def filter_types(
    candidates: pa.Table, *, exclude_node_types: frozenset[NodeType], source_types: frozenset[SourceType] | None
) -> tuple[pa.Table, pa.Table]:
    """Drop excluded node types, then sources outside an allow-list.

    Args:
        candidates: Any table with NODE columns.
        exclude_node_types: Types to leave out.
        source_types: Sources to keep; ``None`` keeps all, an empty set keeps nothing.

    Returns:
        The kept rows (the same table when nothing is dropped) and an EXCLUSION table, both in row order.
    """
    if not exclude_node_types and source_types is None:
        return candidates, no_exclusions()
    found: dict[int, str] = {}
    if source_types is not None:
        foreign = [kind not in source_types for kind in SourceType]
        found |= _named(codes(candidates, "source_type"), foreign, SourceType, "source_type_filtered")
    unwanted = [kind in exclude_node_types for kind in NodeType]
    # Second, so that the node type names the reason where both apply.
    found |= _named(codes(candidates, "node_type"), unwanted, NodeType, "node_type_filtered")
    return _split(candidates, found)


def filter_time(
    candidates: pa.Table,
    *,
    time_from: datetime | None,
    time_to: datetime | None,
    knowledge_at: datetime | None,
    event_time_from: datetime | None,
    event_time_to: datetime | None,
) -> pa.Table:
    """Keep the memories inside the request's bounds (digest a section 3.9); bounds are aware datetimes.

    ``time_from`` and ``time_to`` bound the validity window, whose end is exclusive, and spare entities
    and preferences. ``knowledge_at`` bounds admission. The event bounds are inclusive and fall back to
    the creation time of a memory without an event time.
    """
    if time_from is time_to is knowledge_at is event_time_from is event_time_to is None:
        return candidates
    keep = np.ones(candidates.num_rows, dtype=bool)
    if time_from is not None:
        ends = times(candidates, "valid_to")
        keep &= (ends == NO_TIME) | (ends > micros(time_from))
    if time_to is not None:
        keep &= times(candidates, "valid_from") <= micros(time_to)
    if not keep.all():
        keep |= _TIMELESS[codes(candidates, "node_type")]
    if knowledge_at is not None:
        keep &= times(candidates, "created_at") <= micros(knowledge_at)
    if event_time_from is not None or event_time_to is not None:
        stated = times(candidates, "event_time")
        happened = np.where(stated == NO_TIME, times(candidates, "created_at"), stated)
        if event_time_from is not None:
            keep &= happened >= micros(event_time_from)
        if event_time_to is not None:
            keep &= happened <= micros(event_time_to)
    return take(candidates, np.flatnonzero(keep))


def _reasons(table: pa.Table, threshold: float) -> dict[int, str]:
    """Return row to reason of what DEFAULT drops; Python only looks at rows that can be dropped."""
    kinds = codes(table, "epistemic_type")
    states = codes(table, "lifecycle_state")
    suspects = np.flatnonzero(_RETIRED[states] | _SUSPECT[kinds])
    if not len(suspects):
        return {}
    confidence = floats(table, "confidence")
    conditions = column(table, "condition_state")
    found: dict[int, str] = {}
    for row in suspects.tolist():
        kind = int(kinds[row])
        if _RETIRED[states[row]]:
            found[row] = f"lifecycle_filtered:{member(LifecycleState, int(states[row]))}"
        elif kind == _CONDITIONAL:
            state = _condition(conditions[row].as_py())
            if state is not ConditionState.TRUE:
                found[row] = f"condition_filtered:{state}"
        elif _HIDDEN[kind]:
            found[row] = f"epistemic_filtered:{member(EpistemicType, kind)}"
        elif kind == _UNVERIFIED and confidence[row] <= threshold:
            found[row] = f"unverified_below_threshold:{confidence[row]:.2f}<={threshold:.2f}"
    return found


def _condition(stored: str | None) -> ConditionState:
    """Return the state of a stored string; anything unknown says nothing about the condition."""
    return ConditionState(stored) if stored in _CONDITIONS else ConditionState.UNKNOWN


def _named(values: npt.NDArray[np.int8], dropped: list[bool], kind: type[StrEnum], reason: str) -> dict[int, str]:
    """Return row to reason for rows whose code is dropped; ``dropped`` has one entry a member."""
    rows = np.flatnonzero(np.array(dropped)[values])
    return {row: f"{reason}:{member(kind, int(values[row]))}" for row in rows.tolist()}


def _split(table: pa.Table, found: dict[int, str]) -> tuple[pa.Table, pa.Table]:
    if not found:
        return table, no_exclusions()
    rows = np.array(sorted(found))
    keep = np.ones(table.num_rows, dtype=bool)
    keep[rows] = False
    reasons = [found[row] for row in rows.tolist()]
    return take(table, np.flatnonzero(keep)), exclusions(column(table, "node_id").take(pa.array(rows)), reasons)
