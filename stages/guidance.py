"""Lines above the records: notices that must stand, guidance that may (digest b §1.12).

None of these texts holds words of the user or of a memory.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import Intent
from prme_ray.model.settings.packing import ContextFormat
from prme_ray.model.times import iso

__all__ = ["ContextType", "asks_for_advice", "context_type", "coverage_notices", "guidance_text"]

ContextType = Literal["temporal", "aggregation", "knowledge_update", "default"]

_AGGREGATION_NOTICE = (
    "Coverage: the records below were found by relevance and are not a full enumeration; "
    "a complete count or list cannot be stated from them."
)
_HISTORICAL_NOTICE = (
    "History: records ingested after the requested cutoff are left out; lifecycle states and indexes are "
    "today's and later changes are not undone, so this is not an exact snapshot of that time."
)

_UNIT = r"(?:second|minute|hour|day|night|week|weekend|fortnight|month|quarter|year|decade)s?"
_ELAPSED = re.compile(
    rf"\bhow\s+many\s+{_UNIT}\b.*?\b(?:ago|pass(?:ed)?|before|between|since)\b"
    r"|\bhow\s+long\b"
    r"|\b(?:who|which|what)\b.*?\b(?:first|earliest|latest|most\s+recently)\b"
    r"|\b(?:order|sequence)\b.*?\b(?:first|last|earliest|latest)\b",
    re.IGNORECASE | re.DOTALL,
)
_AGGREGATION = re.compile(r"\bhow\s+(?:many|much)\b|\b(?:total|count|sum)\b|\blist\s+all\b", re.IGNORECASE)
_CURRENT = re.compile(
    r"\b(?:current|currently|now|presently|these\s+days|most\s+recently|right\s+now)\b"
    r"|\bafter\s+the\s+(?:\w+\s+)?(?:recent|latest)\b"
    r"|\bdo\s+I\s+(?:have|keep|use|own|play|work)\b",
    re.IGNORECASE,
)
_TEMPORAL = re.compile(r"\b(?:when|before|after|ago|first|last|order|earliest|latest)\b", re.IGNORECASE)
_ADVICE = re.compile(
    r"\brecommend\w*|\bsuggest\w*|\btips?\b|\bideas?\b|\bwhat\s+should\s+I\b|\bhelp\s+me\s+(?:choose|pick|decide)\b",
    re.IGNORECASE,
)

_RECORD_DATE = {
    "reader": "the date in brackets, or the date that its text starts with",
    "compact": "its event_time field",
    "auditable": "its event_time field",
}


def coverage_notices(*, is_aggregation: bool, knowledge_at: datetime | None) -> tuple[str, ...]:
    """Return the notices a context must carry, aggregation first."""
    notices = []
    if is_aggregation:
        notices.append(_AGGREGATION_NOTICE)
    if knowledge_at is not None:
        notices.append(_HISTORICAL_NOTICE)
    return tuple(notices)


def context_type(query: str, *, intent: Intent, is_aggregation: bool) -> ContextType:
    """Return how a question wants its records read; the first matching rule wins.

    Explicit reasoning about time comes before counting, counting before the present state, and that
    before other words of time.
    """
    if _ELAPSED.search(query):
        return "temporal"
    if is_aggregation or _AGGREGATION.search(query):
        return "aggregation"
    if _CURRENT.search(query):
        return "knowledge_update"
    if intent is Intent.TEMPORAL or _TEMPORAL.search(query):
        return "temporal"
    return "default"


def asks_for_advice(query: str) -> bool:
    """Return whether the question wants a recommendation or help with a choice."""
    return _ADVICE.search(query) is not None


def guidance_text(
    query: str,
    *,
    analysis: QueryAnalysis,
    mode: Literal["off", "temporal", "all"],
    context_format: ContextFormat,
    reference_time: datetime,
) -> str | None:
    """Return the guidance for a question, or ``None`` where the mode offers none.

    Args:
        query: The question.
        analysis: Its analysis.
        mode: ``temporal`` guides questions about time only, ``all`` also those about the present
            state and those that ask for advice.
        context_format: Decides where a record's date is found.
        reference_time: The time the question is asked at.
    """
    if mode == "off":
        return None
    kind = context_type(query, intent=analysis.intent, is_aggregation=analysis.is_aggregation)
    asked = f"Question time: {iso(reference_time)}"
    if kind == "temporal":
        return (
            f"{asked}\nResolve relative dates in a record from that record's own date ("
            f"{_RECORD_DATE[context_format]}); subtract dates step by step; answer relative to the question time."
        )
    if mode == "temporal":
        return None
    if kind == "knowledge_update":
        return (
            f"{asked}\nPrefer an explicit, supported update over what it replaces. A later date alone does not settle "
            "a contradiction: report what stays unresolved."
        )
    if asks_for_advice(query):
        return (
            "Base advice on what the records say about this user. Do not apply traits or preferences of another "
            "person to the user."
        )
    return None
