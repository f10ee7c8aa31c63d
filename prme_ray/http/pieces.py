"""Columns as pieces of JSON, and rows made of them.

A piece is a value and what stands behind it: a comma, or the brace that ends an object. A column has one a
row, or the one that all rows share, such as a key. A column's values are written as one JSON array; its pieces
are places in that text, and Arrow copies those of all columns into rows, so no piece is ever an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Pieces", "counts", "flags", "grouped", "ids", "joined", "listed", "numbers", "strings"]

Pieces: TypeAlias = bytes | list[bytes] | pa.Array
"""A piece for every row (a list, or an Arrow array of binaries), or the one of all rows."""

_COMMA = ord(",")
_NOTHING = pa.scalar(b"", pa.binary())


def numbers(values: npt.NDArray[Any], end: bytes = b",") -> Pieces:
    """Return each number as JSON; NaN, as Arrow's null floats come, as ``null``.

    Args:
        values: 64-bit numbers, at least one.
        end: One character to stand behind each.
    """
    # Many columns hold one value: what a channel did not say, what no setting changes. Bits are compared,
    # since 0.0 equals -0.0 and NaN nothing.
    bits = values.view(np.int64)
    if (bits == bits[0]).all():
        return orjson.dumps(values[0].item()) + end
    # orjson writes whole arrays, but only such as lie in memory one after the other.
    return _cut(orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY), end)


def counts(values: npt.NDArray[Any] | list[int], end: bytes = b",") -> Pieces:
    """Return each count as JSON; -1, which counts nothing, as ``null``."""
    return _cut(orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY).replace(b"-1", b"null"), end)


def ids(values: Sequence[str | None], end: bytes = b",") -> Pieces:
    """Return each id or ``null`` as JSON; ids are UUIDs, so no comma stands in one."""
    if values.count(None) == len(values):
        return b"null" + end
    return _cut(orjson.dumps(values), end)


def strings(values: Sequence[str | None], end: bytes = b",") -> Pieces:
    """Return each string or ``null`` as JSON; equal ones are encoded once."""
    known = {value: orjson.dumps(value) + end for value in set(values)}
    return [known[value] for value in values] if len(known) > 1 else next(iter(known.values()))


def flags(values: npt.NDArray[np.bool_], end: bytes = b",") -> Pieces:
    """Return each truth value as JSON."""
    told = [b"false" + end, b"true" + end]
    if values.all() or not values.any():
        return told[int(values[0])]
    return pa.array(told, pa.binary()).take(pa.array(values.astype(np.int8)))


def joined(*columns: Pieces, rows: int) -> pa.Array:
    """Return the rows, each the columns' pieces one after the other.

    Args:
        columns: The columns.
        rows: How many rows there are, at least one.
    """
    merged: list[Pieces] = []
    for column in columns:
        if merged and isinstance(column, bytes) and isinstance(merged[-1], bytes):
            merged[-1] += column
        else:
            merged.append(column)
    if len(merged) == 1 and isinstance(merged[0], bytes):
        return pa.array(merged * rows, pa.binary())
    pieces = [
        pa.scalar(column, pa.binary())
        if isinstance(column, bytes)
        else pa.array(column, pa.binary(), size=rows)
        if isinstance(column, list)
        else column
        for column in merged
    ]
    return pc.binary_join_element_wise(*pieces, _NOTHING)


def listed(rows: pa.Array) -> list[bytes | memoryview]:
    """Return rows that each end in a comma as parts of a JSON array; they are not copied."""
    edges, text = _spans(rows)
    return [b"[", text[: int(edges[-1]) - 1], b"]"]


def grouped(items: pa.Array, lengths: npt.NDArray[Any]) -> list[Pieces]:
    """Return items that each end in a comma as JSON arrays, one a row.

    Args:
        items: The rows' items, one row's after the other's.
        lengths: How many are each row's, shape (rows,).
    """
    edges, text = _spans(items)
    ends = edges[np.concatenate([[0], np.cumsum(lengths)])]
    # A row's items are one piece already, but for the last one's comma.
    closed = np.frombuffer(text, np.uint8).copy()
    closed[ends[1:][lengths > 0] - 1] = ord("]")
    opening = pa.array([b"[]", b"["], pa.binary()).take(pa.array((lengths > 0).astype(np.int8)))
    return [opening, _binaries(ends, closed)]


def _cut(encoded: bytes, end: bytes) -> pa.Array:
    """Return the elements of a JSON array whose commas all stand between elements.

    Args:
        encoded: The array as JSON, not empty.
        end: One character to stand behind each.
    """
    text = np.frombuffer(encoded, np.uint8)[1:].copy()  # without the bracket before; the one behind is an end too
    text[-1] = _COMMA
    (commas,) = np.nonzero(text == _COMMA)
    text[commas] = ord(end)
    edges = np.zeros(len(commas) + 1, np.int32)
    edges[1:] = commas + 1
    return _binaries(edges, text)


def _spans(rows: pa.Array) -> tuple[npt.NDArray[np.int32], memoryview]:
    """Return where the rows of an unsliced array stand in their text, shape (rows + 1,), and the text."""
    _, edges, text = rows.buffers()
    return np.frombuffer(edges, np.int32, len(rows) + 1), memoryview(text)


def _binaries(edges: npt.NDArray[np.int32], text: npt.NDArray[np.uint8]) -> pa.Array:
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.binary(), len(edges) - 1, buffers)
