"""The whole packed context: sections, headers, and which format writes a line (digest b §1.8)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import LifecycleState, NodeType, code
from prme_ray.model.settings.packing import ContextFormat
from prme_ray.model.tables import codes
from stages import render_auditable, render_compact, render_reader
from stages.render_record import Record

__all__ = ["SECTIONS", "assemble", "has_references", "header", "label", "line_start", "record_line", "section_codes"]

SECTIONS: tuple[str, ...] = (
    "contested_claims",
    "system_instructions",
    "entity_snapshots",
    "stable_facts",
    "preferences",
    "recent_decisions",
    "active_tasks",
    "summaries",
    "provenance_refs",
)
"""Section names; a record's section is a position in this tuple."""

_SECTION_OF_TYPE = {
    NodeType.INSTRUCTION: "system_instructions",
    NodeType.ENTITY: "entity_snapshots",
    NodeType.FACT: "stable_facts",
    NodeType.NOTE: "stable_facts",
    NodeType.PREFERENCE: "preferences",  # decision 15; the reference files it with the events
    NodeType.DECISION: "recent_decisions",
    NodeType.TASK: "active_tasks",
    NodeType.INTENT: "active_tasks",
    NodeType.SUMMARY: "summaries",
    NodeType.EVENT: "provenance_refs",
}
_BY_TYPE = np.array([SECTIONS.index(_SECTION_OF_TYPE[kind]) for kind in NodeType], dtype=np.int8)
_CONTESTED = np.int8(SECTIONS.index("contested_claims"))
_CONTESTED_STATE = code(LifecycleState.CONTESTED)


def section_codes(table: pa.Table) -> npt.NDArray[np.int8]:
    """Return each row's section, shape (n,): a contested state overrides the type."""
    by_type = _BY_TYPE[codes(table, "node_type")]
    return np.where(codes(table, "lifecycle_state") == _CONTESTED_STATE, _CONTESTED, by_type)


def has_references(context_format: ContextFormat, *, citations: bool) -> bool:
    """Return whether lines carry references ``m1`` … (digest b §1.11)."""
    return context_format == "compact" or (context_format == "reader" and citations)


def header(context_format: ContextFormat, *, citations: bool, speakers: bool) -> str:
    """Return the format's header, one line.

    Args:
        context_format: Line format.
        citations: Whether reader lines carry references.
        speakers: Whether any packed line shows a speaker.
    """
    if context_format == "reader":
        return render_reader.header(citations=citations, speakers=speakers)
    return render_compact.header() if context_format == "compact" else render_auditable.header()


def label(section: int) -> str:
    """Return the line above a section's records."""
    return f"[{SECTIONS[section]}]"


def record_line(
    record: Record, *, context_format: ContextFormat, level: str, reference: str | None
) -> tuple[str, bool]:
    """Return a record's line and whether it shows a reader speaker.

    The line holds no character that any reader takes for a line end, and never starts or ends with
    white space, so token counts of lines (each with its line break) add up.
    """
    if context_format == "reader":
        return render_reader.line(record, reference)
    if context_format == "compact":
        return render_compact.line(record, level, reference or ""), False
    return render_auditable.line(record, level), False


def line_start(context_format: ContextFormat, reference: str) -> str:
    """Return how the lines of a format that shows references start, up to the reference's end."""
    return (render_compact.START if context_format == "compact" else render_reader.START) + reference


def assemble(
    *,
    notices: Iterable[str],
    guidance: str | None,
    head: str | None,
    sections: Iterable[tuple[int, Iterable[str]]],
) -> str:
    """Return the context: notices, guidance, header, then each section's label and lines."""
    lines = [*notices]
    if guidance is not None:
        lines.append(guidance)
    if head is not None:
        lines.append(head)
    for section, records in sections:
        lines.append(label(section))
        lines.extend(records)
    return "\n".join(lines)
