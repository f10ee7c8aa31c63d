"""Arrow schemas of everything that crosses a stage or a process border.

::

    CHANNEL ──merge──► CANDIDATE ──filter──► CANDIDATE ──score──► SCORED ──expand/select──► SCORED
       NODE ──┘

* ``CHANNEL``: what one retrieval channel answers: ids and one raw signal, best first.
* ``NODE``: a memory as the stages see it.
* ``CANDIDATE``: a reference to a ``NODE`` row, and the channels' signals.
* ``SCORED``: ``CANDIDATE`` plus score, and a reference to the lineage of the score.
* ``EXCLUSION``: a memory that was left out, and why.

References are Arrow dictionary columns: ``node`` indexes a struct array of ``NODE`` rows, ``lineage``
one of lineages. So the stages sort and cut fifteen narrow columns instead of sixty, memories are
copied for nobody, and a score that a memory inherits *is* its trigger's lineage. :func:`column` and
its typed forms read through a reference: ``texts(table, "content")`` works on every table here.

Enum columns hold ``int8`` codes (:mod:`prme_ray.model.enums`); ``paths`` is a bit mask of
:class:`~prme_ray.model.enums.Path`. Ids are lower-case hyphenated UUID strings and sort as strings.
Columns are never null unless the schema says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.times import NO_TIME

__all__ = [
    "ADJUSTMENT",
    "CANDIDATE",
    "CHANNEL",
    "EXCLUSION",
    "LINEAGE",
    "NODE",
    "SCORED",
    "bools",
    "channel",
    "codes",
    "column",
    "exclusions",
    "floats",
    "ints",
    "joined_references",
    "no_exclusions",
    "no_hits",
    "picked",
    "records",
    "refer",
    "referring",
    "replace",
    "same_target",
    "take",
    "target_of",
    "texts",
    "times",
]

_TIME = pa.timestamp("us", tz="UTC")


def _field(name: str, kind: Any, nullable: bool = False) -> Any:
    return pa.field(name, kind, nullable=nullable)


CHANNEL = pa.schema([_field("node_id", pa.dictionary(pa.int32(), pa.string())), _field("signal", pa.float64())])
"""``signal``: cosine (vector), BM25 (lexical), proximity 1.0/0.7/0.4 (graph), 1.0 (pinned)."""

NODE = pa.schema(
    [
        _field("node_id", pa.string()),
        _field("session_id", pa.string(), nullable=True),
        _field("scope", pa.int8()),
        _field("node_type", pa.int8()),
        _field("content", pa.string()),
        _field("epistemic_type", pa.int8()),
        _field("source_type", pa.int8()),
        _field("lifecycle_state", pa.int8()),
        _field("decay_profile", pa.int8()),
        _field("confidence", pa.float64()),
        _field("salience", pa.float64()),
        _field("confidence_base", pa.float64()),
        _field("salience_base", pa.float64()),
        _field("reinforcement_boost", pa.float64()),
        _field("created_at", _TIME),
        _field("updated_at", _TIME),
        _field("event_time", _TIME, nullable=True),
        _field("valid_from", _TIME),
        _field("valid_to", _TIME, nullable=True),
        _field("last_reinforced_at", _TIME),
        _field("superseded_by", pa.string(), nullable=True),
        _field("pinned", pa.bool_()),
        # Raw metadata.condition_state; null when absent or not a string.
        _field("condition_state", pa.string(), nullable=True),
        # Valid stored speaker name, else null.
        _field("speaker", pa.string(), nullable=True),
        # Evidence ids (source events), sorted and joined by ","; "" for none.
        _field("evidence", pa.string()),
        # Caller's metadata as JSON text.
        _field("metadata", pa.string(), nullable=True),
        # prme_ray.model.wording, computed at admission.
        _field("dated", pa.bool_()),
        _field("update_wording", pa.bool_()),
    ]
)

_SIGNALS = [
    _field("paths", pa.int16()),
    _field("path_count", pa.int16()),
    # Cosine; components of a merge start from 0.0, so negative cosines become 0.0.
    _field("semantic_score", pa.float64()),
    # BM25, min-max normalised per query, in [0, 1].
    _field("lexical_score", pa.float64()),
    # 1.0, 0.7 or 0.4 for one, two or three hops; 0.0 off the graph.
    _field("graph_proximity", pa.float64()),
]

_NODES = pa.struct(list(NODE))
CANDIDATE = pa.schema([_field("node", pa.dictionary(pa.int32(), _NODES)), *_SIGNALS])

ADJUSTMENT = pa.struct(
    [
        _field("kind", pa.int8()),
        _field("coefficient", pa.float64()),
        _field("source_node_id", pa.string()),
        _field("neural_score", pa.float64(), nullable=True),
    ]
)

LINEAGE = pa.schema(
    [
        # 1 weighted, 2 rank fusion; whose base score this is; the base score itself.
        _field("formula_version", pa.int8()),
        _field("base_node_id", pa.string()),
        _field("base_score", pa.float64()),
        # The trace of the base node (digest a §1.4). For an inherited score: the trigger's trace.
        _field("trace_semantic", pa.float64()),
        _field("trace_lexical", pa.float64()),
        _field("trace_graph", pa.float64()),
        _field("trace_recency", pa.float64()),
        _field("trace_salience", pa.float64()),
        _field("trace_confidence", pa.float64()),
        _field("trace_epistemic", pa.float64()),
        _field("trace_path", pa.float64()),
        _field("trace_temporal", pa.float64()),
        _field("trace_node_type", pa.float64()),
        # Rank fusion only (formula 2).
        _field("semantic_rank", pa.int32(), nullable=True),
        _field("lexical_rank", pa.int32(), nullable=True),
        _field("epistemic_factor", pa.float64(), nullable=True),
        _field("node_type_factor", pa.float64(), nullable=True),
        _field("temporal_factor", pa.float64(), nullable=True),
        _field("recency_factor", pa.float64(), nullable=True),
        _field("tie_break", pa.float64(), nullable=True),
    ]
)
"""How a base score came about: one row a scored memory; an inherited score refers to its trigger's."""

