"""Columns as pieces of JSON, and rows made of them.

A piece is a key and its value, ``,"score":0.5``. A column has one a row, or the one that all rows share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

__all__ = ["Pieces", "counts", "flags", "ids", "interleave", "numbers", "strings"]

Pieces = bytes | list[bytes]
"""A piece for every row, or the one of all rows."""

_END = b"\n"  # never inside numbers, and shorter than a key


def numbers(key: bytes, values: npt.NDArray[Any]) -> Pieces:
    """Return each number as JSON after ``key``; NaN, as Arrow's null floats come, as ``null``.

    Args:
        key: What stands before each number.
        values: 64-bit numbers, at least one.
    """
    # Many columns hold one value: what a channel did not say, what no setting changes. Bits are compared,
    # since 0.0 equals -0.0 and NaN nothing.
    bits = values.view(np.int64)
    if (bits == bits[0]).all():
        return key + orjson.dumps(values[0].item())
    # orjson writes whole arrays, but only such as lie in memory one after the other.
    return _keyed(key, orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY))


def counts(key: bytes, values: npt.NDArray[Any] | list[int]) -> Pieces:
    """Return each count as JSON after ``key``; -1, which counts nothing, as ``null``."""
    encoded = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)
    return _keyed(key, encoded.replace(b"-1", b"null"))


def ids(key: bytes, values: list[str | None]) -> Pieces:
    """Return each id or ``null`` as JSON after ``key``; ids are UUIDs, so no comma stands in one."""
    return _keyed(key, orjson.dumps(values))


def strings(key: bytes, values: Sequence[str | None]) -> Pieces:
    """Return each string or ``null`` as JSON after ``key``; equal ones are encoded once."""
    known = {value: key + orjson.dumps(value) for value in set(values)}
    return [known[value] for value in values] if len(known) > 1 else next(iter(known.values()))


def flags(key: bytes, values: list[bool]) -> Pieces:
    """Return each truth value as JSON after ``key``."""
    if all(values) or not any(values):
        return key + orjson.dumps(values[0])
    told = (key + b"false", key + b"true")
    return [told[value] for value in values]


def interleave(*columns: Pieces, rows: int) -> bytes:
    """Return a JSON array of ``rows`` rows, at least one; each is the columns' pieces one after the other."""
    merged: list[Pieces] = []
    for column in columns:
        if merged and isinstance(column, bytes) and isinstance(merged[-1], bytes):
            merged[-1] += column
        else:
            merged.append(column)
    width = len(merged) + 1
    pieces: list[bytes] = [b","] * (rows * width)
    for position, column in enumerate(merged):
        pieces[position::width] = [column] * rows if isinstance(column, bytes) else column
    pieces[-1] = b"]"
    return b"[" + b"".join(pieces)


def _keyed(key: bytes, encoded: bytes) -> list[bytes]:
    return (key + encoded[1:-1].replace(b",", _END + key)).split(_END)
