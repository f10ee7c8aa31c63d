"""What the wording of a question says: count questions and the present state of something.

English patterns only, matched without regard to case. Sources: RFC §7.1, digest a §2.4 and §2.5.
"""

from __future__ import annotations

import re
from datetime import datetime

from prme_ray.model.analysis import CurrentState, Entity, QueryAnalysis, TemporalSignal
from prme_ray.model.enums import Intent, RetrievalMode

__all__ = [
    "current_state",
    "has_answer_class_pattern",
    "has_explicit_wording",
    "has_implicit_pattern",
    "is_aggregation",
    "is_elapsed_time",
    "is_recent_episodic",
    "with_wording",
]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_AGGREGATION = _pattern(
    r"\b(?:how\s+(?:many|much|often)|total|count|all\s+the\s+times|every\s+time|list\s+all|all\s+of\s+the)\b"
)
_ELAPSED = _pattern(
    r"\b(?:how\s+many\s+(?:second|minute|hour|day|week|month|year)s?|how\s+much\s+time)\b"
    r"[^?.!]{0,50}\b(?:ago|passed|elapsed|before|between|since|until)\b"
)
_DURATION_OR_START = _pattern(r"\b(?:how\s+long|since\s+when|when\s+did|elapsed\s+time)\b")
_RELATED_TO_PAST = _pattern(r"\b(?:before|after|previously|formerly|originally|used\s+to)\b")
_EXPLICIT = _pattern(
    r"\b(?:current|currently|now|latest|today|at\s+the\s+moment|these\s+days|presently|so\s+far"
    r"|usually|typically|normally|most\s+recently)\b"
    r"|^(?:do|does|am|are|have|has)\s+i\b"
    r"|\bdo\s+i\s+(?:go|have|use|own|keep|play|attend|work)\b"
)
_IMPLICIT = _pattern(r"^\s*(?:who\s+(?:is|are)|what(?:\s+\S+){1,4}\s+(?:does|is|has))\b")
_RECENT_EPISODIC = _pattern(
    r"\b(?:recently|last\s+time|the\s+other\s+day|earlier\s+today|yesterday"
    r"|this\s+(?:morning|afternoon|evening|week)|just\s+(?:now|told|said|mentioned|asked)|remember\s+when"
    r"|did\s+(?:i|we)\s+(?:talk|discuss|mention|say))\b"
)
_ANSWER_CLASS = _pattern(r"^\s*what(?:\s+\S+){1,4}\s+does\b")
_TWO_SUBJECTS = _pattern(r"\b(?:and|or)\b.*\bdoes\b")


def is_elapsed_time(query: str) -> bool:
    """Return whether ``query`` asks how much time passed ("how many days ago ...")."""
    return _ELAPSED.search(query) is not None


def is_aggregation(query: str) -> bool:
    """Return whether ``query`` is a count or list question and not an elapsed-time one (§2.4)."""
    return _AGGREGATION.search(query) is not None and not is_elapsed_time(query)


def has_explicit_wording(query: str) -> bool:
    """Return whether ``query`` says in words that it means the present ("now", "do I have")."""
    return _EXPLICIT.search(query) is not None


def has_implicit_pattern(query: str) -> bool:
    """Return whether ``query`` has the shape of a present-tense question ("who is ...")."""
    return _IMPLICIT.search(query) is not None


def is_recent_episodic(query: str) -> bool:
    """Return whether ``query`` asks about something that happened lately (§2.5)."""
    return _RECENT_EPISODIC.search(query) is not None


def has_answer_class_pattern(query: str) -> bool:
    """Return whether ``query`` names the class of its answer ("what kind of bike does ...")."""
    return _ANSWER_CLASS.search(query) is not None and _TWO_SUBJECTS.search(query) is None


def current_state(query: str, *, intent: Intent, aggregation: bool) -> CurrentState:
    """Return whether ``query`` asks for the present state of something (§2.5, in that order).

    Args:
        query: The question.
        intent: Its intent; a temporal one needs explicit wording.
        aggregation: Whether it is a count or list question, which never is one.

    Returns:
        ``"implicit"`` also when explicit words are present: the shape of the question decides
        that scoring must first find update wording among the candidates.
    """
    if aggregation or _DURATION_OR_START.search(query) or _RELATED_TO_PAST.search(query):
        return "none"
    explicit = has_explicit_wording(query)
    if intent is Intent.TEMPORAL and not explicit:
        return "none"
    if has_implicit_pattern(query):
        return "implicit"
    return "explicit" if explicit else "none"


def with_wording(
    query: str,
    *,
    intent: Intent,
    entities: tuple[Entity, ...] = (),
    temporal_signals: tuple[TemporalSignal, ...] = (),
    time_from: datetime | None = None,
    time_to: datetime | None = None,
    aggregation: bool | None = None,
    mode: RetrievalMode = RetrievalMode.DEFAULT,
) -> QueryAnalysis:
    """Return a ``QueryAnalysis`` with every wording field worked out from ``query``.

    ``aggregation`` overrides the flag of §2.4; ``None`` means: decide from the wording.
    """
    counted = is_aggregation(query) if aggregation is None else aggregation
    return QueryAnalysis(
        query=query,
        intent=intent,
        entities=entities,
        temporal_signals=temporal_signals,
        time_from=time_from,
        time_to=time_to,
        is_aggregation=counted,
        current_state=current_state(query, intent=intent, aggregation=counted),
        explicit_wording=has_explicit_wording(query),
        implicit_pattern=has_implicit_pattern(query),
        recent_episodic=is_recent_episodic(query),
        answer_class_pattern=has_answer_class_pattern(query),
        mode=mode,
    )