SCORED = pa.schema(
    [
        *CANDIDATE,
        _field("composite_score", pa.float64()),
        # Largest relevance of the memories that brought this one in as context; working state.
        _field("context_relevance", pa.float64()),
        # Rank fusion only: what min_score is compared with. Null until computed.
        _field("semantic_relevance", pa.float64(), nullable=True),
        # False when the score was inherited (the lineage is then another node's).
        _field("has_own_trace", pa.bool_()),
        _field("reranker_score", pa.float64(), nullable=True),
        _field("session_trigger_id", pa.string(), nullable=True),
        _field("session_offset", pa.int32(), nullable=True),
        _field("contradicts_id", pa.string(), nullable=True),
        _field("lineage", pa.dictionary(pa.int32(), pa.struct(list(LINEAGE)))),
        # Steps from the base score to the composite score, in the order applied.
        _field("adjustments", pa.list_(pa.field("item", ADJUSTMENT, nullable=False))),
    ]
)

EXCLUSION = pa.schema(
    [
        _field("node_id", pa.string()),
        _field("reason", pa.string()),
        _field("composite_score", pa.float64(), nullable=True),
        _field("semantic_relevance", pa.float64(), nullable=True),
    ]
)

_NO_EXCLUSIONS = EXCLUSION.empty_table()
_NO_HITS = CHANNEL.empty_table()


def channel(node_ids: Any, signals: Any) -> pa.Table:
    """Return a ``CHANNEL`` table from ids (strings, or references to strings) and signals of equal length."""
    ids = node_ids if isinstance(node_ids, pa.DictionaryArray) else pa.array(node_ids, pa.string()).dictionary_encode()
    return pa.Table.from_arrays([ids, pa.array(signals, pa.float64())], schema=CHANNEL)


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


_REFERENCES = {**dict.fromkeys(NODE.names, "node"), **dict.fromkeys(LINEAGE.names, "lineage")}


def _own(table: pa.Table, position: int) -> pa.Array:
    chunks = table.column(position)
    if chunks.num_chunks == 1:
        return chunks.chunk(0)
    if chunks.num_chunks == 0 and pa.types.is_dictionary(chunks.type):
        # A filter that keeps nothing may leave no chunk, and Arrow cannot make an empty reference by itself.
        kind = chunks.type
        return pa.DictionaryArray.from_arrays(pa.array([], kind.index_type), pa.array([], kind.value_type))
    return chunks.combine_chunks()


def _resolve(table: pa.Table, name: str) -> tuple[pa.Array, pa.Array | None]:
    """Return a column's values, and which of them stand for the table's rows where it is a reference."""
    schema = table.schema
    position = schema.get_field_index(name)
    if position >= 0:
        return _own(table, position), None
    through = schema.get_field_index(_REFERENCES.get(name, ""))
    if through < 0:
        raise KeyError(f"no column {name!r} in a table of {schema.names}")
    reference = _own(table, through)
    return reference.dictionary.field(name), reference.indices


