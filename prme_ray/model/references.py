"""References: Arrow dictionary arrays whose dictionary is an array of memories, lineages or ids.

Taking a reference apart and putting it together again costs more than the sorting between, so both
sides are kept with it (:mod:`prme_ray.model.memo`), and stages work on the row numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from prme_ray.model.memo import known_of

__all__ = [
    "field_of",
    "id_ranks",
    "ids_at",
    "ids_of",
    "joined_parts",
    "joined_references",
    "parts",
    "picked",
    "place_of",
    "ranks_of",
    "referring",
    "same_target",
]

_ALL = slice(None)


def parts(reference: pa.DictionaryArray) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Return the rows that references name, shape (n,), and what they are rows of."""
    known = known_of(reference)
    rows = known.numbers.get(("rows", None))
    if rows is None:
        rows = known.numbers["rows", None] = reference.indices.to_numpy()
        known.arrays["target"] = reference.dictionary
    return rows, known.arrays["target"]


def referring(rows: npt.NDArray[Any], target: pa.Array) -> pa.DictionaryArray:
    """Return references to places of an array, which is not copied; ``rows`` is not written to afterwards."""
    # NumPy narrows several times faster than Arrow, which would look for overflow; places always fit.
    narrow = rows.astype(np.int32, copy=False)
    found = pa.DictionaryArray.from_arrays(pa.array(narrow), target, safe=False)
    known = known_of(found)
    narrow.flags.writeable = False
    known.numbers["rows", None] = narrow
    known.arrays["target"] = target
    return found


def picked(reference: pa.DictionaryArray, rows: npt.NDArray[Any]) -> pa.DictionaryArray:
    """Return the given places of a reference column, in the given order."""
    found, target = parts(reference)
    return referring(found[rows], target)


def joined_references(first: pa.DictionaryArray, second: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return two reference columns as one; what both refer to is copied only where it differs."""
    return referring(*joined_parts(first, second)) if len(second) else first


def joined_parts(
    first: pa.DictionaryArray, second: pa.DictionaryArray, places: npt.NDArray[Any] | slice = _ALL
) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Return the :func:`parts` of two reference columns as one, of the second the given places."""
    mine, one = parts(first)
    rows, other = parts(second)
    rows = rows[places]
    if not len(rows):
        return mine, one
    if not same_target(one, other):
        rows = rows + len(one)
        one = pa.concat_arrays([one, other])
    return np.concatenate([mine, rows]), one


def same_target(one: pa.Array, other: pa.Array) -> bool:
    """Return whether two arrays (ids, or memories by reference) are the same memory, hence equal.

    Of memories only the ids are looked at: a table with other values in the same rows brings its own ids.
    Two slices of one table share their memory and differ.
    """
    return one is other or place_of(one) == place_of(other)


def place_of(target: pa.Array) -> tuple[int | None, ...]:
    """Return where an array's ids stand in memory."""
    known = known_of(target)
    if known.place is None:
        ids = target.field(0) if isinstance(target, pa.StructArray) else target
        known.place = (len(ids), ids.offset, *(None if buffer is None else buffer.address for buffer in ids.buffers()))
    return known.place


def field_of(target: pa.StructArray, name: str) -> pa.Array:
    """Return a field of what references point to."""
    fields = known_of(target).arrays
    found = fields.get(name)
    if found is None:
        found = fields[name] = target.field(name)
    return found


def ids_of(target: pa.Array) -> list[str]:
    """Return ids, or those of the memories that references point to; the list is kept and must not be changed."""
    if isinstance(target, pa.StructArray):
        target = field_of(target, "node_id")
    known = known_of(target)
    if known.ids is None:
        known.ids = target.to_pylist()
    return known.ids


def ids_at(target: pa.StructArray, rows: npt.NDArray[Any]) -> list[str]:
    """Return the ids of some rows, as Python strings: much cheaper than picking them by Arrow."""
    return list(map(ids_of(target).__getitem__, rows.tolist()))


def id_ranks(target: pa.StructArray) -> npt.NDArray[np.int64]:
    """Return the place of each row's id among all different ids in ascending order, from 1, shape (n,)."""
    known = known_of(target)
    if known.ranks is None:
        ranks = pc.rank(field_of(target, "node_id"), sort_keys="ascending", tiebreaker="dense")
        known.ranks = ranks.to_numpy().astype(np.int64)
        known.ranks.flags.writeable = False
    return known.ranks


def ranks_of(reference: pa.DictionaryArray) -> npt.NDArray[np.int64]:
    """Return, for each reference, the place of its id among those of all it could refer to."""
    rows, target = parts(reference)
    ranks: npt.NDArray[np.int64] = id_ranks(target)[rows]
    return ranks
