"""Proper nouns of a text: runs of capitalised words, and whether the capital is sure to be a name's.

Any cased script, inner capitals (McDonald), apostrophes (O'Brien), initials (J. K. Rowling) and
acronyms of two to six letters are read. A word at the start of a sentence counts only where it does
not look like an ordinary opener. One pass: no pattern can backtrack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from stages.link_words import MODIFIERS, OPENERS, STOP, TITLES

__all__ = ["ProperNoun", "is_ordinary", "proper_nouns"]

_EXAMINED = 3_000  # capitalised words looked at: bounds the time of any input
_RUN_LIMIT = 6  # words; a longer run of capitalised words is a heading, not a name
_SHOUT = 3  # words of a run in capitals only: emphasis, not acronyms
_WORD_LIMIT = 40  # characters
_WINDOW = 8  # characters looked at before a word; more blank than that starts a new sentence
_BLANKS = " \t\u00a0"

# A word starting with a capital, or in another script than Latin: those are sorted out below.
_WORD = re.compile(r"(?<!\w)[^\W\d_a-z][^\W_]*(?:['’-][^\W_]+)*")
_LOWER = re.compile(r"(?<!\w)[^\W\d_A-Z][^\W_]*")
_ACRONYM = re.compile(r"[^\W_]{2,6}")
_SUFFIX = re.compile(r"['’](?:s|ll|d|ve|re|m)$", re.IGNORECASE)
_NEGATION = re.compile(r"n['’]t$", re.IGNORECASE)


class ProperNoun(NamedTuple):
    """A name at a position of the text. ``sure``: it stands where only a name has a capital."""

    start: int
    name: str
    sure: bool


class _Word(NamedTuple):
    """What the word lists say of one capitalised word."""

    stops: bool  # never part of a name
    opens: bool  # commonly opens a sentence
    modifies: bool  # no name alone
    fits: bool  # neither too long nor long in capitals
    capitals: bool
    single: bool


class _Known(dict[str, _Word]):
    """Words of one text: a process-wide cache would keep words of memories that were erased."""

    def __missing__(self, word: str) -> _Word:
        known = self[word] = _word(word)
        return known


def proper_nouns(text: str) -> Iterator[ProperNoun]:
    """Yield the proper nouns of ``text`` (in NFC), left to right, repeats included."""
    small: frozenset[str] | None = None
    known = _Known()
    for run in _runs(text):
        inside = _is_inside(text, run[0].start())
        for words, after in _names(run, known, opening=not inside):
            start = words[0].start()
            name = _SUFFIX.sub("", text[start : words[-1].end()])
            sure = inside or after
            if len(words) == 1 and not sure:
                small = frozenset(_LOWER.findall(text)) if small is None else small
                # The same word in small letters elsewhere: the capital is only that of the sentence.
                if name.casefold() in small or _looks_ordinary(name):
                    continue
            yield ProperNoun(start, name, sure)


def is_ordinary(word: str) -> bool:
    """Return whether the word lists know ``word`` as one that is no name by itself."""
    known = _word(word)
    return known.stops or known.opens or known.modifies


def _runs(text: str) -> Iterator[list[re.Match[str]]]:
    """Yield maximal runs of capitalised words with only blanks, or an initial's dot, between them."""
    capitalised = (match for match in _WORD.finditer(text) if match[0][0].isupper())
    run: list[re.Match[str]] = []
    for match in islice(capitalised, _EXAMINED):
        start = match.start()
        if start and text[start - 1] in "/\\=":  # an address or code
            continue
        if run and not _joined(text, run[-1], start):
            yield run
            run = []
        run.append(match)
    if run:
        yield run


def _joined(text: str, before: re.Match[str], start: int) -> bool:
    end = before.end()
    if start - end > _WINDOW:
        return False
    gap = text[end:start]
    if gap[0] == "." and (end - before.start() == 1 or before[0].casefold() in TITLES):
        gap = gap[1:]
    # A possessive ends a name: in "Ana's Mom" there are two.
    return not gap.strip(_BLANKS) and _SUFFIX.search(before[0]) is None


def _names(run: list[re.Match[str]], known: _Known, *, opening: bool) -> Iterator[tuple[list[re.Match[str]], bool]]:
    """Yield the names of a run, each with whether it follows another word of the run.

    Words that are never part of a name cut the run; so do words in capitals among others such
    ("WE DID IT"), and at the start of a sentence the words that commonly open one ("Hey", "Thanks").
    """
    first, after = 0, False
    shouting = sum(known[match[0]].capitals for match in run) >= _SHOUT
    for position, match in enumerate(run):
        word = known[match[0]]
        if not (word.stops or (opening and word.opens) or (shouting and word.capitals)):
            opening = False
            continue
        if _is_name(run[first:position], known):
            yield run[first:position], after
        first, after = position + 1, True
    if _is_name(run[first:], known):
        yield run[first:], after


def _is_name(run: list[re.Match[str]], known: _Known) -> bool:
    if not 1 <= len(run) <= _RUN_LIMIT:
        return False
    words = [known[match[0]] for match in run]
    if len(words) == 1 and words[0].modifies:
        return False
    return all(word.fits for word in words) and not all(word.single for word in words)


def _word(word: str) -> _Word:
    plain = _SUFFIX.sub("", word)
    folded = plain.casefold().replace("’", "'")
    capitals = len(plain) > 1 and plain.isupper()
    return _Word(
        stops=folded in STOP or _NEGATION.search(plain) is not None,
        opens=folded in OPENERS,
        modifies=folded in MODIFIERS,
        fits=len(plain) <= _WORD_LIMIT and (not capitals or _ACRONYM.fullmatch(plain) is not None),
        capitals=capitals,
        single=len(plain) == 1,
    )


def _is_inside(text: str, start: int) -> bool:
    """Return whether a word at ``start`` follows another word of the same sentence."""
    before = text[max(0, start - _WINDOW) : start].rstrip(" \t\u00a0,(&")
    if not before:
        return False
    if before[-1] == ".":
        return before[:-1].rpartition(" ")[2].casefold() in TITLES
    return before[-1].isalnum() or before[-1] in ")'’"


def _looks_ordinary(word: str) -> bool:
    """Return whether an opening word looks like a verb form ("Painting", "Loved") or "Self-made"."""
    folded = word.casefold()
    if "-" in word and word[word.rindex("-") + 1].islower():
        return True
    return len(folded) >= len("aking") and folded.endswith(("ing", "ed"))
