"""What readers search: one owner's memories at one sequence number.

A view never changes and never waits for the writer: what it reads either grows behind the rows it
knows or is replaced by something new. :mod:`storage.owner_state` makes the views.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import PINNABLE_STATES, LifecycleState, NodeType, code
from prme_ray.model.tables import (
    CANDIDATE,
    NODE,
    channel,
    column,
    ids_at,
    no_hits,
    parts,
    refer,
    references,
    referring,
    same_target,
    take,
    target_of,
)
from storage.analyzer import query_terms
from storage.eligibility import Mask, eligible
from storage.folded import Head
from storage.graph import OwnerGraph, fold_name
from storage.ordering import ordered
from storage.records import Filters
from storage.sessions import SessionOrder

__all__ = ["SESSION_WINDOW", "OwnerView"]

SESSION_WINDOW = pa.schema(
    [
        CANDIDATE.field("node"),
        pa.field("trigger_id", pa.string(), nullable=False),
        pa.field("offset", pa.int32(), nullable=False),
    ]
)
"""Session neighbours: a reference to the memory, whose neighbour it is and how many places away."""

_KEPT_MASKS = 4
_COPY_FROM = 2048
"""Memories from which on a request gets copies of those it names instead of the owner's whole table."""
_PINNABLE = [code(state) for state in PINNABLE_STATES]
_CONTESTED = code(LifecycleState.CONTESTED)


