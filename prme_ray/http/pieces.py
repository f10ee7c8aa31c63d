"""Columns as pieces of JSON, and rows made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

__all__ = ["BOOLEANS", "interleave", "numbers", "strings"]

BOOLEANS = (b"false", b"true")


def numbers(values: npt.NDArray[Any] | list[int | None]) -> list[bytes]:
    """Return each number as JSON; NaN, as which Arrow's null floats come, and ``None`` as ``null``."""
    if not len(values):
        return []
    if isinstance(values, np.ndarray):
        # orjson writes whole arrays, but only such as lie in memory one after the other.
        encoded = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)
    else:
        encoded = orjson.dumps(values)
    return encoded[1:-1].split(b",")


def strings(values: Sequence[str | None]) -> list[bytes]:
    """Return each string as JSON; equal ones are encoded once."""
    known: dict[str | None, bytes] = {value: orjson.dumps(value) for value in set(values)}
    return [known[value] for value in values]


def interleave(*columns: bytes | list[bytes]) -> bytes:
    """Return a JSON array of rows; each is the columns' pieces one after the other.

    Args:
        columns: Pieces of each row, all of one length above 0, or what stands in every row.
    """
    rows = next(len(column) for column in columns if isinstance(column, list))
    width = len(columns) + 1
    pieces: list[bytes] = [b","] * (rows * width)
    for position, column in enumerate(columns):
        pieces[position::width] = [column] * rows if isinstance(column, bytes) else column
    pieces[-1] = b"]"
    return b"[" + b"".join(pieces)
