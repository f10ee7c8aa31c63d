"""What a record's line costs: rendered and counted once a version, looked up afterwards.

Counting tokens is the most expensive thing stage 6 does (20 µs a line), so lines are kept in a cache
that the caller owns. An entry is found by owner, node id, ``updated_at``, format, level, encoding and
reference: everything a line depends on.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from itertools import repeat
from typing import Any, Protocol

import pyarrow as pa

from prme_ray.model.protocols import TokenCounter
from prme_ray.model.settings import PackingSettings
from prme_ray.model.tables import texts, times
from stages.line_cache import LineCache
from stages.lines import KnownLines, Line, Lines
from stages.render import record_line
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
        self.count = counter.count

    def lines(self, table: pa.Table, *, level: str, references: Sequence[str] | None) -> Lines:
        """Return every row's line at a level, in row order.

        Args:
            table: Rows of ``NODE`` or wider.
            level: One of :data:`~stages.render_record.LEVELS`.
            references: ``m1`` … of each row, where the format shows them.
        """
        variant = f"{self._format}\0{level}\0{self._counter.name}\0{self._owner}"
        if references is None and isinstance(self._cache, LineCache):
            return self._by_row(self._cache, table, variant, level)
        return Lines.of(self._by_key(table, variant, level, references))

    def _by_row(self, cache: LineCache, table: pa.Table, variant: str, level: str) -> Lines:
        facts, rows = cache.known.of(table)
        known = facts.lines.get(variant)
        if known is None:
            known = facts.lines[variant] = KnownLines(len(facts.target))
        missing = known.missing(rows)
        if len(missing):
            found = self._by_key(table.take(pa.array(missing)), variant, level, None)
            if any(line.tokens == _NEVER for line in found):
                # Which texts are too long depends on the request's budget.
                return Lines.of(self._by_key(table, variant, level, None))
            for row, line in zip(rows[missing].tolist(), found, strict=True):
                known.put(row, line)
        return known.at(rows)

    def _by_key(self, table: pa.Table, variant: str, level: str, references: Sequence[str] | None) -> list[Line]:
        ids, versions = texts(table, "node_id"), times(table, "updated_at").tolist()
        keys: list[Any] = list(
            zip(ids, versions, repeat(variant), strict=False)
            if references is None
            else zip(ids, versions, repeat(variant), references, strict=False)
        )
        try:
            return list(map(self._cache.__getitem__, keys))
        except KeyError:
            return self._with_missing(table, keys, level, references)

    def _with_missing(
        self, table: pa.Table, keys: Sequence[Any], level: str, references: Sequence[str] | None
    ) -> list[Line]:
        lines: list[Any] = [self._cached(key) for key in keys]
        missing = [row for row, line in enumerate(lines) if line is None]
        records = read(table.take(pa.array(missing, pa.int64())))
        for row, record in zip(missing, records, strict=True):
            if level in TEXT_LEVELS and len(record.content) > self._longest_text:
                lines[row] = Line("", _NEVER, _NEVER, speaker=False, blank=not record.content.strip())
            else:
                lines[row] = self._line(record, level, None if references is None else references[row])
                self._cache[keys[row]] = lines[row]
        return lines

    def _cached(self, key: Any) -> Line | None:
        try:
            return self._cache[key]
        except KeyError:
            return None

    def _line(self, record: Record, level: str, reference: str | None) -> Line:
        text, speaker = record_line(record, context_format=self._format, level=level, reference=reference)
        count = self._counter.count
        return Line(text, count(text + "\n"), count(text), speaker, not record.content.strip())
