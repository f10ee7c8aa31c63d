"""Rows of a node table as the records that the line formats write."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from prme_ray.model.enums import (
    ConditionState,
    EpistemicType,
    LifecycleState,
    NodeType,
    Scope,
    SourceType,
    member,
)
from prme_ray.model.tables import codes, floats, texts, times
from prme_ray.model.times import NO_TIME, from_micros, iso

__all__ = ["LEVELS", "TEXT_LEVELS", "Record", "level_text", "quoted", "read", "utc"]

LEVELS: tuple[str, ...] = ("full", "structured", "key_value", "reference")
"""Representations, richest first. ``prose`` equals ``full`` and is never tried (digest b §1.4)."""

TEXT_LEVELS: tuple[str, ...] = ("full", "structured")
"""Representations that carry the memory's text."""

# JSON escapes every other character that any reader may take for the end of a line.
_LINE_ENDS = str.maketrans({"\u0085": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class Record(NamedTuple):
    """One memory, decoded. Times are microseconds since the epoch, ``None`` for none."""

    node_id: str
    node_type: NodeType
    scope: Scope
    epistemic_type: EpistemicType
    lifecycle_state: LifecycleState
    source_type: SourceType
    confidence: float
    event_time: int | None
    valid_from: int
    valid_to: int | None
    superseded_by: str | None
    condition: ConditionState
    speaker: str | None
    content: str


def read(table: pa.Table) -> list[Record]:
    """Return the records of a ``NODE`` table (or wider), in row order."""
    return [
        Record(
            node_id,
            member(NodeType, node_type),
            member(Scope, scope),
            member(EpistemicType, epistemic),
            member(LifecycleState, lifecycle),
            member(SourceType, source),
            confidence,
            None if event_time == NO_TIME else event_time,
            valid_from,
            None if valid_to == NO_TIME else valid_to,
            superseded_by,
            _CONDITIONS.get(condition, ConditionState.UNKNOWN),
            speaker,
            content,
        )
        for (
            node_id,
            node_type,
            scope,
            epistemic,
            lifecycle,
            source,
            confidence,
            event_time,
            valid_from,
            valid_to,
            superseded_by,
            condition,
            speaker,
            content,
        ) in zip(
            texts(table, "node_id"),
            codes(table, "node_type").tolist(),
            codes(table, "scope").tolist(),
            codes(table, "epistemic_type").tolist(),
            codes(table, "lifecycle_state").tolist(),
            codes(table, "source_type").tolist(),
            floats(table, "confidence").tolist(),
            times(table, "event_time").tolist(),
            times(table, "valid_from").tolist(),
            times(table, "valid_to").tolist(),
            texts(table, "superseded_by"),
            texts(table, "condition_state"),
            texts(table, "speaker"),
            texts(table, "content"),
            strict=True,
        )
    ]


_CONDITIONS: dict[Any, ConditionState] = {str(state): state for state in ConditionState}


def level_text(record: Record, level: str) -> str:
    """Return what stands for the record's text at a level (digest b §1.4)."""
    if level == "full":
        return record.content
    if level == "structured":
        return f"{record.node_type}: {record.content}"
    if level == "key_value":
        return f"id={record.node_id}; type={record.node_type}; confidence={record.confidence:.2f}"
    return f"{record.node_type} {record.node_id}"


def quoted(encoded: str) -> str:
    """Return JSON text as one physical line for every reader (digest b §1.8)."""
    return encoded.translate(_LINE_ENDS) if not encoded.isascii() else encoded


def utc(value: int | None) -> str | None:
    """Return an instant in ISO 8601 with ``Z``, ``None`` for none."""
    return None if value is None else iso(from_micros(value))
