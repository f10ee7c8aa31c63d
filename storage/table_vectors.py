"""Exact cosine search for an owner whose vectors do not fit the memory budget.

LanceDB searches what the node table held when the owner was loaded; what came since is searched in
memory. Scores, order and cut are byte for byte those of :class:`~storage.vectors.Vectors`, because
the table's answer is scored again by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prme_ray.model.tables import floats, texts
from storage.ordering import ordered
from storage.tables import NodeTable
from storage.vectors import Vectors, VectorStore

__all__ = ["TableVectorStore", "TableVectors"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TableVectors:
    """An owner's vectors at one sequence number, most of them on disk.

    Attributes:
        table: The shard's node table.
        owner_no: The owner.
        upto: Sequence number up to which the table is searched.
        tail: Vectors of the rows after those.
        first: Row of the first vector of ``tail``.
        rows_of: Returns the row of each id.
    """

    table: NodeTable
    owner_no: int
    upto: int
    tail: Vectors
    first: int
    rows_of: Callable[[Sequence[str]], Rows]

    def search(
        self, query: npt.NDArray[np.float32], *, k: int, allowed: npt.NDArray[np.bool_], ids: Sequence[str]
    ) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Return the ``k`` nearest allowed rows and their cosines; see ``Vectors.search``."""
        later = _Shifted(ids, self.first)
        near, cosines = self.tail.search(query, k=k, allowed=allowed[self.first :], ids=later)
        rows = near + self.first
        if k > 0 and self.first:
            old, old_cosines = self._search_table(query, k, allowed)
            rows, cosines = np.concatenate([old, rows]), np.concatenate([old_cosines, cosines])
        order = ordered(rows, [-cosines], ids=ids, limit=k)
        return rows[order], cosines[order]

    def count(self) -> int:
        """Return how many rows have a vector, here and in the table."""
        return self.tail.count() + self.table.count_with_vector(upto=self.upto, owner_no=self.owner_no)

    def _search_table(
        self, query: npt.NDArray[np.float32], k: int, allowed: npt.NDArray[np.bool_]
    ) -> tuple[Rows, npt.NDArray[np.float64]]:
        wanted = k
        while True:
            found = self.table.search(query, owner_no=self.owner_no, k=wanted, upto=self.upto)
            rows, cosines = self.rows_of(texts(found, "node_id")), floats(found, "signal")
            visible = allowed[rows]
            if int(visible.sum()) >= k or found.num_rows < wanted:
                return rows[visible][:k], cosines[visible][:k]
            wanted *= 2  # the nearest are hidden from this request: look further


class _Shifted(Sequence[str]):
    """``ids`` from a position on, without copying a million of them."""

    def __init__(self, ids: Sequence[str], first: int) -> None:
        self._ids = ids
        self._first = first

    def __len__(self) -> int:
        return len(self._ids) - self._first

    def __getitem__(self, row: Any) -> Any:
        return self._ids[self._first + row]


class TableVectorStore:
    """The growing side of :class:`TableVectors`; the same verbs as ``VectorStore``.

    Args:
        table: The shard's node table.
        owner_no: The owner.
        upto: Sequence number up to which the table holds the owner's vectors.
        dimension: Length of a vector.
        rows_of: Returns the row of each id.
    """

    def __init__(
        self, table: NodeTable, *, owner_no: int, upto: int, dimension: int, rows_of: Callable[[Sequence[str]], Rows]
    ) -> None:
        self._table = table
        self._owner_no = owner_no
        self._upto = upto
        self._rows_of = rows_of
        self._tail = VectorStore(dimension)
        self._first = 0

    @property
    def nbytes(self) -> int:
        """Bytes reserved in memory."""
        return self._tail.nbytes

    def skip(self, rows: int) -> None:
        """Count rows whose vectors stay in the table."""
        self._first += rows

    def append(self, vectors: npt.NDArray[Any], *, present: npt.NDArray[np.bool_]) -> None:
        """Add one row a memory; see ``VectorStore.append``."""
        self._tail.append(vectors, present=present)

    def freeze(self) -> TableVectors:
        """Return the vectors so far; later rows never show in it."""
        return TableVectors(self._table, self._owner_no, self._upto, self._tail.freeze(), self._first, self._rows_of)
