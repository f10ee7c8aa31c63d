"""Columns of numbers one behind the other, exactly as they were; what compresses them comes later.

A column that mostly repeats another (a score that nothing adjusted repeats its base score) is written as
the exclusive or of both, which is mostly zero and takes next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from prme_ray.model.errors import StoreCorrupt

__all__ = ["pack_columns", "unpack_columns"]

Column = npt.NDArray[Any]
Spec = list[Any]
"""Name, dtype, number of values, and the name of the column beneath, or none."""

_BITS: dict[int, np.dtype[Any]] = {1: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8")}


def pack_columns(columns: Mapping[str, Column], *, beside: Mapping[str, str]) -> tuple[list[Spec], bytes]:
    """Return how columns are written, and their bytes.

    Args:
        columns: One-dimensional arrays of little-endian numbers by name.
        beside: Name of a column -> name of an earlier one, of the same type and length, that it mostly repeats.
    """
    specs: list[Spec] = []
    written: list[bytes] = []
    for name, values in columns.items():
        under = beside.get(name)
        if under not in columns:
            under = None
        specs.append([name, values.dtype.str, len(values), under])
        written.append((values if under is None else _bits(values) ^ _bits(columns[under])).tobytes())
    return specs, b"".join(written)


def unpack_columns(specs: list[Spec], data: bytes) -> dict[str, Column]:
    """Return the columns that :func:`pack_columns` wrote.

    Raises:
        StoreCorrupt: there are more or fewer bytes than they take.
    """
    found: dict[str, Column] = {}
    at = 0
    for name, dtype, count, under in specs:
        kind = np.dtype(dtype)
        end = at + count * kind.itemsize
        if end > len(data):
            break
        values = np.frombuffer(data, kind, count, at)
        found[name] = values if under is None else (_bits(values) ^ _bits(found[under])).view(kind)
        at = end
    if at != len(data) or len(found) < len(specs):
        raise StoreCorrupt(path="a retrieval record", detail=f"its columns do not fill its {len(data)} bytes")
    return found


def _bits(values: Column) -> Column:
    return np.ascontiguousarray(values).view(_BITS[values.dtype.itemsize])
