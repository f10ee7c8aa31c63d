"""What a record's line costs: rendered and counted once a version, looked up afterwards.

Counting tokens is the most expensive thing stage 6 does (20 µs a line), so lines are kept in a cache
that the caller owns. An entry is found by owner, node id, ``updated_at``, format, level, encoding and
reference: everything a line depends on.

References are numbered anew for every question (``["m12","note",…``). Where the tokenizer splits behind
digits, what follows the reference is therefore kept and counted apart from the start that ends in it.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from itertools import repeat
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.protocols import TokenCounter
from prme_ray.model.settings import PackingSettings
from prme_ray.model.tables import texts, times
from stages.line_cache import LineCache
from stages.lines import KnownLines, Line, Lines
from stages.render import line_start, record_line
from stages.render_record import TEXT_LEVELS, Record, read

__all__ = ["CachedLines", "LineCosts"]

_NEVER = 1 << 40
"""Tokens of a line that no budget holds."""


class LineCosts(Protocol):
    """Answers what lines look like and what text costs."""

    def lines(self, table: pa.Table, *, level: str, references: Sequence[str] | None) -> Lines:
        """Return every row's line at a level, in row order."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of literal text."""
        ...


class CachedLines:
    """The product's costs: renders in one format and counts with one tokenizer."""

    def __init__(
        self, packing: PackingSettings, counter: TokenCounter, cache: MutableMapping[Any, Line], *, owner: str
    ) -> None:
        """Bind format, tokenizer and cache.

        Args:
            packing: Line format, and the token budget: a text too long for it by its bytes alone is
                neither rendered nor counted.
            counter: Token counter of the configured encoding.
            cache: Lines of earlier calls, such as a :class:`LineCache`; owners may share it.
            owner: Tenant and owner as one string. It is part of every key, so that owners with equal
                node ids never see each other's lines.
        """
        self._format = packing.context_format
        self._counter = counter
        self._cache = cache
        self._owner = owner
        self._longest_text = counter.longest_token * packing.token_budget
        self._started: tuple[Sequence[str], list[str], npt.NDArray[np.int64]] | None = None
        self.count = counter.count

    def lines(self, table: pa.Table, *, level: str, references: Sequence[str] | None) -> Lines:
        """Return every row's line at a level, in row order.

        Args:
            table: Rows of ``NODE`` or wider.
            level: One of :data:`~stages.render_record.LEVELS`.
            references: ``m1`` … of each row, where the format shows them.
        """
        cache = self._cache
        if isinstance(cache, LineCache) and (references is None or self._counter.splits_after_digits):
            found = self._by_row(cache, table, level, cut=references is not None)
            if found is not None:
                return found if references is None else found.after(*self._starts(cache, references))
        return Lines.of(self._by_key(table, level, references))

    def _starts(self, cache: LineCache, references: Sequence[str]) -> tuple[Sequence[str], npt.NDArray[np.int64]]:
        """Return how each line starts, and what that costs; once a request, as all levels start alike."""
        if self._started is None or self._started[0] is not references:
            known = cache.starts.setdefault((self._counter.name, self._format), {})
            for reference in references:
                if reference not in known:
                    start = line_start(self._format, reference)
                    known[reference] = start, self._counter.count(start)
            starts = list(map(known.__getitem__, references))
            tokens = np.array([cost for _, cost in starts], np.int64)
            self._started = references, [start for start, _ in starts], tokens
        return self._started[1:]

    def _by_row(self, cache: LineCache, table: pa.Table, level: str, *, cut: bool = False) -> Lines | None:
        """Return the lines from the facts about their memories; ``None`` where a text is too long to count.

        Args:
            cache: Holds the facts.
            table: Rows of ``NODE`` or wider.
            level: Representation level.
            cut: Return what stands behind the reference.
        """
        facts, rows = cache.known.of(table)
        variant = self._variant(level, cut=cut)
        known = facts.lines.get(variant)
        if known is None:
            known = facts.lines[variant] = KnownLines(len(facts.target))
        missing = known.missing(rows)
        if len(missing):
            found = self._by_key(table.take(pa.array(missing)), level, None, cut=cut)
            if any(line.tokens == _NEVER for line in found):
                return None  # which texts are too long depends on the request's budget
            for row, line in zip(rows[missing].tolist(), found, strict=True):
                known.put(row, line)
        return known.at(rows)

    def _variant(self, level: str, *, cut: bool) -> str:
        return f"{self._format}\0{level}\0{self._counter.name}\0{'cut' if cut else ''}\0{self._owner}"

    def _by_key(
        self, table: pa.Table, level: str, references: Sequence[str] | None, *, cut: bool = False
    ) -> list[Line]:
        variant = self._variant(level, cut=cut)
        ids, versions = texts(table, "node_id"), times(table, "updated_at").tolist()
        keys: list[Any] = list(
            zip(ids, versions, repeat(variant), strict=False)
            if references is None
            else zip(ids, versions, repeat(variant), references, strict=False)
        )
        try:
            return list(map(self._cache.__getitem__, keys))
        except KeyError:
            return self._with_missing(table, keys, level, references, cut=cut)

    def _with_missing(
        self, table: pa.Table, keys: Sequence[Any], level: str, references: Sequence[str] | None, *, cut: bool
    ) -> list[Line]:
        lines: list[Any] = [self._cached(key) for key in keys]
        missing = [row for row, line in enumerate(lines) if line is None]
        records = read(table.take(pa.array(missing, pa.int64())))
        for row, record in zip(missing, records, strict=True):
            if level in TEXT_LEVELS and len(record.content) > self._longest_text:
                lines[row] = Line("", _NEVER, _NEVER, speaker=False, blank=not record.content.strip())
            else:
                reference = None if references is None else references[row]
                lines[row] = self._tail(record, level) if cut else self._line(record, level, reference)
                self._cache[keys[row]] = lines[row]
        return lines

    def _cached(self, key: Any) -> Line | None:
        try:
            return self._cache[key]
        except KeyError:
            return None

    def _tail(self, record: Record, level: str) -> Line:
        whole, speaker = record_line(record, context_format=self._format, level=level, reference="m")
        return self._counted(whole.removeprefix(line_start(self._format, "m")), record, speaker=speaker)

    def _line(self, record: Record, level: str, reference: str | None) -> Line:
        text, speaker = record_line(record, context_format=self._format, level=level, reference=reference)
        return self._counted(text, record, speaker=speaker)

    def _counted(self, text: str, record: Record, *, speaker: bool) -> Line:
        count = self._counter.count
        return Line(text, count(text + "\n"), count(text), speaker, not record.content.strip())
