"""Columns as pieces of JSON, and rows made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

__all__ = ["flags", "interleave", "numbers", "strings"]

_BOOLEANS = (b"false", b"true")


def numbers(values: npt.NDArray[Any] | list[int | None]) -> bytes | list[bytes]:
    """Return each number as JSON, or the one that all are; NaN, as Arrow's null floats come, as ``null``.

    Args:
        values: At least one; an array of 64-bit numbers, or integers and ``None``.
    """
    if not isinstance(values, np.ndarray):
        return orjson.dumps(values)[1:-1].split(b",")
    # Many columns hold one value: what a channel did not say, what no setting changes. Bits are compared,
    # since 0.0 equals -0.0 and NaN nothing.
    bits = values.view(np.int64)
    if (bits == bits[0]).all():
        return orjson.dumps(values[0].item())
    # orjson writes whole arrays, but only such as lie in memory one after the other.
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")


def strings(values: Sequence[str | None]) -> bytes | list[bytes]:
    """Return each string as JSON, or the one that all are; equal ones are encoded once."""
    known: dict[str | None, bytes] = {value: orjson.dumps(value) for value in set(values)}
    return [known[value] for value in values] if len(known) > 1 else next(iter(known.values()))


def flags(values: npt.NDArray[np.bool_] | list[bool]) -> bytes | list[bytes]:
    """Return each truth value as JSON, or the one that all are."""
    found = values if isinstance(values, list) else values.tolist()
    if all(found) or not any(found):
        return _BOOLEANS[found[0]]
    return [_BOOLEANS[value] for value in found]


def interleave(*columns: bytes | list[bytes], rows: int) -> bytes:
    """Return a JSON array of ``rows`` rows, at least one; each is the columns' pieces one after the other.

    Args:
        columns: A piece for each row, or what stands in every row.
        rows: How many.
    """
    merged: list[bytes | list[bytes]] = []
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
