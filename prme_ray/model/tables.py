"""Builds and reads the tables of :mod:`prme_ray.model.schemas`.

:func:`column` and its typed forms read through a reference: ``texts(table, "content")`` works on every
table. What is read of a table is kept with it (:mod:`prme_ray.model.memo`), so reading a column again,
in another stage, is a look-up; the arrays they return can therefore not be written to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.memo import Known, known_of
from prme_ray.model.references import (
    field_of,
    id_ranks,
    ids_at,
    ids_of,
    joined_parts,
    joined_references,
    parts,
    picked,
    place_of,
    ranks_of,
    referring,
    same_target,
)
from prme_ray.model.schemas import ADJUSTMENT, CANDIDATE, CHANNEL, EXCLUSION, LINEAGE, NODE, SCORED, SIGNALS
from prme_ray.model.times import NO_TIME

__all__ = [
    "ADJUSTMENT",
    "CANDIDATE",
    "CHANNEL",
    "EXCLUSION",
    "LINEAGE",
    "NODE",
    "SCORED",
    "SIGNALS",
    "bools",
    "built",
    "channel",
    "codes",
    "column",
    "exclusions",
    "field_numbers",
    "field_of",
    "floats",
    "id_ranks",
    "ids_at",
    "ids_of",
    "ints",
    "joined_parts",
    "joined_references",
    "keep_fields",
    "no_exclusions",
    "no_hits",
    "parts",
    "picked",
    "place_of",
    "present",
    "ranks_of",
    "records",
    "refer",
    "references",
    "referring",
    "replace",
    "same_target",
    "shorts",
    "take",
    "target_of",
    "texts",
    "times",
]

_NODE_ONLY = pa.schema([CANDIDATE.field("node")])
_NO_EXCLUSIONS = EXCLUSION.empty_table()
_NO_HITS = CHANNEL.empty_table()


def channel(node_ids: Any, signals: Any) -> pa.Table:
    """Return a ``CHANNEL`` table from ids (strings, or references to strings) and signals of equal length."""
    ids = node_ids if isinstance(node_ids, pa.DictionaryArray) else pa.array(node_ids, pa.string()).dictionary_encode()
    return built(CHANNEL, {"node_id": ids, "signal": np.asarray(signals, np.float64)})


def no_hits() -> pa.Table:
    """Return an empty ``CHANNEL`` table."""
    return _NO_HITS


def exclusions(node_ids: Any, reasons: Any, composite: Any = None, relevance: Any = None) -> pa.Table:
    """Return an ``EXCLUSION`` table; scores are null where not given."""
    ids = pa.array(node_ids, pa.string())
    nothing = pa.nulls(len(ids), pa.float64())
    return pa.Table.from_arrays(
        [
            ids,
            pa.array(reasons, pa.string()),
            nothing if composite is None else pa.array(composite, pa.float64()),
            nothing if relevance is None else pa.array(relevance, pa.float64()),
        ],
        schema=EXCLUSION,
    )


def no_exclusions() -> pa.Table:
    """Return an empty ``EXCLUSION`` table."""
    return _NO_EXCLUSIONS


def keep_fields(
    target: pa.StructArray, arrays: Mapping[str, pa.Array], numbers: Mapping[tuple[str, Any], npt.NDArray[Any]]
) -> None:
    """Keep fields of what references point to as they were before, so that nobody needs to take it apart.

    Args:
        target: What references point to.
        arrays: Some of its fields by name.
        numbers: The same as NumPy by name and what stands for null (``None``: there is no null); arrays of one
            value may be broadcast. They cannot be written to afterwards.
    """
    known = known_of(target)
    known.arrays.update(arrays)
    for key, values in numbers.items():
        values.flags.writeable = False
        known.numbers[key] = values


def field_numbers(target: pa.StructArray, name: str, null: float) -> npt.NDArray[Any]:
    """Return a field of what references point to as NumPy, nulls as ``null``; of one value, it may be broadcast."""
    kept = _kept(known_of(target).numbers, name, null)
    if kept is not None:
        return kept[0]
    field = field_of(target, name)
    if field.null_count == len(field):
        return np.full(len(field), null)
    return _whole(target, field, name, null, None)[0]


_REFERENCES = {**dict.fromkeys(NODE.names, "node"), **dict.fromkeys(LINEAGE.names, "lineage")}


def built(schema: pa.Schema, columns: Mapping[str, Any]) -> pa.Table:
    """Return a table of these columns, given by name as Arrow or NumPy arrays of the schema's types.

    NumPy arrays are not copied and cannot be written to afterwards.
    """
    names = schema.names
    arrays: list[Any] = []
    numbers: dict[tuple[str, Any], npt.NDArray[Any]] = {}
    for name in names:
        values = columns[name]
        if isinstance(values, np.ndarray):
            values.flags.writeable = False
            numbers[name, None] = values
            values = pa.array(values)
        arrays.append(values)
    table = pa.Table.from_arrays(arrays, schema=schema)
    known = known_of(table)
    known.numbers.update(numbers)
    known.arrays.update(zip(names, arrays, strict=True))
    return table


def _own(table: pa.Table, name: str, known: Known) -> pa.Array | None:
    """Return a column of the table itself as one array, ``None`` where it has none of that name."""
    found = known.arrays.get(name)
    if found is None:
        position = table.schema.get_field_index(name)
        if position < 0:
            return None
        found = known.arrays[name] = _one_array(table.column(position))
    return found


def _one_array(chunks: pa.ChunkedArray) -> pa.Array:
    if chunks.num_chunks == 1:
        return chunks.chunk(0)
    if chunks.num_chunks == 0 and pa.types.is_dictionary(chunks.type):
        # A filter that keeps nothing may leave no chunk, and Arrow cannot make an empty reference by itself.
        kind = chunks.type
        return pa.DictionaryArray.from_arrays(pa.array([], kind.index_type), pa.array([], kind.value_type))
    return chunks.combine_chunks()


def _reference(table: pa.Table, name: str, known: Known) -> pa.DictionaryArray:
    """Return the reference column through which the table has a column of this name."""
    found = _own(table, _REFERENCES.get(name, ""), known)
    if found is None:
        raise KeyError(f"no column {name!r} in a table of {table.schema.names}")
    return found


_FILL_WHOLE = 4096
"""Values up to which a column is read whole, and kept, before rows are picked from it."""


def column(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array, of the table itself or of what it refers to."""
    known = known_of(table)
    found = _own(table, name, known)
    if found is None:
        rows, target = parts(_reference(table, name, known))
        # Picking strings is slow, so it is done once a table.
        found = known.arrays[name] = field_of(target, name).take(pa.array(rows))
    return found


