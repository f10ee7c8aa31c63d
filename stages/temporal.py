"""Stretches of a question that speak of time (RFC §3, digest a §2.3, decision 10).

Dates and relative times come from dateparser, which is slow to import and to run: it is imported
on first use and only asked when a cheap look at the question finds something date-like. Durations
and recurrences are English patterns of our own; they are reported and have no instant.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from prme_ray.model.analysis import TemporalSignal
from prme_ray.model.enums import TemporalType
from stages.word_sets import words

__all__ = ["PARSER_LOCK", "dated_signals", "may_hold_date", "phrase_signals"]

_PARSED = 1_000
"""Most characters of a question that the date parser reads."""
_LOG = logging.getLogger(__name__)

PARSER_LOCK = threading.RLock()
"""Held around every dateparser call of the process: its caches and settings are shared and not thread-safe."""

# A match of one word without a digit counts only if it is one of these; "may" alone is the verb.
_KNOWN = words(
    "yesterday today tomorrow ago last before after recent recently earlier later since until prior"
    " monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun"
    " january february march april june july august september october november december"
    " jan feb mar apr jun jul aug sep oct nov dec"
)
_GATE = _KNOWN | words(
    "now next past coming upcoming tonight weekend day days night nights week weeks month months year years"
    " hour hours minute minutes second seconds morning afternoon evening midnight noon decade decades"
    " fortnight quarter century"
)
_LETTERS = re.compile(r"[a-z]+")
_DIGIT = re.compile(r"\d")

_NUMBER = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|several|a\s+few|a\s+couple\s+of)"
_UNIT = r"(?:second|minute|hour|day|night|weekend|week|fortnight|month|quarter|year|decade)"
_DAY_NAME = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DURATION = re.compile(
    rf"\b(?:(?:over|in|during|for|within|throughout|across)\s+the\s+(?:past|last|previous|next|coming)"
    rf"\s+(?:{_NUMBER}\s+)?{_UNIT}s?|for\s+{_NUMBER}\s+{_UNIT}s?)\b",
    re.IGNORECASE,
)
_RECURRING = re.compile(
    rf"\b(?:(?:every|each)\s+(?:other\s+|second\s+|single\s+|{_NUMBER}\s+)?"
    rf"(?:{_DAY_NAME}|{_UNIT}|weekday|morning|afternoon|evening)s?|on\s+(?:{_DAY_NAME}|weekday|weekend)s)\b",
    re.IGNORECASE,
)


def may_hold_date(query: str) -> bool:
    """Return whether ``query`` holds a digit or a word worth asking the date parser about."""
    return _DIGIT.search(query) is not None or not _GATE.isdisjoint(_LETTERS.findall(query.lower()))


def _head(query: str) -> str:
    """Return the part of a question that is parsed: the parser's cost grows with every word and digit.

    It holds one lock for the whole process, so a pasted document must not make everybody wait. The cut
    falls between words where there is one.
    """
    if len(query) <= _PARSED:
        return query
    head = query[:_PARSED]
    return head.rpartition(" ")[0] or head


def dated_signals(query: str, *, reference_time: datetime, languages: Sequence[str]) -> tuple[TemporalSignal, ...]:
    """Return the ABSOLUTE (with a digit) and RELATIVE signals of ``query``, in order.

    Args:
        query: The question.
        reference_time: Aware; what "yesterday" counts from.
        languages: Languages tried; empty detects the language.

    Returns:
        Signals resolved in UTC. Empty when the parser fails: a question that it cannot read is
        still answered, without temporal affinity.
    """
    if not may_hold_date(query):
        return ()
    settings = {
        "RETURN_AS_TIMEZONE_AWARE": True,
        "TIMEZONE": "UTC",
        "RELATIVE_BASE": reference_time.astimezone(UTC),
    }
    with PARSER_LOCK:
        from dateparser.search import search_dates

        # The parser raises errors of many kinds on odd text, and none of them may end a request.
        try:
            found = search_dates(_head(query), languages=list(languages) or None, settings=settings) or []
        except Exception as error:
            _LOG.warning("no dates taken from the question: the parser raised %s", type(error).__name__)
            return ()
    return tuple(
        TemporalSignal(
            type=TemporalType.ABSOLUTE if _DIGIT.search(text) else TemporalType.RELATIVE,
            value=text,
            resolved=resolved.astimezone(UTC),
        )
        for text, resolved in found
        if len(text.split()) > 1 or _DIGIT.search(text) or text.lower() in _KNOWN
    )


def phrase_signals(query: str) -> tuple[TemporalSignal, ...]:
    """Return the DURATION signals of ``query`` ("for two weeks"), then the RECURRING ones ("every Tuesday")."""
    return tuple(
        TemporalSignal(type=kind, value=match.group(), resolved=None)
        for kind, pattern in ((TemporalType.DURATION, _DURATION), (TemporalType.RECURRING, _RECURRING))
        for match in pattern.finditer(query)
    )