def column(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array, of the table itself or of what it refers to."""
    values, rows = _resolve(table, name)
    return values if rows is None else values.take(rows)


_FILL_WHOLE = 4096
"""Values up to which nulls are filled before rows are picked: one pass is cheaper than picking twice."""


def _numbers(table: pa.Table, name: str, null: Any, view: Any = None) -> npt.NDArray[Any]:
    values, rows = _resolve(table, name)
    if view is not None:
        values = values.view(view)
    if values.null_count:
        if rows is not None and len(values) > _FILL_WHOLE:
            values, rows = values.take(rows), None
        values = values.fill_null(null)
    found: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found if rows is None else found[rows.to_numpy()]


def floats(table: pa.Table, name: str, null: float = np.nan) -> npt.NDArray[np.float64]:
    """Return a float column as ``float64``, nulls as ``null``."""
    return _numbers(table, name, null).astype(np.float64, copy=False)


def ints(table: pa.Table, name: str, null: int = 0) -> npt.NDArray[np.int64]:
    """Return an integer column as ``int64``, nulls as ``null``."""
    return _numbers(table, name, null).astype(np.int64, copy=False)


def codes(table: pa.Table, name: str) -> npt.NDArray[np.int8]:
    """Return an enum column's codes, ready to index a table of values."""
    return _numbers(table, name, None)


def bools(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    """Return a Boolean column."""
    return _numbers(table, name, None)


def times(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """Return a time column in microseconds since the epoch, nulls as ``NO_TIME``."""
    return _numbers(table, name, NO_TIME, pa.int64())


def texts(table: pa.Table, name: str) -> list[Any]:
    """Return a string column as Python strings (``None`` for null)."""
    return column(table, name).to_pylist()  # type: ignore[no-any-return]


def target_of(memories: pa.Table) -> pa.StructArray:
    """Return what references point to: a table's rows as structs, or what its ``node`` column refers to."""
    position = memories.schema.get_field_index("node")
    if position >= 0:
        return _own(memories, position).dictionary
    columns = [_own(memories, number) for number in range(memories.num_columns)]
    return pa.StructArray.from_arrays(columns, fields=list(memories.schema))


def refer(target: pa.StructArray | pa.Table, rows: npt.NDArray[Any]) -> pa.DictionaryArray:
    """Return references to rows of structs, or of a table; neither is copied."""
    structs = target_of(target) if isinstance(target, pa.Table) else target
    return referring(rows, structs)


def referring(rows: npt.NDArray[Any], target: pa.Array) -> pa.DictionaryArray:
    """Return references to places of an array, which is not copied."""
    # NumPy narrows several times faster than Arrow, which would look for overflow; places always fit.
    return pa.DictionaryArray.from_arrays(pa.array(rows.astype(np.int32, copy=False)), target, safe=False)


def picked(reference: pa.DictionaryArray, rows: npt.NDArray[Any]) -> pa.DictionaryArray:
    """Return the given places of a reference column, in the given order."""
    return referring(reference.indices.to_numpy()[rows], reference.dictionary)


def joined_references(first: pa.DictionaryArray, second: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return two reference columns as one; what both refer to is copied only where it differs."""
    if not len(second):
        return first
    one, other = first.dictionary, second.dictionary
    rows = second.indices.to_numpy()
    if not same_target(one, other):
        rows = rows + len(one)
        one = pa.concat_arrays([one, other])
    return referring(np.concatenate([first.indices.to_numpy(), rows]), one)


def same_target(one: pa.Array, other: pa.Array) -> bool:
    """Return whether two arrays (ids, or memories by reference) are the same memory, hence equal.

    Of memories only the ids are looked at: a table with other values in the same rows brings its own ids.
    Two slices of one table share their memory and differ.
    """
    mine, theirs = _ids_of(one), _ids_of(other)
    return len(mine) == len(theirs) and mine.offset == theirs.offset and _addresses(mine) == _addresses(theirs)


def _ids_of(target: pa.Array) -> pa.Array:
    return target.field(0) if isinstance(target, pa.StructArray) else target


def _addresses(ids: pa.Array) -> list[int | None]:
    return [None if buffer is None else buffer.address for buffer in ids.buffers()]


def records(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows as dictionaries, references resolved into the fields they stand for."""
    rows = table.to_pylist()
    for row in rows:
        row.update(row.pop("node", None) or {})
        row.update(row.pop("lineage", None) or {})
    return rows  # type: ignore[no-any-return]


def take(table: pa.Table, rows: npt.NDArray[Any]) -> pa.Table:
    """Return the given rows in the given order; the table itself when that changes nothing."""
    if len(rows) == table.num_rows and bool(np.array_equal(rows, np.arange(len(rows)))):
        return table
    return table.take(pa.array(rows))


def replace(table: pa.Table, **columns: Any) -> pa.Table:
    """Return ``table`` with these columns replaced; types follow the table's schema.

    Raises:
        KeyError: the table itself has no such column; what it refers to cannot be replaced.
    """
    for name, values in columns.items():
        position = table.schema.get_field_index(name)
        if position < 0:
            raise KeyError(f"no column {name!r} in a table of {table.schema.names}")
        field = table.schema.field(position)
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, field.type)
        table = table.set_column(position, field, array)
    return table
