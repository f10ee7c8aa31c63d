"""Memories within reach of a question's names in an owner's graph (RFC-0005 §4.1, decision 5).

Vertices are all of the owner's nodes, structural hubs included, in admission order; edges count in
both directions whatever their type. Distances are exact, so the answer has no visiting order to
depend on: any order of the edges, the id order of decision 4 included, gives the same one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import igraph
import numpy as np
import numpy.typing as npt

from prme_ray.model.enums import EdgeType, code
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.times import micros
from storage.eligibility import Mask
from storage.ordering import ordered

__all__ = ["MAX_SEEDS", "PROXIMITY", "OwnerGraph", "fold_name"]

PROXIMITY = (1.0, 0.7, 0.4)
"""Signal of a memory one, two or three hops from the nearest seed."""

MAX_SEEDS = 100
"""Entities a search starts from."""

_KEPT_GRAPHS = 4
_CONTRADICTS = code(EdgeType.CONTRADICTS)


def fold_name(text: str) -> str:
    """Return ``text`` as names are compared: composed, without case."""
    return text.casefold() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


class OwnerGraph:
    """An owner's graph at one sequence number.

    Args:
        vertices: Columns ``structural``, ``created`` and ``confidence`` by vertex.
        edges: Columns ``source``, ``target`` (vertices), ``edge_type``, ``confidence``, ``created``,
            ``valid_from`` and ``valid_to`` (largest integer: open) by edge; times in microseconds.
        ids: Id of every vertex.
        edge_ids: Id of every edge.
        entities: Vertex and folded content of every entity, hubs included.
    """

    def __init__(
        self,
        vertices: Mapping[str, npt.NDArray[Any]],
        edges: Mapping[str, npt.NDArray[Any]],
        *,
        ids: Sequence[str],
        edge_ids: Sequence[str],
        entities: Sequence[tuple[int, str]],
    ) -> None:
        self._vertices = vertices
        self._edges = edges
        self._ids = ids
        self._edge_ids = edge_ids
        self._entities = entities
        self._graphs: dict[bytes, Any] = {}
        self._counterparts: dict[int, int] | None = None

    def search(
        self,
        names: Sequence[str],
        *,
        hops: int,
        k: int,
        min_confidence: float,
        eligible: Mask,
        at: datetime | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return vertices and proximities, ordered by (-confidence, -creation, id) and cut at ``k``.

        Every vertex of a path is eligible, or an active hub; every edge of it has at least
        ``min_confidence``, is valid at ``at`` and was known by the request's ``knowledge_at``. Hubs are
        never returned; a seed only when another seed reaches it.

        Args:
            names: Names in the question.
            hops: Longest path, 1 to 3.
            k: Most vertices to return; 0 or less returns none.
            min_confidence: Least confidence of an edge.
            eligible: Mask of the request.
            at: Instant at which edges must be valid; the filters' own when ``None``.

        Raises:
            InvalidRequest: ``hops`` is out of range.
        """
        if not 1 <= hops <= len(PROXIMITY):
            raise InvalidRequest(argument="hops", given=hops, allowed=f"1 to {len(PROXIMITY)}")
        seeds = self.seeds(names, eligible=eligible) if k > 0 else np.empty(0, np.int64)
        if not len(seeds):
            return np.empty(0, np.int64), np.empty(0, np.float64)
        graph = self._usable(min_confidence, eligible, eligible.filters.at if at is None else at)
        signal = np.zeros(len(self._vertices["created"]))
        starts = seeds.tolist()
        for hop, proximity in enumerate(PROXIMITY[:hops], start=1):
            rings = graph.neighborhood(vertices=starts, order=hop, mindist=hop)
            ring = np.fromiter(chain.from_iterable(rings), np.int64)
            signal[ring[signal[ring] == 0.0]] = proximity
        found = np.flatnonzero((signal > 0.0) & eligible.carriers & ~self._vertices["structural"])
        keys = [-self._vertices["confidence"][found], -self._vertices["created"][found]]
        found = found[ordered(found, keys, ids=self._ids, limit=k)]
        return found, signal[found]

    def seeds(self, names: Sequence[str], *, eligible: Mask) -> npt.NDArray[np.int64]:
        """Return the entities whose content has one of ``names`` in it, newest first, at most 100."""
        wanted = [folded for folded in map(fold_name, names) if folded.strip()]
        named = [vertex for vertex, text in self._entities if any(name in text for name in wanted)]
        vertices = np.array(named, np.int64)
        vertices = vertices[eligible.carriers[vertices]]
        newest = -self._vertices["created"][vertices]
        return vertices[ordered(vertices, [newest], ids=self._ids, limit=MAX_SEEDS)]

    def counterpart(self, vertex: int) -> int | None:
        """Return the memory that contradicts this one (digest a §0, step 5b).

        Outgoing edges before incoming ones, then the newest edge, then the edge's id.
        """
        if self._counterparts is None:
            self._counterparts = self._contradictions()
        return self._counterparts.get(vertex)

    def _contradictions(self) -> dict[int, int]:
        edges, structural = self._edges, self._vertices["structural"]
        best: dict[int, tuple[tuple[bool, int, str], int]] = {}
        for edge in np.flatnonzero(edges["edge_type"] == _CONTRADICTS).tolist():
            source, target = int(edges["source"][edge]), int(edges["target"][edge])
            newest, name = -int(edges["created"][edge]), self._edge_ids[edge]
            for vertex, other, incoming in ((source, target, False), (target, source, True)):
                if vertex == other or structural[other]:
                    continue
                entry = ((incoming, newest, name), other)
                if vertex not in best or entry < best[vertex]:
                    best[vertex] = entry
        return {vertex: other for vertex, (_, other) in best.items()}

    def _usable(self, min_confidence: float, eligible: Mask, at: datetime | None) -> Any:
        """Return the graph of the edges a request may follow; recent ones are kept."""
        edges, carriers = self._edges, eligible.carriers
        usable = (edges["confidence"] >= min_confidence) & carriers[edges["source"]] & carriers[edges["target"]]
        if at is not None:
            moment = micros(at)
            usable &= (edges["valid_from"] <= moment) & (moment < edges["valid_to"])
        if eligible.filters.knowledge_at is not None:
            usable &= edges["created"] <= micros(eligible.filters.knowledge_at)
        key = np.packbits(usable).tobytes()
        graph = self._graphs.get(key)
        if graph is None:
            pairs = zip(edges["source"][usable].tolist(), edges["target"][usable].tolist(), strict=True)
            graph = igraph.Graph(n=len(carriers), edges=pairs)
            # Replaced, never changed: other threads may be reading.
            self._graphs = {**dict(list(self._graphs.items())[1 - _KEPT_GRAPHS :]), key: graph}
        return graph
