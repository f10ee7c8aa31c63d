"""Exact cosine search over an owner's vectors (RFC-0005 §4.2, decision 4).

A score must not depend on the rows beside it, or the same memory would score differently in a
larger store, in another process or on a machine with more threads. BLAS matrix-vector products do
depend on them: edge rows take other kernels, and threads split the rows. ``numpy.einsum`` sums each
row by itself, in one loop whose order depends only on the dimension, on one thread, with the
instructions every machine of an architecture has. It costs two to three times the BLAS call:
0.05 ms for 600 rows of 384 numbers and 0.8 ms for 10,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prme_ray.model.errors import InvalidRequest
from storage.columns import Growing
from storage.ordering import ordered

__all__ = ["VectorStore", "Vectors"]


@dataclass(frozen=True, slots=True)
class Vectors:
    """An owner's vectors at one sequence number.

    Attributes:
        matrix: Unit vectors, shape (rows, dimension), ``float32``; zeros where a memory has none.
        present: Which rows have a vector, shape (rows,).
    """

    matrix: npt.NDArray[np.float32]
    present: npt.NDArray[np.bool_]

    def count(self) -> int:
        """Return how many rows have a vector."""
        return int(self.present.sum())

    def scores(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the cosine of every row with ``query``, each row summed on its own."""
        products: npt.NDArray[np.float32] = np.einsum("ij,j->i", self.matrix, query)
        return products

    def search(
        self, query: npt.NDArray[np.float32], *, k: int, allowed: npt.NDArray[np.bool_], ids: Sequence[str]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the ``k`` nearest allowed rows and their cosines, ordered by (distance, id).

        Vectors and query have length 1, so the dot product is the cosine; a row of zeros scores 0.
        Rounding may carry the product of two unit vectors past 1; the cosine is clipped to [-1, 1].
        All rows that share the k-th score compete for the last places by id.

        Args:
            query: Question, shape (dimension,), finite.
            k: Most rows to return; 0 or less returns none.
            allowed: Rows that may be returned, shape (rows,).
            ids: Id of every row.

        Raises:
            InvalidRequest: the question has another shape or is not finite.
        """
        point = np.ascontiguousarray(query, dtype=np.float32)
        if point.shape != self.matrix.shape[1:] or not np.isfinite(point).all():
            raise InvalidRequest(
                argument="vector", given=np.shape(query), allowed=f"{self.matrix.shape[1]} finite numbers"
            )
        rows = np.flatnonzero(self.present & allowed)
        if k <= 0 or not len(rows):
            return np.empty(0, np.int64), np.empty(0, np.float64)
        cosines = np.clip(self.scores(point)[rows], -1.0, 1.0).astype(np.float64)
        if len(rows) > k:
            last = np.partition(cosines, len(rows) - k)[len(rows) - k]
            near = cosines >= last
            rows, cosines = rows[near], cosines[near]
        order = ordered(rows, [-cosines], ids=ids, limit=k)
        return rows[order], cosines[order]


class VectorStore:
    """Vectors of an owner's memories in admission order.

    Args:
        dimension: Length of a vector.
    """

    def __init__(self, dimension: int) -> None:
        self._matrix = Growing(np.float32, width=dimension)
        self._present = Growing(np.bool_)

    @property
    def nbytes(self) -> int:
        """Bytes reserved."""
        return self._matrix.nbytes + self._present.nbytes

    def append(self, vectors: npt.NDArray[Any], *, present: npt.NDArray[np.bool_]) -> None:
        """Add one row a memory, shape (m, dimension); rows without ``present`` are zeros."""
        self._matrix.append(vectors)
        self._present.append(present)

    def freeze(self) -> Vectors:
        """Return the vectors so far; later rows never show in it."""
        return Vectors(self._matrix.freeze(), self._present.freeze())