class OwnerView:
    """An owner's memories at one sequence number, searchable from any thread.

    Every channel takes the mask of :meth:`eligible` and answers with a ``CHANNEL`` table, best first,
    cut by a total order. The mask belongs to the view it was asked from.

    Args:
        head: What the view is made of.
    """

    def __init__(self, head: Head) -> None:
        self.seq = head.seq
        """Sequence number, in the shard, of the owner's last entry in the view."""
        self.owner_seq = head.owner_seq
        """The owner's own number of that entry: 1, 2, 3…, so it tells nothing about other owners."""
        self.past = False
        """Whether it was asked for as a past state: another process then has to ask for it as one too."""
        self.generation: int | None = None
        """Encoder generation that a past state was asked for with; ``None``: the one that is read."""
        self._head = head
        self._graph = OwnerGraph(
            head.vertices,
            head.edges,
            ids=head.ids,
            edge_ids=head.edge_ids,
            entities=head.entities[: head.entity_count],
        )
        # Made on first use. Two threads may make one twice; both are equal and either may stay.
        self._nodes: pa.Table | None = None
        self._structs: pa.StructArray | None = None
        self._id_places: npt.NDArray[np.int64] | None = None
        self._groups: tuple[npt.NDArray[np.int64], ...] | None = None
        self._sessions: SessionOrder | None = None
        self._masks: dict[Filters, Mask] = {}
        self._as_past: dict[int, OwnerView] = {}

    def __len__(self) -> int:
        return len(self._head.memories)

    def as_past(self, generation: int) -> OwnerView:
        """Return the same view, marked as a past state of that encoder generation."""
        if self.past and self.generation == generation:
            return self
        found = self._as_past.get(generation)
        if found is None:
            found = copy.copy(self)
            found.past, found.generation, found._as_past = True, generation, {}
            self._as_past[generation] = found
        return found

    @property
    def lexical_digest(self) -> str | None:
        """SHA-256 over (id, text) of every indexed memory, ``None`` where this process has no texts."""
        return self._head.digests.lexical()

    @property
    def graph_digest(self) -> str | None:
        """SHA-256 over all that a traversal reads, ``None`` where this process has no graph."""
        return self._head.digests.graphs()

    @property
    def nodes(self) -> pa.Table:
        """The memories, a ``NODE`` table of one chunk in admission order."""
        if self._nodes is None:
            parts = self._head.parts
            joined = parts[0] if len(parts) == 1 else pa.concat_tables(parts).combine_chunks() if parts else None
            self._nodes = NODE.empty_table() if joined is None else joined
        return self._nodes

    def eligible(self, filters: Filters) -> Mask:
        """Return which memories a request may see; asking again for the same filters is free."""
        mask = self._masks.get(filters)
        if mask is None:
            mask = eligible(self._head.vertices, self._head.memories, filters=filters)
            # Replaced, never changed: other threads may be reading.
            self._masks = {**dict(list(self._masks.items())[1 - _KEPT_MASKS :]), filters: mask}
        return mask

    def rows(self, ids: Any) -> npt.NDArray[np.int64]:
        """Return the rows of these ids in ``nodes``, in the order given; unknown ids are left out.

        Args:
            ids: Strings, or an Arrow string array.
        """
        found = self._rows(ids)
        return found[found >= 0]

    def numbers(self, reference: pa.DictionaryArray) -> npt.NDArray[np.int32]:
        """Return the rows in ``nodes`` of the memories, or of the ids, that a reference column of this view names."""
        rows, target = parts(reference)
        if self._structs is not None and same_target(target, self._structs):
            return rows
        ids = ids_at(target, rows) if isinstance(target, pa.StructArray) else target.take(pa.array(rows))
        return self.rows(ids).astype(np.int32)

    def hydrate(self, ids: Any) -> pa.Table:
        """Return the memories of these ids, in the order given; unknown ids are left out."""
        return take(self.nodes, self.rows(ids))

    def holding(self, columns: Sequence[pa.DictionaryArray]) -> pa.Table:
        """Return references to at least the memories of these ids: to all where that saves copying them.

        Args:
            columns: ``node_id`` columns of this view's channels.
        """
        if len(self) <= _COPY_FROM:
            return references(self._refer(np.arange(len(self))))
        rows = [ids.indices.to_numpy() for ids in columns if len(ids)]
        return references(self._refer(np.unique(np.concatenate(rows)) if rows else np.empty(0, np.int32)))

    def vector(self, query: npt.NDArray[np.float32], *, k: int, eligible: Mask) -> pa.Table:
        """Return the nearest memories by exact cosine (RFC-0005 §4.2).

        Args:
            query: The question's unit vector, shape (dimension,).
            k: Most rows to return.
            eligible: Mask of the request.

        Raises:
            InvalidRequest: the question has another shape or is not finite.
        """
        ids = self._head.memory_ids
        return self._channel(*self._head.vectors.search(query, k=k, allowed=eligible.rows, ids=ids))

    def lexical(self, query: str, *, k: int, eligible: Mask) -> pa.Table:
        """Return the best memories by BM25 for the words of ``query``, plain text (RFC-0005 §4.3)."""
        allowed = None if eligible.whole else eligible.rows
        return self._channel(*self._head.lexical.search(query, k=k, allowed=allowed, ids=self._tie_break()))

    def channel_of(self, rows: npt.NDArray[np.int32], signals: Any) -> pa.Table:
        """Return a channel's answer that another process gave as rows of this very view, best first."""
        return self._channel(rows, signals)

    def has_words_of(self, text: str, *, question: str) -> bool:
        """Return whether every term of ``text`` is a term of ``question``."""
        return set(query_terms(question)).issuperset(query_terms(text))

    def graph(
        self,
        names: Sequence[str],
        *,
        hops: int,
        k: int,
        min_confidence: float,
        eligible: Mask,
        at: datetime | None = None,
    ) -> pa.Table:
        """Return the memories within reach of the named entities (RFC-0005 §4.1, decision 5).

        Args:
            names: Names in the question.
            hops: Longest path, 1 to 3.
            k: Most rows to return, cut by (-confidence, -creation, id).
            min_confidence: Least confidence of an edge on a path.
            eligible: Mask of the request; it holds for every memory on a path.
            at: Instant at which edges must be valid; the filters' own when ``None``.

        Raises:
            InvalidRequest: ``hops`` is out of range.
        """
        vertices, proximity = self._graph.search(
            names, hops=hops, k=k, min_confidence=min_confidence, eligible=eligible, at=at
        )
        return self._channel(self._head.vertices["row"][vertices], proximity)

    def pinned(self, *, limit: int, eligible: Mask) -> pa.Table:
        """Return pins, then tasks, then intents, each newest first and at most ``limit`` (decision 9).

        A pin has the flag or a salience of 1. Only tentative and stable memories are looked up.
        """
        head = self._head
        if self._groups is None:
            self._groups = _pin_groups(head)
        found: list[int] = []
        for group in self._groups:
            rows = group[eligible.rows[group]]
            newest = -head.vertices["created"][head.memories[rows]]
            found.extend(rows[ordered(rows, [newest], ids=head.memory_ids, limit=limit)].tolist())
        if not found:
            return no_hits()
        rows = np.array(list(dict.fromkeys(found)), np.int64)
        return self._channel(rows, np.ones(len(rows)))

    def session_windows(self, triggers: pa.Table, *, window: int, eligible: Mask) -> pa.Table:
        """Return the neighbours of each trigger in its session and scope (digest a §3.5).

        Args:
            triggers: Column ``trigger_id``; session and scope are the memory's own.
            window: Places to each side, counted among eligible memories by (creation, id).
            eligible: Mask of the request.

        Returns:
            A ``SESSION_WINDOW`` table: trigger by trigger, earliest first, offset 0 left out.
        """
        head = self._head
        if self._sessions is None:
            columns = head.vertices
            self._sessions = SessionOrder(
                columns["partition"][head.memories], columns["created"][head.memories], ids=head.memory_ids
            )
        names = column(triggers, "trigger_id")
        found = self._rows(names)
        known = np.flatnonzero(found >= 0)
        which, rows, offsets = self._sessions.windows(found[known], window=window, allowed=eligible.rows)
        listed = names.to_pylist()
        trigger = pa.array([listed[place] for place in known[which].tolist()], pa.string())
        neighbours = self._refer(rows)
        return pa.Table.from_arrays([neighbours, trigger, pa.array(offsets, pa.int32())], schema=SESSION_WINDOW)

    def counts(self) -> dict[str, int]:
        """Return what each channel holds: memories, structural nodes, edges, vectors, documents."""
        head = self._head
        return {
            "nodes": len(self),
            "structural": len(head.vertices["row"]) - len(self),
            "edges": len(head.edges["source"]),
            "vectors": head.vectors.count(),
            "documents": head.lexical.documents,
        }

    def contradictions(self, ids: Any) -> dict[str, str]:
        """Return, for each contested memory among ``ids``, the one that contradicts it, if any."""
        head = self._head
        found: dict[str, str] = {}
        for vertex in head.memories[self.rows(ids)].tolist():
            other = self._graph.counterpart(vertex) if head.vertices["lifecycle"][vertex] == _CONTESTED else None
            if other is not None:
                found[head.ids[vertex]] = head.ids[other]
        return found

    def entity_types(self, names: Sequence[str], *, eligible: Mask) -> dict[str, str]:
        """Return the types of the names that entities say one for, letter case aside (decision 10).

        Of several entities of one name the most confident decides, then the newest, then the smallest id.
        """
        head = self._head
        found: dict[str, str] = {}
        for name in names:
            said = [
                (-head.vertices["confidence"][vertex], -head.vertices["created"][vertex], head.ids[vertex], kind)
                for vertex, kind in head.entity_types.get(fold_name(name).strip(), ())
                # A vertex at or past the count was admitted after this view.
                if vertex < len(eligible.carriers) and eligible.carriers[vertex]
            ]
            if said:
                found[name] = min(said)[-1]
        return found

    def _tie_break(self) -> Sequence[str] | npt.NDArray[np.int64]:
        """Return what orders rows as their ids do: for a small owner numbers, worked out once a view."""
        if len(self) > _COPY_FROM:
            return self._head.memory_ids
        if self._id_places is None:
            ids = self._head.memory_ids
            places = np.empty(len(self), np.int64)
            places[sorted(range(len(self)), key=ids.__getitem__)] = np.arange(len(self))
            self._id_places = places
        return self._id_places

    def _rows(self, ids: Any) -> npt.NDArray[np.int64]:
        """Return the row of each id, -1 for what is no memory of the view."""
        names = ids.to_pylist() if isinstance(ids, pa.Array | pa.ChunkedArray) else list(ids)
        known, count = self._head.vertex_of, len(self._head.vertices["row"])
        vertices = np.array([known.get(name, count) for name in names], np.int64)
        # A vertex at or past the count was admitted after this view.
        return np.append(self._head.vertices["row"], -1)[np.minimum(vertices, count)]

    def _refer(self, rows: npt.NDArray[np.int64]) -> pa.DictionaryArray:
        """Return references to memories: to all of a small owner's, to a copy of these of a large one's."""
        if len(self) <= _COPY_FROM:
            if self._structs is None:
                self._structs = target_of(self.nodes)
            return refer(self._structs, rows)
        each, number = np.unique(rows, return_inverse=True)
        return refer(self.nodes.take(pa.array(each)), number)

    def _channel(self, rows: npt.NDArray[Any], signals: Any) -> pa.Table:
        return channel(referring(rows, column(self.nodes, "node_id")), signals)


def _pin_groups(head: Head) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the rows of pins, tasks and intents that may be looked up."""
    columns = head.vertices
    live = np.isin(columns["lifecycle"][head.memories], _PINNABLE)
    kinds = columns["node_type"][head.memories]
    groups = (columns["pinned"][head.memories], kinds == code(NodeType.TASK), kinds == code(NodeType.INTENT))
    return tuple(rows for rows in (np.flatnonzero(live & group) for group in groups) if len(rows))
