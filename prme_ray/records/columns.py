"""Columns of numbers in few bytes, exactly as they were.

A column in which all values are equal keeps one, if any. Any other is written byte by byte position: first all
lowest bytes, then all second ones. Scores of one pool share their high bytes, so a compressor then finds
long runs. A column that mostly repeats another (a score that nothing adjusted repeats its base score)
is written as the exclusive or of both, which is mostly zero.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from prme_ray.model.errors import StoreCorrupt

__all__ = ["pack_columns", "unpack_columns"]

Column = npt.NDArray[Any]
Spec = list[Any]
"""Name, dtype, number of values, and how they are written: ``=``, ``|`` or the name of the column beneath."""

_EQUAL, _PLAIN = "=", "|"
_BITS: dict[int, np.dtype[Any]] = {1: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8")}


def pack_columns(columns: Mapping[str, Column], *, beside: Mapping[str, str]) -> tuple[list[Spec], bytes]:
    """Return how columns are written, and their bytes.

    Args:
        columns: One-dimensional arrays of little-endian numbers by name.
        beside: Name of a column -> name of another, of the same type and length, that it mostly repeats and
            that is not itself written beside a third.
    """
    specs: list[Spec] = []
    written: list[bytes] = []
    for names in _alike(columns, last=beside):
        # All columns of one shape at once: forty small arrays one by one cost more than their bytes.
        block = np.stack([_bits(columns[name]) for name in names])
        count = block.shape[1]
        equal = (block == block[:, :1]).all(axis=1)
        same = [name for name, is_equal in zip(names, equal.tolist(), strict=True) if is_equal]
        others = [name for name in names if name not in same]
        under = {name: beside[name] for name in others if beside.get(name) in names}
        rest = block[~equal]
        for row, name in enumerate(others):
            if name in under:
                rest[row] ^= _bits(columns[under[name]])
        specs += [[name, columns[name].dtype.str, count, _EQUAL] for name in same]
        specs += [[name, columns[name].dtype.str, count, under.get(name, _PLAIN)] for name in others]
        written.append(block[equal, :1].tobytes())
        if others:
            written.append(rest.view(np.uint8).reshape(len(others), count, -1).transpose(0, 2, 1).tobytes())
    return specs, b"".join(written)


def _alike(columns: Mapping[str, Column], *, last: Collection[str]) -> list[list[str]]:
    """Return the names grouped by width and length, those in ``last`` behind the others of their group."""
    groups: dict[tuple[int, int], list[str]] = {}
    for name in sorted(columns, key=last.__contains__):
        groups.setdefault((columns[name].dtype.itemsize, len(columns[name])), []).append(name)
    return list(groups.values())


def unpack_columns(specs: list[Spec], data: bytes) -> dict[str, Column]:
    """Return the columns that :func:`pack_columns` wrote.

    Raises:
        StoreCorrupt: there are more or fewer bytes than they take.
    """
    found: dict[str, Column] = {}
    at = 0
    for name, dtype, count, how in specs:
        bits = _BITS[np.dtype(dtype).itemsize]
        size = min(count, 1) if how == _EQUAL else count
        part = data[at : at + size * bits.itemsize]
        at += len(part)
        if len(part) < size * bits.itemsize:
            break
        if how == _EQUAL:
            values = np.repeat(np.frombuffer(part, bits), count)
        else:
            planes = np.frombuffer(part, np.uint8).reshape(bits.itemsize, count)
            values = np.frombuffer(planes.T.tobytes(), bits)
            if how != _PLAIN:
                values = values ^ _bits(found[how])
        found[name] = values.view(np.dtype(dtype))
    if at != len(data) or len(found) < len(specs):
        raise StoreCorrupt(path="a retrieval record", detail=f"its columns do not fill its {len(data)} bytes")
    return found


def _bits(values: Column) -> Column:
    return np.ascontiguousarray(values).view(_BITS[values.dtype.itemsize])
