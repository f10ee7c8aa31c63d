"""Stage 1: what a question asks (RFC §3, digest a §2). Rules only; no model, no clock."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from prme_ray.model.analysis import Entity, QueryAnalysis, TemporalSignal
from prme_ray.model.enums import Intent, RetrievalMode
from prme_ray.model.errors import InvalidRequest
from stages.entities import extract_entities, has_proper_noun
from stages.query_wording import with_wording
from stages.temporal import dated_signals, phrase_signals
from stages.word_sets import words

__all__ = ["analyze", "keyword_terms"]

_ENTITY_OPENING = re.compile(r"\s*(?:who|what\s+is|what\s+are)\b", re.IGNORECASE)
_TEMPORAL = re.compile(
    r"\b(?:when|last|before|after|recent|recently|ago|yesterday|today|tomorrow|earlier|later|since|until|prior)\b",
    re.IGNORECASE,
)
_RELATIONAL = re.compile(r"\b(?:(?:related|connected|linked)\s+to|between|associated\s+with)\b", re.IGNORECASE)
_FACTUAL = re.compile(r"\b(?:what|how|why|does|is\s+it\s+true|facts?)\b", re.IGNORECASE)

_ORDERS = ("entity_first", "temporal_first")

_KEYWORD = re.compile(r"\b[a-z]{3,}\b")
_KEYWORD_LIMIT = 5
_STOP_WORDS = words(
    "how many much total did do have has the and or in on at to of for with from last past all what list count"
    " number been was were are is my me few spend spent any some each every a an that this those these it its"
)


def analyze(
    query: str,
    *,
    reference_time: datetime,
    intent_order: str = "entity_first",
    languages: Sequence[str] = ("en",),
    time_from: datetime | None = None,
    time_to: datetime | None = None,
    mode: RetrievalMode = RetrievalMode.DEFAULT,
) -> QueryAnalysis:
    """Return the analysis of a question.

    May run the date parser for some milliseconds under a process-wide lock, so call it off the
    event loop.

    Args:
        query: The question.
        reference_time: The request's clock, aware.
        intent_order: ``entity_first`` or ``temporal_first``.
        languages: Languages dates are parsed in; empty detects the language.
        time_from: The caller's lower bound; either bound replaces the window found in the text.
        time_to: The caller's upper bound.
        mode: Retrieval mode, passed through.

    Raises:
        InvalidRequest: unknown ``intent_order``.
    """
    if intent_order not in _ORDERS:
        raise InvalidRequest(argument="intent_order", given=intent_order, allowed=" or ".join(_ORDERS))
    entities = extract_entities(query)
    dated = dated_signals(query, reference_time=reference_time, languages=languages)
    if intent_order == "temporal_first":
        dated = _without_names(dated, entities)
    if time_from is None and time_to is None:
        instants = [signal.resolved for signal in dated if signal.resolved is not None]
        time_from, time_to = min(instants, default=None), max(instants, default=None)
    return with_wording(
        query,
        intent=_intent(query, temporal_first=intent_order == "temporal_first", dated=bool(dated)),
        entities=entities,
        temporal_signals=dated + phrase_signals(query),
        time_from=time_from,
        time_to=time_to,
        mode=mode,
    )


def keyword_terms(query: str) -> tuple[str, ...]:
    """Return the texts of the keyword scan of a count question (digest a §3.7), at most nine.

    The first five keywords (words of three or more letters a-z that are not stop words), then the
    pairs of neighbours among them. A repeated text is listed once.
    """
    kept = [word for word in _KEYWORD.findall(query.lower()) if word not in _STOP_WORDS][:_KEYWORD_LIMIT]
    pairs = [f"{left} {right}" for left, right in pairwise(kept)]
    return tuple(dict.fromkeys(kept + pairs))


def _intent(query: str, *, temporal_first: bool, dated: bool) -> Intent:
    # Durations and recurrences do not make a question temporal: they set no window (decision 10).
    temporal = dated or _TEMPORAL.search(query) is not None
    if temporal_first and temporal:
        return Intent.TEMPORAL
    if _ENTITY_OPENING.match(query) or has_proper_noun(query):
        return Intent.ENTITY_LOOKUP
    if temporal:
        return Intent.TEMPORAL
    if _RELATIONAL.search(query):
        return Intent.RELATIONAL
    return Intent.FACTUAL if _FACTUAL.search(query) else Intent.SEMANTIC


def _without_names(signals: tuple[TemporalSignal, ...], entities: tuple[Entity, ...]) -> tuple[TemporalSignal, ...]:
    """Drop signals that are one capitalised word of a name: "June" in "Who is June dating?"."""
    names = {word for entity in entities for word in entity.name.split()}
    return tuple(
        signal
        for signal in signals
        if not (
            len(signal.value.split()) == 1
            and signal.value[:1].isupper()
            and not any(character.isdigit() for character in signal.value)
            and signal.value in names
        )
    )
