"""Turns text into the terms of the lexical index (RFC-0005 §4.3, digest a §3.4).

Words: split at everything that is not a letter or digit, terms of 40 bytes and more dropped,
lower-cased with accents kept, English-stemmed; no word is too common to be found.

Scripts written without spaces have no words to split at. A run of such characters is indexed as its
single characters and its pairs, and asked for by its pairs (by the character when it stands alone),
so any stretch of a sentence finds it. Only the index sees the changed text; nothing stored changes.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from typing import Any

import tantivy

__all__ = ["ANALYZER_ID", "MAX_QUERY_TERMS", "build_analyzer", "index_text", "query_terms"]

ANALYZER_ID = "simple+short40+lower+english;nfc;runs(nfkc,1+2);1"
"""Identity of the recipe. Change it with any change of terms: indexes on disk are then rebuilt."""

MAX_QUERY_TERMS = 1024
"""Different terms of a question that count, the first ones first."""

_TERM_BYTES = 40

# An analyzer serves one thread at a time.
_LOCAL = threading.local()

_KEPT_QUESTIONS = 64
"""Texts whose terms are kept: a retrieval asks for those of its question and of each name in it several times."""

_RUN = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b16f"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uffa0-\uffdc"  # Hangul
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ece\u0edc-\u0edf"  # Lao
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u1000-\u103f\u1050-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"  # Myanmar
)
_RUNS = re.compile(f"[{_RUN}]+")

# Tone, virama and voicing marks at which the word splitter would cut a pair in two.
_CUTTING = re.compile(
    "[\u0e47-\u0e4c\u0e4e\u0eba\u0ec8-\u0ecc\u0ece\u17b4\u17b5\u17c9-\u17d3\u17dd\u1037\u1039\u103a\u109e\u109f"
    "\u3099-\u309c\uaa77-\uaa79]+"
)


def build_analyzer() -> Any:
    """Return a new analyzer of words."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        tantivy.Filter.remove_long(_TERM_BYTES),
        tantivy.Filter.lowercase(),
        tantivy.Filter.stemmer("english"),
    ):
        builder = builder.filter(step)
    return builder.build()


def index_text(text: str) -> str:
    """Return the text to index for a memory; ASCII text comes back as it is."""
    return _spread(text, singles=True)


def query_terms(text: str) -> list[str]:
    """Return the different terms of a question in its order, at most :data:`MAX_QUERY_TERMS`.

    Every character is plain text: nothing in a question is an operator.

    >>> query_terms("Running, running AND C++")
    ['run', 'and', 'c']
    """
    return list(_query_terms(text))


@lru_cache(maxsize=_KEPT_QUESTIONS)
def _query_terms(text: str) -> tuple[str, ...]:
    analyzer = getattr(_LOCAL, "analyzer", None)
    if analyzer is None:
        analyzer = _LOCAL.analyzer = build_analyzer()
    terms = dict.fromkeys(analyzer.analyze(_spread(text, singles=False)))
    return tuple(terms)[:MAX_QUERY_TERMS]


def _spread(text: str, *, singles: bool) -> str:
    if text.isascii():
        return text
    # Composed and decomposed spellings look the same and must be the same term.
    composed = unicodedata.normalize("NFC", text)
    return _RUNS.sub(lambda match: f" {' '.join(_grams(match.group(), singles=singles))} ", composed)


def _grams(run: str, *, singles: bool) -> list[str]:
    # NFKC also makes half-width kana equal to the usual ones.
    letters = _CUTTING.sub("", unicodedata.normalize("NFKC", run))
    pairs = [letters[start : start + 2] for start in range(len(letters) - 1)]
    if singles or not pairs:
        return [*letters, *pairs]
    return pairs
