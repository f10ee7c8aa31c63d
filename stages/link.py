"""Names mentioned in a memory, found by rules alone: the memory's links to entity nodes.

Unlike query analysis (digest a §2.2), which looks at ASCII words inside a sentence, this reads any
cased script, inner capitals, apostrophes, acronyms and the first word of a sentence: a name missed
here is missing from the graph for good, a name too many only adds a node that few questions name.

One pass over the text, in time proportional to its length: no pattern here can backtrack over more
than a bounded stretch.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from stages.link_nouns import is_ordinary, proper_nouns
from stages.link_words import LABELS

__all__ = ["MENTION_LIMIT", "Mention", "entity_key", "link"]

MENTION_LIMIT = 32
"""Most mentions of one memory; the first ones are kept."""

SPEAKER, INSIDE, QUOTED, FIRST = 0.9, 0.8, 0.6, 0.5
"""Confidences of a speaker, of a proper noun inside a sentence, of a quoted string, and of a proper
noun at the start of a sentence, where every word has a capital. All pass the default floor of 0.40
for edges."""

_QUOTE_WORDS = 8
_QUOTES_EXAMINED = 2_000  # bounds the time of any input

_QUOTE = re.compile(r'"([^"\n]{1,120})"|[“„]([^“”„\n]{1,120})[”“]|「([^「」\n]{1,120})」|『([^『』\n]{1,120})』')
_PREFIX = re.compile(
    r"\s{0,8}(?:(?:\([^()\n]{1,80}\)|\[[^\[\]\n]{1,80}\])\s{0,8})?"
    r"([^\W\d_a-z][\w'’.-]{0,40}(?: [^\W\d_a-z][\w'’.-]{0,40}){0,2})(?::(?=\s)|：)"
)
_SPACES = re.compile(r"\s+")
_DOTS = re.compile(r"[.\s]+")
_EDGES = " \t,.;:!?…、。，！？"


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a memory.

    Attributes:
        name: The name as first shown, without possessive ending or surplus space.
        key: Identity of the name: equal for its spellings by case, possessive and width.
        confidence: Confidence of the mention's edge, one of the constants of this module.
        kind: How it was found.
    """

    name: str
    key: str
    confidence: float
    kind: Literal["speaker", "proper_noun", "quoted"]


class _Place(NamedTuple):
    """A name at a position of the text."""

    start: int
    name: str
    key: str
    confidence: float
    kind: Literal["proper_noun", "quoted"]


def link(content: str, *, speaker: str | None = None) -> tuple[Mention, ...]:
    """Return the names in ``content``, one mention a name, at most :data:`MENTION_LIMIT`.

    The speaker comes first, the others by their first place in the text. A name found in several
    ways has the highest of its confidences. Pure and deterministic.

    Args:
        content: Text of the memory.
        speaker: Who said it. Without it, a leading ``Name:`` of one to three capitalised words,
            also after one group in brackets, is taken as the speaker.

    Example:
        >>> [(m.name, m.confidence) for m in link("Thanks, Ana's dog met O'Brien.", speaker="Leo")]
        [('Leo', 0.9), ('Ana', 0.8), ("O'Brien", 0.8)]
    """
    text = unicodedata.normalize("NFC", content)
    shown = _tidy(speaker) if speaker is not None else _prefix_speaker(text)
    found: dict[str, Mention] = {}
    if shown and (key := entity_key(shown)):
        found[key] = Mention(_unpossessed(shown), key, SPEAKER, "speaker")
    places = [*_first_names(_quoted(text)), *_first_names(_nouns(text))]
    for place in sorted(places, key=lambda place: (place.start, -len(place.name), place.key)):
        known = found.get(place.key)
        if known is None:
            if len(found) < MENTION_LIMIT:
                found[place.key] = Mention(place.name, place.key, place.confidence, place.kind)
        elif place.confidence > known.confidence:
            found[place.key] = Mention(known.name, known.key, place.confidence, place.kind)
    return tuple(found.values())


def entity_key(name: str) -> str:
    """Return the identity of a name: NFKC, case and possessive folded, blanks and dots collapsed.

    Empty where the name has no letter and no digit.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).replace("’", "'")
    folded = _unpossessed(_DOTS.sub(" ", folded).strip(_EDGES))
    return folded if any(character.isalnum() for character in folded) else ""


def _first_names(places: Iterator[_Place]) -> list[_Place]:
    """Return the places that matter, up to the first name too many: the rest is not even searched."""
    kept: list[_Place] = []
    best: dict[str, float] = {}
    for place in places:
        known = best.get(place.key)
        if known is None and len(best) == MENTION_LIMIT:
            break
        if known is None or place.confidence > known:
            best[place.key] = place.confidence
            kept.append(place)
    return kept


def _prefix_speaker(text: str) -> str | None:
    match = _PREFIX.match(text)
    if match is None:
        return None
    words = match[1].split(" ")
    if not all(word[0].isupper() for word in words):
        return None
    if any(word.casefold() in LABELS for word in words) or all(is_ordinary(word) for word in words):
        return None
    return _tidy(match[1])


def _quoted(text: str) -> Iterator[_Place]:
    for match in islice(_QUOTE.finditer(text), _QUOTES_EXAMINED):
        inner = next(group for group in match.groups() if group is not None)
        # Blank next to a quote: two unrelated marks, as in 5" of board and a 6" pipe.
        if inner[0].isspace() or inner[-1].isspace():
            continue
        name = _tidy(inner.strip(_EDGES))
        words = name.count(" ") + 1
        if words > _QUOTE_WORDS or (words == 1 and is_ordinary(name)):
            continue
        if key := entity_key(name):
            yield _Place(match.start(), _unpossessed(name), key, QUOTED, "quoted")


def _nouns(text: str) -> Iterator[_Place]:
    for start, shown, sure in proper_nouns(text):
        name = _tidy(shown)
        if key := entity_key(name):
            yield _Place(start, name, key, INSIDE if sure else FIRST, "proper_noun")


def _unpossessed(name: str) -> str:
    """Return a name without a possessive ending: Ana's, James'."""
    if name[-2:] in {"'s", "’s", "'S", "’S"}:
        return name[:-2]
    return name[:-1] if name[-2:] in {"s'", "s’", "S'", "S’"} else name


def _tidy(name: str) -> str:
    return _SPACES.sub(" ", name).strip()
