"""The columns an owner's log entries fold into.

Nodes and edges are numbered in admission order. Every node is a *vertex* of the owner's graph; those
that are not structural are *memories* and have a row of their own in the node table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import NodeType, code
from prme_ray.model.errors import StoreCorrupt
from prme_ray.model.nodes import ENTITY_TYPE_KEY
from prme_ray.model.tables import NODE, bools, codes, floats, texts, times
from prme_ray.model.times import NO_TIME
from storage.columns import Columns, Growing
from storage.digests import Digests, RollingDigests
from storage.graph import fold_name
from storage.lexical import Lexical, TextRow
from storage.parts import ALL_PARTS, Part
from storage.table_vectors import TableVectors, TableVectorStore
from storage.tables import NodeTable
from storage.vectors import Vectors, VectorStore

__all__ = ["Folded", "Head"]

_NEVER = 2**63 - 1
"""End of a validity that is open."""

_STRING_BYTES = 90  # an id as a Python string

_VERTEX = {
    "structural": np.bool_,
    "row": np.int64,
    "partition": np.int64,
    "scope": np.int8,
    "node_type": np.int8,
    "lifecycle": np.int8,
    "confidence": np.float64,
    "pinned": np.bool_,
    "created": np.int64,
    "valid_from": np.int64,
    "valid_to": np.int64,
    "happened": np.int64,
}
_EDGE = {
    "source": np.int64,
    "target": np.int64,
    "edge_type": np.int8,
    "confidence": np.float64,
    "created": np.int64,
    "valid_from": np.int64,
    "valid_to": np.int64,
}


@dataclass(frozen=True, slots=True)
class Head:
    """Everything a view needs, at one sequence number.

    The lists are shared with the state and grow; a view reads only what it counts here.

    Attributes:
        seq: Sequence number of the last entry folded in.
        owner_seq: How many of the owner's entries are folded in, events included.
        parts: The memories as ``NODE`` tables, one after the other, each of one chunk.
        vertices: Columns by vertex.
        memories: Vertex of every memory.
        edges: Columns by edge.
        ids: Vertex ids; at least ``len(vertices["row"])`` of them.
        vertex_of: Vertex by id, later ones included.
        memory_ids: Ids of the memories, at least ``len(memories)`` of them.
        edge_ids: Ids of the edges.
        entities: Vertex and folded content of the entities.
        entity_count: How many of the entities belong here.
        entity_types: Vertices and types of the entities that have one, by folded name, later ones included.
        vectors: Vectors of the memories.
        lexical: Text index of the memories.
        digests: Digests of texts and graph.
    """

    seq: int
    owner_seq: int
    parts: tuple[pa.Table, ...]
    vertices: dict[str, npt.NDArray[Any]]
    memories: npt.NDArray[np.int64]
    edges: dict[str, npt.NDArray[Any]]
    ids: list[str]
    vertex_of: dict[str, int]
    memory_ids: list[str]
    edge_ids: list[str]
    entities: list[tuple[int, str]]
    entity_count: int
    entity_types: dict[str, list[tuple[int, str]]]
    vectors: Vectors | TableVectors
    lexical: Lexical
    digests: Digests


class Folded:
    """The growing side: nodes and edges in, a :class:`Head` out. One thread writes.

    Args:
        dimension: Length of a vector.
        table: Node table that is searched for the vectors admitted up to ``upto``; ``None`` keeps all
            vectors in memory.
        owner_no: The owner, for ``table``.
        upto: Sequence number, for ``table``.
        parts: What is kept; a view answers only from those.
    """

    def __init__(
        self,
        *,
        dimension: int,
        table: NodeTable | None = None,
        owner_no: int = 0,
        upto: int = 0,
        parts: frozenset[Part] = ALL_PARTS,
    ) -> None:
        self._kept = parts
        # Without vectors the rows stay, at a width of nothing.
        self._dimension = dimension if Part.VECTORS in parts else 0
        self._vertices = Columns(_VERTEX)
        self._memories = Growing(np.int64)
        self._edges = Columns(_EDGE)
        self._vectors: VectorStore | TableVectorStore = (
            VectorStore(self._dimension)
            if table is None
            else TableVectorStore(table, owner_no=owner_no, upto=upto, dimension=dimension, rows_of=self._rows_of)
        )
        self._parts: tuple[pa.Table, ...] = ()
        self._ids: list[str] = []
        self._vertex_of: dict[str, int] = {}
        self._memory_ids: list[str] = []
        self._edge_ids: list[str] = []
        self._entities: list[tuple[int, str]] = []
        self._entity_types: dict[str, list[tuple[int, str]]] = {}
        self._partitions: dict[tuple[str, int], int] = {}
        self._waiting = pa.table({})
        self._part_bytes = 0
        self._digests = RollingDigests(parts)
        self._columns = NODE if Part.RECORDS in parts else pa.schema([NODE.field("node_id")])

    @property
    def nbytes(self) -> int:
        """Estimated bytes; the lexical index is taken to be as large as the text it was made from."""
        strings = _STRING_BYTES * (len(self._ids) + len(self._edge_ids))
        arrays = self._vertices.nbytes + self._memories.nbytes + self._edges.nbytes + self._vectors.nbytes
        return strings + arrays + 2 * self._part_bytes

    def check(self, nodes: pa.Table) -> None:
        """Refuse nodes that are already known or come twice.

        Raises:
            StoreCorrupt: naming one of them.
        """
        seen: set[str] = set()
        for name in texts(nodes, "node_id"):
            if name in self._vertex_of or name in seen:
                raise StoreCorrupt(path="the log", detail=f"node {name} was admitted twice for one owner")
            seen.add(name)

    def add_nodes(self, table: pa.Table) -> list[TextRow]:
        """Fold in checked nodes of the projection's columns, in sequence order; return the texts to index."""
        ids = texts(table, "node_id")
        first_vertex, first_row = len(self._ids), len(self._memory_ids)
        structural = bools(table, "structural")
        answers = table.filter(pa.array(~structural)) if structural.any() else table
        contents = texts(table, "content")

        row = np.where(structural, -1, first_row - 1 + np.cumsum(~structural))
        facts = _facts(table)
        self._vertices.append(row=row, structural=structural, partition=self._partition(table), **facts)
        self._memories.append(first_vertex + np.flatnonzero(~structural))
        if isinstance(self._vectors, TableVectorStore) and "vector" not in table.column_names:
            self._vectors.skip(answers.num_rows)
        else:
            matrix, present = _vectors(answers, self._dimension)
            self._vectors.append(matrix, present=present)
        if answers.num_rows:
            memories = answers.select(self._columns.names).cast(self._columns).combine_chunks()
            self._parts = _merged((*self._parts, memories))
            self._part_bytes += memories.nbytes
        entities = np.flatnonzero(codes(table, "node_type") == code(NodeType.ENTITY)).tolist()
        names = {position: fold_name(contents[position]) for position in entities}
        self._entities.extend((first_vertex + position, name) for position, name in names.items())
        self._digests.add_vertices(ids, {"structural": structural, **facts}, names)
        if entities and table.column("metadata").null_count < table.num_rows:
            metadata = table.column("metadata").take(pa.array(entities)).to_pylist()
            for position, text in zip(entities, metadata, strict=True):
                if (kind := _entity_type(text)) is not None:
                    self._entity_types.setdefault(names[position].strip(), []).append((first_vertex + position, kind))
        answer_ids = texts(answers, "node_id")
        self._ids.extend(ids)
        self._memory_ids.extend(answer_ids)
        self._vertex_of.update(zip(ids, range(first_vertex, first_vertex + len(ids)), strict=True))
        answer_texts = texts(answers, "content")
        self._digests.add_memories(answer_ids, answer_texts)
        if Part.TEXT not in self._kept:
            return []
        numbered = enumerate(zip(answer_ids, answer_texts, strict=True), start=first_row)
        return [(ordinal, name, content) for ordinal, (name, content) in numbered if content.strip()]

    def add_edges(self, table: pa.Table) -> None:
        """Fold in edges; one whose ends are not both known waits until they are."""
        if Part.EDGES not in self._kept:
            return
        self._digests.add_edges(table)
        if self._waiting.num_rows:
            table = pa.concat_tables([self._waiting, table])
        source = self._ends(table, "source_id")
        target = self._ends(table, "target_id")
        known = (source >= 0) & (target >= 0)
        self._waiting = table.filter(pa.array(~known)) if not known.all() else pa.table({})
        table = table.filter(pa.array(known))
        valid_to = times(table, "valid_to")
        self._edges.append(
            source=source[known],
            target=target[known],
            edge_type=codes(table, "edge_type"),
            confidence=floats(table, "confidence"),
            created=times(table, "created_at"),
            valid_from=times(table, "valid_from"),
            valid_to=np.where(valid_to == NO_TIME, _NEVER, valid_to),
        )
        self._edge_ids.extend(texts(table, "edge_id"))

    def head(self, *, seq: int, owner_seq: int, lexical: Lexical) -> Head:
        """Return the fold so far."""
        return Head(
            seq=seq,
            owner_seq=owner_seq,
            parts=self._parts,
            vertices=self._vertices.freeze(),
            memories=self._memories.freeze(),
            edges=self._edges.freeze(),
            ids=self._ids,
            vertex_of=self._vertex_of,
            memory_ids=self._memory_ids,
            edge_ids=self._edge_ids,
            entities=self._entities,
            entity_count=len(self._entities),
            entity_types=self._entity_types,
            vectors=self._vectors.freeze(),
            lexical=lexical,
            digests=self._digests.freeze(),
        )

    def _rows_of(self, ids: Sequence[str]) -> npt.NDArray[np.int64]:
        rows = self._vertices.freeze()["row"]
        found: npt.NDArray[np.int64] = rows[[self._vertex_of[name] for name in ids]]
        return found

    def _ends(self, table: pa.Table, name: str) -> npt.NDArray[np.int64]:
        known = self._vertex_of
        return np.array([known.get(end, -1) for end in texts(table, name)], np.int64)

    def _partition(self, table: pa.Table) -> npt.NDArray[np.int64]:
        """Return the number of each node's exact (session, scope) pair, -1 without a session."""
        numbers = self._partitions
        pairs: Sequence[tuple[str | None, int]] = list(
            zip(texts(table, "session_id"), codes(table, "scope").tolist(), strict=True)
        )
        return np.array(
            [-1 if session is None else numbers.setdefault((session, scope), len(numbers)) for session, scope in pairs],
            np.int64,
        )


