"""The constant parts of candidates' JSON, kept for memories that are answered again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.http.memory_json import memory_pieces
from prme_ray.model.references import parts, same_target
from prme_ray.model.tables import column

__all__ = ["MemoryPieces"]

T = TypeVar("T", bound=np.generic)
_BINARY = pa.binary()
_UNKNOWN = -1
_FIRST_BYTES, _FIRST_PIECES = 1 << 14, 1 << 6


class MemoryPieces:
    """Keeps the parts of every owner's memories until the owner writes. Safe for threads.

    Args:
        limit: Most bytes kept, of several owners; what was used longest ago goes first.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def kept_bytes(self) -> int:
        """Bytes of kept parts."""
        return self._size

    def of(self, table: pa.Table) -> pa.Array:
        """Return what stands before each candidate's score.

        Args:
            table: A table that refers to memories, at least one.
        """
        rows, target = parts(column(table, "node"))
        with self._lock:
            known = self._of(target)
            before = known.size
            pieces = known.pieces(rows)
            self._size += known.size - before
            while self._size > self._limit:
                _, oldest = self._known.popitem(last=False)
                self._size -= oldest.size
        return pieces

    def _of(self, target: pa.StructArray) -> _Known:
        # Requests of one owner refer to one array until the owner writes; holding it keeps its address its own.
        buffer = target.field(0).buffers()[-1]
        address = 0 if buffer is None else int(buffer.address)
        found = self._known.get(address)
        if found is None or not same_target(found.target, target):
            self._size -= 0 if found is None else found.size
            found = self._known[address] = _Known(target)
        self._known.move_to_end(address)
        return found


class _Known:
    """The pieces of one array of memories, in the order in which they were first wanted.

    They stand in one buffer that doubles, so that adding some copies only those. What was given out is a view
    of a buffer that is never written to again, but behind its end.
    """

    def __init__(self, target: pa.StructArray) -> None:
        self.target = target
        self._place = np.full(len(target), _UNKNOWN, np.int32)
        self._count = 0
        self._letters = np.empty(_FIRST_BYTES, np.uint8)
        self._ends = np.zeros(_FIRST_PIECES, np.int32)

    @property
    def size(self) -> int:
        """Bytes of the pieces."""
        return int(self._ends[self._count])

    def pieces(self, rows: npt.NDArray[np.int32]) -> pa.Array:
        """Return the pieces of some rows."""
        places = self._place[rows]
        missing = np.unique(rows[places == _UNKNOWN])
        if len(missing):
            self._add(missing)
            places = self._place[rows]
        buffers = [None, pa.py_buffer(self._ends), pa.py_buffer(self._letters)]
        return pa.Array.from_buffers(_BINARY, self._count, buffers).take(pa.array(places))

    def _add(self, rows: npt.NDArray[np.int32]) -> None:
        made = list(memory_pieces(self.target.take(pa.array(rows))))
        start, count = self.size, self._count
        ends = start + np.cumsum([len(piece) for piece in made])
        self._letters = _grown(self._letters, used=start, need=int(ends[-1]))
        self._ends = _grown(self._ends, used=count + 1, need=count + 1 + len(made))
        self._letters[start : ends[-1]] = np.frombuffer(b"".join(made), np.uint8)
        self._ends[count + 1 : count + 1 + len(made)] = ends
        self._place[rows] = np.arange(count, count + len(rows))
        self._count += len(rows)


def _grown(values: npt.NDArray[T], *, used: int, need: int) -> npt.NDArray[T]:
    if need <= len(values):
        return values
    found = np.empty(max(need, 2 * len(values)), values.dtype)
    found[:used] = values[:used]
    return found
