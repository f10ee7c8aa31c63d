"""Names in a question (digest a §2.2).

Both rules are cheap guesses from spelling, so each carries one fixed confidence instead of a
measured one; the type stays ``unknown`` until the owner's entity nodes name it (decision 10).
"""

from __future__ import annotations

import re

from prme_ray.model.analysis import Entity

__all__ = ["PROPER_NOUN_CONFIDENCE", "QUOTED_CONFIDENCE", "extract_entities", "has_proper_noun"]

PROPER_NOUN_CONFIDENCE = 0.7
"""Of a capitalised word inside a sentence: usually a name, sometimes a month or an emphasis."""

QUOTED_CONFIDENCE = 0.9
"""Of text that the asker set in quotation marks."""

# A run may start neither the question nor a sentence, where every word has a capital letter.
_PROPER_NOUNS = re.compile(r"(?<!^)(?<![.!?]\s)[A-Z][a-z]+(?:\s+[A-Z][a-z]+)*")
_QUOTED = re.compile(r"\"([^\"]+)\"|'([^']+)'")


def has_proper_noun(query: str) -> bool:
    """Return whether ``query`` holds a capitalised word that does not start a sentence."""
    return _PROPER_NOUNS.search(query) is not None


def extract_entities(query: str) -> tuple[Entity, ...]:
    """Return the names in ``query``: proper nouns left to right, then quoted strings, no repeats."""
    found = dict.fromkeys(_PROPER_NOUNS.findall(query), PROPER_NOUN_CONFIDENCE)
    for double, single in _QUOTED.findall(query):
        found.setdefault(double or single, QUOTED_CONFIDENCE)
    return tuple(Entity(name=name, confidence=confidence) for name, confidence in found.items())
