"""Reads a packed context back by its grammar and refuses everything else.

::

    context  = *notice [guidance] [header *(label 1*record)]
    record   = reader line | JSON array (compact) | JSON object (auditable)

Nothing is looked up by content: what a line is follows from where it stands and how it begins.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from prme_ray.model.enums import ConditionState, EpistemicType, LifecycleState
from stages.render import SECTIONS, header
from stages.render_compact import FIELDS

_TIME = r"\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?"
_VALID = rf"valid {_TIME} to {_TIME}"
_TAG = "|".join(
    [
        *map(str, LifecycleState),
        *map(str, EpistemicType),
        *(rf"conditional \(condition {state}\)" for state in ConditionState),
    ]
)
_READER = re.compile(
    rf"- (?:\[(?P<ref>m[1-9][0-9]*)\] )?(?:\[(?P<time>{_TIME}; {_VALID}|{_TIME}|{_VALID})\] )?"
    rf"(?:\[(?P<tags>(?:{_TAG})(?:, (?:{_TAG}))?)\] )?(?=\")"
)
_AUDITABLE = {
    "id",
    "type",
    "scope",
    "epistemic",
    "memory_lifecycle",
    "representation",
    "event_time",
    "valid_from",
    "valid_to",
    "text",
    "source_type",
}


@dataclass(frozen=True)
class Parsed:
    """A record as a reader of the context sees it; ``None`` for what its format does not show."""

    text: str
    speaker: str | None = None
    ref: str | None = None
    node_id: str | None = None


def parse(
    context: str, *, context_format: str, citations: bool = False, before: tuple[str, ...] = ()
) -> list[tuple[str, list[Parsed]]]:
    """Return sections and their records, in order.

    Args:
        context: The packed context.
        context_format: Its line format.
        citations: Whether reader lines carry references.
        before: The notices and the guidance, as the packer reports them.

    Raises:
        ValueError: it is not a context of this grammar.
    """
    lines = context.split("\n")
    if context and context.splitlines() != lines:
        raise ValueError("a reader of another kind sees more lines")
    above = [line for text in before for line in text.split("\n")]
    if lines[: len(above)] != above:
        raise ValueError("it does not start with the notices and the guidance")
    lines = lines[len(above) :] if context else []
    if not lines:
        return []
    shapes = [header(context_format, citations=citations, speakers=shown) for shown in (False, True)]  # type: ignore[arg-type]
    if lines[0] not in shapes:
        raise ValueError(f"no header: {lines[0]!r}")
    read = {"reader": _reader, "compact": _compact, "auditable": _auditable}[context_format]
    found: list[tuple[str, list[Parsed]]] = []
    for line in lines[1:]:
        if line.startswith("[") and line[1:-1] in SECTIONS and line.endswith("]"):
            if line[1:-1] in dict(found):
                raise ValueError(f"section {line} twice")
            found.append((line[1:-1], []))
        elif found:
            found[-1][1].append(read(line))
        else:
            raise ValueError(f"a record before any section: {line!r}")
    if any(not records for _, records in found):
        raise ValueError("a section without a record")
    return found


def _reader(line: str) -> Parsed:
    opening = _READER.match(line)
    if opening is None:
        raise ValueError(f"no reader line: {line!r}")
    first, end = json.JSONDecoder().raw_decode(line, opening.end())
    if line[end:] == "":
        return Parsed(first, ref=opening["ref"])
    if not line.startswith(": ", end):
        raise ValueError(f"something behind the text: {line!r}")
    second, end = json.JSONDecoder().raw_decode(line, end + 2)
    if line[end:] or not isinstance(second, str):
        raise ValueError(f"something behind the text: {line!r}")
    return Parsed(second, speaker=first, ref=opening["ref"])


def _compact(line: str) -> Parsed:
    values: Any = json.loads(line)
    if not isinstance(values, list) or len(values) != len(FIELDS):
        raise ValueError(f"no compact line: {line!r}")
    fields = dict(zip(FIELDS, values, strict=True))
    return Parsed(fields["text"], ref=fields["ref"])


def _auditable(line: str) -> Parsed:
    pairs: Any = json.loads(line, object_pairs_hook=list)
    fields = dict(pairs)
    if len(fields) != len(pairs) or fields.keys() - {"speaker"} != _AUDITABLE:
        raise ValueError(f"no auditable line: {line!r}")
    return Parsed(fields["text"], speaker=fields.get("speaker"), node_id=fields["id"])