def _numbers(table: pa.Table, name: str, null: Any, view: Any = None) -> npt.NDArray[Any]:
    known = known_of(table)
    kept = known.numbers
    found = kept.get((name, None))
    if found is None:
        found = kept.get((name, null))
    if found is None:
        values = _own(table, name, known)
        if values is not None:
            found, key = _filled(values, name, null, view)
        else:
            rows, target = parts(_reference(table, name, known))
            field = field_of(target, name)
            if len(field) > _FILL_WHOLE:
                found, key = _filled(field.take(pa.array(rows)), name, null, view)
            else:
                whole, key = _whole(target, field, name, null, view)
                found = whole[rows]
        found.flags.writeable = False
        kept[key] = found
    return found


def _whole(
    target: pa.StructArray, field: pa.Array, name: str, null: Any, view: Any
) -> tuple[npt.NDArray[Any], tuple[str, Any]]:
    """Return a field of what a table refers to; it lives as long as that, which many requests share."""
    kept = known_of(target).numbers
    known = _kept(kept, name, null)
    if known is not None:
        return known
    found, key = _filled(field, name, null, view)
    found.flags.writeable = False
    kept[key] = found
    return found, key


def _kept(
    kept: Mapping[tuple[str, Any], npt.NDArray[Any]], name: str, null: Any
) -> tuple[npt.NDArray[Any], tuple[str, Any]] | None:
    """Return a column that was read before, and what it is kept by: without nulls, or filled like this."""
    for key in ((name, None), (name, null)):
        found = kept.get(key)
        if found is not None:
            return found, key
    return None


def _filled(values: pa.Array, name: str, null: Any, view: Any) -> tuple[npt.NDArray[Any], tuple[str, Any]]:
    """Return values as NumPy, and what to keep them by: the filling counts only where it was used."""
    if view is not None:
        values = values.view(view)
    key = (name, None)
    if values.null_count:
        values, key = values.fill_null(null), (name, null)
    return values.to_numpy(zero_copy_only=False), key


