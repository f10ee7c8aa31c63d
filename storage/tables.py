"""The two LanceDB tables of a shard: memories with their vectors, and edges.

Both are projections of the log (:mod:`storage.lance`). Rows of all owners of the shard share a
table; every read names one owner, and the filter runs before the search, never after it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ValidationError

from prme_ray.model.enums import code
from prme_ray.model.errors import InvalidRequest, StoreCorrupt
from prme_ray.model.nodes import Edge, Node, node_rows
from prme_ray.model.tables import NODE, channel, no_hits
from prme_ray.model.times import micros
from storage.lance import Projection
from storage.records import EntryKind, LogRow
from storage.table_place import TablePlace
from storage.table_rows import bounds, distinct, owned
from storage.vectors import Vectors

__all__ = ["EDGE", "EdgeTable", "NodeTable", "node_schema"]

_TIME = pa.timestamp("us", tz="UTC")
_ROUNDING = 1e-5  # float32 error of a dot product of two unit vectors, generously

EDGE = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("owner", pa.int64(), nullable=False),
        pa.field("edge_id", pa.string(), nullable=False),
        pa.field("source_id", pa.string(), nullable=False),
        pa.field("target_id", pa.string(), nullable=False),
        pa.field("edge_type", pa.int8(), nullable=False),
        pa.field("confidence", pa.float64(), nullable=False),
        pa.field("created_at", _TIME, nullable=False),
        pa.field("valid_from", _TIME, nullable=False),
        pa.field("valid_to", _TIME, nullable=True),
    ]
)
"""Rows of the edge table."""


def node_schema(dimension: int) -> pa.Schema:
    """Return the schema of the node table: ``NODE`` with its place in the log and its vector."""
    return pa.schema(
        [
            pa.field("seq", pa.int64(), nullable=False),
            pa.field("owner", pa.int64(), nullable=False),
            pa.field("structural", pa.bool_(), nullable=False),
            *NODE,
            pa.field("vector", pa.list_(pa.float32(), dimension), nullable=True),
        ]
    )


class NodeTable(Projection):
    """Memories and structural hubs; ``vector`` is null where a node has none."""

    kind: ClassVar[EntryKind] = EntryKind.NODE

    @classmethod
    def open(cls, place: str | os.PathLike[str] | TablePlace, *, dimension: int, read_only: bool = False) -> Self:
        """Open the table at ``place``, creating it unless ``read_only``.

        Args:
            place: Folder or URI of the table, not used for anything else.
            dimension: Length of the vectors of the encoder generation this table holds.
            read_only: For a process that does not write: every read sees the newest version. Without
                a table yet, everything is empty.

        Raises:
            StoreCorrupt: the files cannot be read, or hold vectors of another length.
        """
        return cls(place, node_schema(dimension), read_only=read_only)

    @classmethod
    def batch(cls, rows: Sequence[LogRow], schema: pa.Schema) -> pa.Table:  # noqa: D102
        nodes = [_parsed(Node, row) for row in rows]
        columns: dict[str, Any] = node_rows(nodes)
        columns["seq"] = [row.seq for row in rows]
        columns["owner"] = [row.owner_no for row in rows]
        columns["structural"] = [node.structural for node in nodes]
        columns["vector"] = _vectors(rows, schema.field("vector").type)
        return _arrow(columns, schema)

    def count_with_vector(self, *, upto: int | None = None, owner_no: int | None = None) -> int:
        """Return the number of rows that have a vector, of one owner or of all, up to a sequence number."""
        where = " AND ".join(["vector IS NOT NULL", *bounds(upto, owner_no)])
        return int(self._read(lambda table: table.count_rows(where), 0))

    def search(self, vector: npt.NDArray[np.float32], *, owner_no: int, k: int, upto: int | None = None) -> pa.Table:
        """Return the ``k`` memories of an owner closest to ``vector``, by exact search.

        Vectors and question have length 1 (the encoder normalises them), so the dot product is the
        cosine; a vector of zeros scores 0. LanceDB finds every row that rounding could put on either
        side of the cut; :class:`~storage.vectors.Vectors` scores and orders them, so the answer is
        byte for byte that of an owner in memory. Eligibility is the caller's: ask for a larger ``k``
        when too few of the answers may be shown.

        Args:
            vector: Question, shape (dimension,), finite.
            owner_no: Only this owner's rows are searched.
            k: Most rows to return.
            upto: Only rows admitted up to this sequence number.

        Returns:
            A ``CHANNEL`` table ordered by (-cosine, id).

        Raises:
            InvalidRequest: the vector has another shape or is not finite.
            StoreBusy: the table no longer reaches ``upto``: it was deleted and is being rebuilt.
        """
        dimension = self.schema.field("vector").type.list_size
        query = np.ascontiguousarray(vector, dtype=np.float32)
        if query.shape != (dimension,) or not np.isfinite(query).all():
            raise InvalidRequest(argument="vector", given=query.shape, allowed=f"{dimension} finite numbers")
        if k <= 0:
            return no_hits()
        where = owned(owner_no, upto)
        wanted = k + 64
        while True:
            found = self._read(partial(_nearest, query=query, where=where, limit=wanted), None)
            self._check_reaches(upto)
            if found is None or not found.num_rows:
                return no_hits()
            given, found = found.num_rows, distinct(found)
            distances = np.sort(found["_distance"].to_numpy())
            if given < wanted or (len(distances) >= k and distances[-1] > distances[k - 1] + _ROUNDING):
                break
            wanted *= 2  # the cut falls inside a tie
        flat = found["vector"].combine_chunks().flatten().to_numpy()
        every = np.ones(found.num_rows, dtype=bool)
        ids = found["node_id"].to_pylist()
        near = Vectors(flat.reshape(found.num_rows, dimension), every)
        rows, cosines = near.search(query, k=k, allowed=every, ids=ids)
        return channel([ids[row] for row in rows.tolist()], cosines)


class EdgeTable(Projection):
    """Relations between memories."""

    kind: ClassVar[EntryKind] = EntryKind.EDGE

    @classmethod
    def open(cls, place: str | os.PathLike[str] | TablePlace, *, read_only: bool = False) -> Self:
        """Open the table at ``place``; see :meth:`NodeTable.open`."""
        return cls(place, EDGE, read_only=read_only)

    @classmethod
    def batch(cls, rows: Sequence[LogRow], schema: pa.Schema) -> pa.Table:  # noqa: D102
        edges = [_parsed(Edge, row) for row in rows]
        return _arrow(
            {
                "seq": [row.seq for row in rows],
                "owner": [row.owner_no for row in rows],
                "edge_id": [edge.id for edge in edges],
                "source_id": [edge.source_id for edge in edges],
                "target_id": [edge.target_id for edge in edges],
                "edge_type": [code(edge.edge_type) for edge in edges],
                "confidence": [edge.confidence for edge in edges],
                "created_at": [micros(edge.created_at) for edge in edges],
                "valid_from": [micros(edge.valid_from) for edge in edges],
                "valid_to": [None if edge.valid_to is None else micros(edge.valid_to) for edge in edges],
            },
            schema,
        )


def _nearest(table: Any, query: npt.NDArray[np.float32], where: str, limit: int) -> pa.Table:
    search = table.search(query, vector_column_name="vector", query_type="vector").distance_type("dot")
    narrowed = search.bypass_vector_index().where(where, prefilter=True)
    return narrowed.select(["seq", "node_id", "vector", "_distance"]).limit(limit).to_arrow()


def _parsed(kind: Any, row: LogRow) -> Any:
    try:
        return kind.model_validate_json(row.payload)
    except ValidationError as error:
        where = ", ".join(".".join(map(str, item["loc"])) for item in error.errors())
        raise StoreCorrupt(
            path="the log", detail=f"entry {row.seq} is not a valid {row.kind} (fields: {where})"
        ) from None  # the cause would quote the memory


def _vectors(rows: Sequence[LogRow], kind: Any) -> pa.Array:
    size = 4 * kind.list_size
    for row in rows:
        if row.vector is not None and len(row.vector) != size:
            detail = f"entry {row.seq} has a vector of {len(row.vector)} bytes, expected {size}"
            raise StoreCorrupt(path="the log", detail=detail)
    nothing = bytes(size)
    packed = b"".join(nothing if row.vector is None else row.vector for row in rows)
    values = np.frombuffer(packed, dtype="<f4").astype(np.float32, copy=False)
    absent = pa.array([row.vector is None for row in rows], pa.bool_())
    return pa.FixedSizeListArray.from_arrays(pa.array(values), type=kind, mask=absent)


def _arrow(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for field, column in ((field, columns[field.name]) for field in schema)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
