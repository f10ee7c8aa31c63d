"""What is known of the memories a reference column points to, kept while they stay the same.

The memories of an owner change seldom and are asked about often. References of different requests
then point to one and the same array, so what was worked out for a row of it (its id as a Python
string, the place of its id in order, its line) can be looked up by row number, without hashing.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.tables import column, id_ranks, ids_of, parts, place_of
from stages.lines import KnownLines

__all__ = ["KnownRows", "RowFacts", "packed_ids"]


def packed_ids(ids: list[str]) -> bytes:
    """Return UUIDs as 16 bytes each."""
    return bytes.fromhex("".join(ids).replace("-", ""))


class RowFacts:
    """Facts about the rows of one array of memories.

    Attributes:
        target: The memories; held so that their address stays theirs.
        lines: Variant of a line -> the lines rendered so far.
    """

    def __init__(self, target: pa.StructArray) -> None:
        self.target = target
        self.lines: dict[str, KnownLines] = {}
        self._packed_ids: npt.NDArray[np.void] | None = None
        self._content_marks: npt.NDArray[np.void] | None = None
        self._sources_shared: bool | None = None

    @property
    def sources_shared(self) -> bool:
        """Whether any two rows may share a source event."""
        if self._sources_shared is None:
            sources = [source for source in self.target.field("evidence").to_pylist() if source]
            self._sources_shared = len(set(sources)) < len(sources) or any("," in source for source in sources)
        return self._sources_shared

    @property
    def ids(self) -> list[str]:
        """Id of each row."""
        return ids_of(self.target)

    @property
    def packed_ids(self) -> npt.NDArray[np.void]:
        """Id of each row as 16 bytes."""
        if self._packed_ids is None:
            self._packed_ids = np.frombuffer(packed_ids(self.ids), np.dtype("V16"))
        return self._packed_ids

    @property
    def content_marks(self) -> npt.NDArray[np.void]:
        """Id of each row as 16 bytes and the SHA-256 of its content as 32."""
        if self._content_marks is None:
            contents = self.target.field("content").to_pylist()
            hashes = [hashlib.sha256(text.encode()).digest() for text in contents]
            marks = b"".join(map(bytes.__add__, (item.tobytes() for item in self.packed_ids), hashes))
            self._content_marks = np.frombuffer(marks, np.dtype("V48"))
        return self._content_marks

    @property
    def ranks(self) -> npt.NDArray[np.int64]:
        """Place of each row's id among all different ids in ascending order, from 1."""
        return id_ranks(self.target)


class KnownRows:
    """Facts by array of memories; the least recently used are dropped. Safe to share between threads.

    Args:
        entries: Most arrays kept: one an owner and snapshot.
    """

    def __init__(self, entries: int = 32) -> None:
        self._entries = entries
        self._facts: OrderedDict[tuple[int | None, ...], RowFacts] = OrderedDict()

    def of(self, table: pa.Table) -> tuple[RowFacts, npt.NDArray[np.int32]]:
        """Return the facts about the memories a table's ``node`` column points to, and its rows there."""
        rows, target = parts(column(table, "node"))
        # What is kept is held, so nothing else can come to stand at its place.
        key = place_of(target)
        facts = self._facts.get(key)
        if facts is None:
            facts = self._facts[key] = RowFacts(target)
            while len(self._facts) > self._entries:
                self._facts.popitem(last=False)
        else:
            # A race with another thread's removal only costs working the facts out again.
            self._facts[key] = facts
            self._facts.move_to_end(key)
        return facts, rows
