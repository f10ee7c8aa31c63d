"""Leaves out a record whose text stands in another record of the same source (digest b §1.9)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from prme_ray.model.tables import texts
from stages.render_reader import tags, validity
from stages.render_record import Record, read

__all__ = ["Folding"]


class _Claim(NamedTuple):
    """What a reader line says."""

    text: str
    tags: tuple[str, ...]
    event_time: int | None
    validity: tuple[int, int] | None
    speaker: str | None


class Folding:
    """Knows which packed records say what another record says.

    Only rows that share a source event with another row are read: all others can neither fold nor be
    folded into.
    """

    def __init__(self, table: pa.Table) -> None:
        """Group the rows of a table by the source events they share."""
        evidence = texts(table, "evidence")
        self._sources: dict[int, list[str]] = {}
        self._claims: dict[int, _Claim] = {}
        self._packed: defaultdict[str, list[int]] = defaultdict(list)
        given = list(filter(None, evidence))
        shared = {source for source, count in Counter(",".join(given).split(",")).items() if count > 1}
        if not shared:
            return
        for row, own in enumerate(evidence):
            kept = [source for source in own.split(",") if source in shared]
            if kept:
                self._sources[row] = kept
        rows = list(self._sources)
        records = read(table.take(pa.array(rows, pa.int64())))
        self._claims = {row: _claim(record) for row, record in zip(rows, records, strict=True)}

    def __bool__(self) -> bool:
        """Whether any two rows share a source at all."""
        return bool(self._sources)

    def covered(self, row: int) -> bool:
        """Return whether a packed record of one of this row's sources already says this row."""
        return row in self._sources and any(self._folds(row, other) for other in self._neighbours(row))

    def add(self, row: int) -> list[int]:
        """Record that a row was packed; return earlier packed rows that it covers."""
        if row not in self._sources:
            return []
        covered = list(dict.fromkeys(other for other in self._neighbours(row) if self._folds(other, row)))
        for source in self._sources[row]:
            self._packed[source].append(row)
        return covered

    def remove(self, row: int) -> None:
        """Record that a packed row was taken out again."""
        for source in self._sources[row]:
            self._packed[source].remove(row)

    def _neighbours(self, row: int) -> Iterator[int]:
        return (other for source in self._sources[row] for other in self._packed[source])

    def _folds(self, row: int, into: int) -> bool:
        one, other = self._claims[row], self._claims[into]
        text = one.text.strip()
        return (
            bool(text)
            and text in other.text
            and one.tags == other.tags
            and one.event_time in (None, other.event_time)
            and one.validity in (None, other.validity)
            and one.speaker in (None, other.speaker)
        )


def _claim(record: Record) -> _Claim:
    return _Claim(record.content, tags(record), record.event_time, validity(record), record.speaker)
