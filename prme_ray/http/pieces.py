"""Columns as pieces of JSON, and rows made of them.

A piece is one value's JSON and the character behind it: a comma, or the brace that ends its object. A column has
one for every row, or one that all rows share. What orjson writes of a whole table of numbers *is* its columns
once it is known where the numbers end; Arrow then joins columns into rows, without a Python object for any value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Pieces", "choices", "counts", "ids", "interleave", "letters", "numbers", "raw", "strings", "together"]

Pieces: TypeAlias = Any
"""The piece that all rows share (``bytes``), or one for every row (Arrow ``binary``)."""

_BINARY = pa.binary()
_NOTHING = pa.scalar(b"", _BINARY)
_COMMA, _BRACE = b",}"
_END = (b",", b"}")


def numbers(columns: Mapping[str, npt.NDArray[np.float64]], *, closing: Collection[str] = ()) -> dict[str, Pieces]:
    """Return numbers as JSON; NaN, as Arrow's null floats come, as ``null``.

    Args:
        columns: Name -> numbers, at least one; of a broadcast array the first counts for all rows.
        closing: Columns that end an object.
    """
    found: dict[str, Pieces] = {}

    def share(name: str, value: Any) -> None:
        found[name] = orjson.dumps(value) + _END[name in closing]

    apart: list[str] = []
    for name, values in columns.items():
        if values.strides[0]:
            apart.append(name)
        else:
            share(name, values[0].item())
    if not apart:
        return found
    table = np.stack([columns[name] for name in apart])
    # Many columns hold one value: what a channel did not say, what no setting changes. Bits are compared,
    # since 0.0 equals -0.0 and NaN nothing.
    bits = table.view(np.int64)
    shared = (bits == bits[:, :1]).all(axis=1)
    for place in np.flatnonzero(shared).tolist():
        share(apart[place], table[place, 0].item())
    if shared.all():
        return found
    names = [apart[place] for place in np.flatnonzero(~shared).tolist()]
    text = orjson.dumps(table[~shared], option=orjson.OPT_SERIALIZE_NUMPY)
    ends = [name in closing for name in names]
    found.update(zip(names, _columns(text, ends, table.shape[1]), strict=True))
    return found


def counts(values: npt.NDArray[Any], zero: bytes = b"0,") -> Pieces:
    """Return integers from 0 on, none larger than there are memories, as JSON; 0 as ``zero``."""
    return choices(_counted(int(values.max()).bit_length(), zero), values)


@lru_cache(64)
def _counted(bits: int, zero: bytes) -> pa.Array:
    return raw([zero, *(b"%d," % value for value in range(1, 1 << bits))])


def letters(ids: pa.Array) -> Pieces:
    """Return ids without their quotation marks, which stand in the pieces around them: nothing in a UUID is escaped."""
    return ids.cast(_BINARY)


def ids(values: Sequence[str | None]) -> Pieces:
    """Return each id or ``null`` as JSON; no comma or bracket stands in a UUID."""
    return _columns(orjson.dumps([values]), [False], len(values))[0]


def strings(values: pa.Array, end: bytes = b",") -> Pieces:
    """Return each string or ``null`` as JSON; equal ones are encoded once."""
    found = values.dictionary_encode("encode")
    known = raw([orjson.dumps(value) + end for value in found.dictionary.to_pylist()])
    return choices(known, found.indices.to_numpy()) if len(known) > 1 else known[0].as_py()


def choices(among: pa.Array, codes: npt.NDArray[Any]) -> Pieces:
    """Return the piece that each code names, among some that were made before."""
    return among.take(pa.array(codes))


def raw(pieces: Sequence[bytes]) -> pa.Array:
    """Return pieces that are made already."""
    return pa.array(pieces, _BINARY)


def interleave(*columns: Pieces) -> pa.Array:
    """Return for every row the columns' pieces one after the other; some column has a piece for every row."""
    merged: list[Pieces] = []
    for column in columns:
        if merged and isinstance(column, bytes) and isinstance(merged[-1], bytes):
            merged[-1] += column
        else:
            merged.append(column)
    given = [_scalar(column) if isinstance(column, bytes) else column for column in merged]
    return pc.binary_join_element_wise(*given, _NOTHING)


def together(rows: pa.Array) -> memoryview:
    """Return the bytes of all rows one behind the other, less the last: the comma behind the last row."""
    _, offsets, data = rows.buffers()
    end = int(np.frombuffer(offsets, np.int32)[rows.offset + len(rows)])
    return memoryview(data)[: end - 1]


@lru_cache(1024)
def _scalar(piece: bytes) -> pa.Scalar:
    return pa.scalar(piece, _BINARY)


def _columns(text: bytes, closing: Sequence[bool], rows: int) -> list[pa.Array]:
    """Return the columns of a JSON array of arrays of ``rows`` values; those that close an object end in a brace."""
    letters = np.frombuffer(text, np.uint8).copy()
    # Behind a value stands a comma; behind the last of an array its bracket, and behind that the comma.
    commas = np.flatnonzero(letters == _COMMA)
    ends = np.append(commas, len(letters) - 1).reshape(len(closing), rows)
    ends[:, -1] -= 1
    letters[ends[:, -1]] = _COMMA
    letters[ends[np.array(closing)]] = _BRACE
    offsets = np.empty((len(closing), rows + 1), np.int32)
    offsets[0, 0] = len("[[")
    offsets[1:, 0] = ends[:-1, -1] + len("],[")
    offsets[:, 1:] = ends + 1
    data = pa.py_buffer(letters)
    return [pa.Array.from_buffers(_BINARY, rows, [None, pa.py_buffer(one), data]) for one in offsets]
