"""Rolling digests of what an owner's indexes were made from (decision 21).

Two processes, or two days, whose digests are equal search the same texts and the same graph. Rows go
in one by one and in admission order, so that a digest does not depend on how writes were batched, on
which edges had to wait for their ends, or on whether the owner came from the tables or from the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.tables import codes, floats, texts, times
from storage.analyzer import ANALYZER_ID
from storage.parts import Part

__all__ = ["Digests", "RollingDigests"]

_TEXT_PARTS = frozenset({Part.TEXT, Part.RECORDS})
"""With either a process has the texts of the memories."""

_VERTEX = np.dtype(
    [
        ("structural", "u1"),
        ("scope", "i1"),
        ("node_type", "i1"),
        ("lifecycle", "i1"),
        ("confidence", "<f8"),
        ("created", "<i8"),
        ("valid_from", "<i8"),
        ("valid_to", "<i8"),
        ("happened", "<i8"),
    ]
)
"""What a traversal reads of a vertex, beside its id and an entity's name."""

_EDGE = np.dtype(
    [("edge_type", "i1"), ("confidence", "<f8"), ("created", "<i8"), ("valid_from", "<i8"), ("valid_to", "<i8")]
)
"""What a traversal reads of an edge, beside its id and its ends."""


@dataclass(frozen=True, slots=True)
class Digests:
    """The digests at one sequence number, worked out when they are asked for.

    Attributes:
        texts: State of the hash over the memories' texts; ``None`` where a process has none.
        graph: States of the hashes over vertices and edges; empty where a process has none.
    """

    texts: Any
    graph: tuple[Any, ...]

    def lexical(self) -> str | None:
        """Return the SHA-256 over (id, text) of every indexed memory and the analyzer's name."""
        return None if self.texts is None else str(self.texts.hexdigest())

    def graphs(self) -> str | None:
        """Return the SHA-256 over every vertex and every edge."""
        if not self.graph:
            return None
        return hashlib.sha256(b"".join(one.digest() for one in self.graph)).hexdigest()


class RollingDigests:
    """The growing side of :class:`Digests`.

    Args:
        parts: What the process keeps of its owners.
    """

    def __init__(self, parts: frozenset[Part]) -> None:
        self._texts = hashlib.sha256(ANALYZER_ID.encode()) if parts & _TEXT_PARTS else None
        # Facts and names of vertices, facts and names of edges: columns of numbers are hashed as one block.
        self._graph = tuple(hashlib.sha256() for _ in range(4)) if Part.EDGES in parts else ()

    def add_memories(self, ids: Sequence[str], contents: Sequence[str]) -> None:
        """Add memories; blank ones are in no index."""
        if self._texts is not None:
            pairs = zip(ids, contents, strict=True)
            # Lengths go before the parts, so that no two lists of them are spelled the same; here and below.
            rows = [f"{len(name)}:{name}{len(text)}:{text}" for name, text in pairs if text.strip()]
            self._texts.update("".join(rows).encode())

    def add_vertices(
        self, ids: Sequence[str], facts: Mapping[str, npt.NDArray[Any]], entities: Mapping[int, str]
    ) -> None:
        """Add nodes, structural ones included.

        Args:
            ids: Their ids.
            facts: Columns of ``_VERTEX``.
            entities: Folded name of each entity, by position among ``ids``.
        """
        if self._graph:
            self._graph[0].update(_block(_VERTEX, facts, len(ids)))
            rows = [f"{len(name)}:{name}0:" for name in ids]
            for at, text in entities.items():
                rows[at] = f"{len(ids[at])}:{ids[at]}{len(text)}:{text}"
            self._graph[1].update("".join(rows).encode())

    def add_edges(self, table: pa.Table) -> None:
        """Add edges as they were admitted, those that wait for an end too."""
        if self._graph and table.num_rows:
            facts: dict[str, npt.NDArray[Any]] = {
                "edge_type": codes(table, "edge_type"),
                "confidence": floats(table, "confidence"),
                "created": times(table, "created_at"),
                "valid_from": times(table, "valid_from"),
                "valid_to": times(table, "valid_to"),
            }
            names = zip(*(texts(table, name) for name in ("edge_id", "source_id", "target_id")), strict=True)
            rows = [f"{len(one)}:{one}{len(start)}:{start}{len(end)}:{end}" for one, start, end in names]
            self._graph[2].update(_block(_EDGE, facts, table.num_rows))
            self._graph[3].update("".join(rows).encode())

    def freeze(self) -> Digests:
        """Return the digests so far."""
        texts = None if self._texts is None else self._texts.copy()
        return Digests(texts, tuple(one.copy() for one in self._graph))


def _block(kind: np.dtype[Any], facts: Mapping[str, npt.NDArray[Any]], rows: int) -> bytes:
    block = np.empty(rows, kind)
    for name in kind.names or ():
        block[name] = facts[name]
    return block.tobytes()
