"""Arrays that only grow, so that readers keep their slices while a writer appends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Columns", "Growing"]

_FIRST_CAPACITY = 64


class Growing:
    """A one- or two-dimensional array that grows at its end.

    Rows already handed out by :meth:`freeze` never change: appending writes behind them, and a full
    buffer is replaced by a larger one while old slices keep the old buffer.

    Args:
        dtype: Element type.
        width: Length of a row of a two-dimensional array; ``None`` for one dimension.
    """

    def __init__(self, dtype: Any, *, width: int | None = None) -> None:
        self._width: tuple[int, ...] = () if width is None else (width,)
        self._buffer = np.zeros((0, *self._width), dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes reserved."""
        return int(self._buffer.nbytes)

    def append(self, values: npt.ArrayLike) -> None:
        """Add rows, shape (m,) or (m, width)."""
        rows = np.asarray(values, dtype=self._buffer.dtype)
        end = self._length + len(rows)
        if end > len(self._buffer):
            larger = np.zeros((max(end, 2 * len(self._buffer), _FIRST_CAPACITY), *self._width), self._buffer.dtype)
            larger[: self._length] = self._buffer[: self._length]
            self._buffer = larger
        self._buffer[self._length : end] = rows
        self._length = end

    def freeze(self) -> npt.NDArray[Any]:
        """Return the rows so far as a read-only slice."""
        rows = self._buffer[: self._length]
        rows.flags.writeable = False
        return rows


class Columns:
    """Named :class:`Growing` arrays of equal length.

    Args:
        dtypes: Element type by column name.
    """

    def __init__(self, dtypes: Mapping[str, Any]) -> None:
        self._arrays = {name: Growing(dtype) for name, dtype in dtypes.items()}

    def __len__(self) -> int:
        return len(next(iter(self._arrays.values())))

    @property
    def nbytes(self) -> int:
        """Bytes reserved."""
        return sum(array.nbytes for array in self._arrays.values())

    def append(self, **values: npt.ArrayLike) -> None:
        """Add rows; every column is named."""
        for name, array in self._arrays.items():
            array.append(values[name])

    def freeze(self) -> dict[str, npt.NDArray[Any]]:
        """Return the rows so far, column by column, read-only."""
        return {name: array.freeze() for name, array in self._arrays.items()}