def _merged(parts: tuple[pa.Table, ...]) -> tuple[pa.Table, ...]:
    """Join the last parts while they are of similar size: few parts, and each row copied rarely."""
    while len(parts) > 1 and parts[-2].num_rows <= 2 * parts[-1].num_rows:
        parts = (*parts[:-2], pa.concat_tables(parts[-2:]).combine_chunks())
    return parts


def _entity_type(metadata: str | None) -> str | None:
    """Return what a caller said an entity is: ``entity_type`` of its metadata, where that is a text."""
    kind = json.loads(metadata).get(ENTITY_TYPE_KEY) if metadata and ENTITY_TYPE_KEY in metadata else None
    return kind.strip() or None if isinstance(kind, str) else None


def _facts(table: pa.Table) -> dict[str, npt.NDArray[Any]]:
    created, happened, valid_to = times(table, "created_at"), times(table, "event_time"), times(table, "valid_to")
    return {
        "scope": codes(table, "scope"),
        "node_type": codes(table, "node_type"),
        "lifecycle": codes(table, "lifecycle_state"),
        "confidence": floats(table, "confidence"),
        "pinned": bools(table, "pinned") | (floats(table, "salience") >= 1.0),
        "created": created,
        "valid_from": times(table, "valid_from"),
        "valid_to": np.where(valid_to == NO_TIME, _NEVER, valid_to),
        "happened": np.where(happened == NO_TIME, created, happened),
    }


def _vectors(table: pa.Table, dimension: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    if not dimension:
        return np.empty((table.num_rows, 0), np.float32), np.zeros(table.num_rows, np.bool_)
    column = table.column("vector").combine_chunks()
    present = column.is_valid().to_numpy(zero_copy_only=False)
    matrix = np.zeros((len(present), dimension), np.float32)
    # Flattening leaves out the nulls.
    matrix[present] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
    return matrix, present