def floats(table: pa.Table, name: str, null: float = np.nan) -> npt.NDArray[np.float64]:
    """Return a float column as ``float64``, nulls as ``null``."""
    return _numbers(table, name, null).astype(np.float64, copy=False)


def ints(table: pa.Table, name: str, null: int = 0) -> npt.NDArray[np.int64]:
    """Return an integer column as ``int64``, nulls as ``null``."""
    return _numbers(table, name, null).astype(np.int64, copy=False)


def shorts(table: pa.Table, name: str) -> npt.NDArray[np.int16]:
    """Return a column of 16-bit integers without nulls: path masks and counts."""
    return _numbers(table, name, None)


def codes(table: pa.Table, name: str) -> npt.NDArray[np.int8]:
    """Return an enum column's codes, ready to index a table of values."""
    return _numbers(table, name, None)


def bools(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    """Return a Boolean column."""
    return _numbers(table, name, None)


def times(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """Return a time column in microseconds since the epoch, nulls as ``NO_TIME``."""
    return _numbers(table, name, NO_TIME, pa.int64())


def present(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    """Return which rows have a value in a column of what the table refers to."""
    rows, target = parts(_reference(table, name, known_of(table)))
    kept, key = known_of(target).numbers, (name, "present")
    if key not in kept:
        values = field_of(target, name)
        whole = np.ones(len(values), np.bool_)
        if values.null_count:
            whole = values.is_valid().to_numpy(zero_copy_only=False)
        whole.flags.writeable = False
        kept[key] = whole
    return kept[key][rows]


def texts(table: pa.Table, name: str) -> list[Any]:
    """Return a string column as Python strings (``None`` for null)."""
    return column(table, name).to_pylist()  # type: ignore[no-any-return]


def target_of(memories: pa.Table) -> pa.StructArray:
    """Return what references point to: a table's rows as structs, or what its ``node`` column refers to."""
    known = known_of(memories)
    reference = _own(memories, "node", known)
    if reference is not None:
        return parts(reference)[1]
    arrays = [_own(memories, name, known) for name in memories.schema.names]
    return pa.StructArray.from_arrays(arrays, fields=list(memories.schema))


def refer(target: pa.StructArray | pa.Table, rows: npt.NDArray[Any]) -> pa.DictionaryArray:
    """Return references to rows of structs, or of a table; neither is copied."""
    structs = target_of(target) if isinstance(target, pa.Table) else target
    return referring(rows, structs)


def records(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows as dictionaries, references resolved into the fields they stand for."""
    rows = table.to_pylist()
    for row in rows:
        row.update(row.pop("node", None) or {})
        row.update(row.pop("lineage", None) or {})
    return rows  # type: ignore[no-any-return]


def references(reference: pa.DictionaryArray) -> pa.Table:
    """Return references to memories as a table of one column, ``node``."""
    return built(_NODE_ONLY, {"node": reference})


def take(table: pa.Table, rows: npt.NDArray[Any]) -> pa.Table:
    """Return the given rows in the given order; the table itself when that changes nothing."""
    if len(rows) == table.num_rows and bool(np.array_equal(rows, np.arange(len(rows)))):
        return table
    places = pa.array(rows)
    taken: dict[str, pa.Array] = {}
    for name in table.schema.names:
        values = column(table, name)
        # References are picked from, not copied, so that what was read of what they refer to stays known.
        taken[name] = picked(values, rows) if isinstance(values, pa.DictionaryArray) else values.take(places)
    return built(table.schema, taken)


def replace(table: pa.Table, **columns: Any) -> pa.Table:
    """Return ``table`` with these columns replaced; types follow the table's schema.

    Raises:
        KeyError: the table itself has no such column; what it refers to cannot be replaced.
    """
    schema, known = table.schema, known_of(table)
    names = schema.names
    arrays = {name: _own(table, name, known) for name in names}
    for name, values in columns.items():
        if name not in arrays:
            raise KeyError(f"no column {name!r} in a table of {names}")
        arrays[name] = values if isinstance(values, pa.Array) else pa.array(values, schema.field(name).type)
    changed = built(schema, arrays)
    kept = known_of(changed)
    kept.arrays = {**known.arrays, **arrays}
    kept.numbers |= {key: values for key, values in known.numbers.items() if key[0] not in columns}
    return changed
