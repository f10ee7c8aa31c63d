"""Makes an owner's state from a shard's tables and log: the newest one, or the one at an earlier number.

An owner's state at a number is the fold of the log up to it. The tables hold the same rows up to their
position and are faster to read, so they give the first part where they have the vectors asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from prme_ray.model.errors import StoreCorrupt
from storage.log import Log
from storage.owner_state import OwnerState
from storage.parts import Part
from storage.tables import EdgeTable, NodeTable

__all__ = ["OwnerLoader"]


class OwnerLoader:
    """Loads owners of one shard.

    Args:
        log: The shard's log.
        nodes: Its node table.
        edges: Its edge table.
        parts: What is kept of the owners in memory.
        dimension: Length of the vectors in the node table.
        table_generation: Returns the encoder generation of the vectors in the node table.
    """

    def __init__(
        self,
        log: Log,
        nodes: NodeTable,
        edges: EdgeTable,
        *,
        parts: frozenset[Part],
        dimension: int,
        table_generation: Callable[[], int],
    ) -> None:
        self._log = log
        self._nodes = nodes
        self._edges = edges
        self._parts = parts
        self._dimension = dimension
        self._table_generation = table_generation

    def newest(
        self, owner_no: int, *, generation: int, vector_bytes: int, lexical_dir: Callable[[int], Path | None]
    ) -> OwnerState:
        """Return the state at the end of the log, as it was read.

        Args:
            owner_no: The owner.
            generation: Encoder generation of the vectors.
            vector_bytes: Most bytes of vectors to keep in memory; beyond, the node table is searched.
            lexical_dir: Returns the folder of the text index for a number of memories; ``None``: in memory.

        Raises:
            StoreBusy, StoreCorrupt: the tables or the log cannot be read.
        """
        return self._load(owner_no, None, generation, vector_bytes, lexical_dir)

    def at(self, owner_no: int, owner_seq: int, *, generation: int, vector_bytes: int) -> OwnerState:
        """Return the state at a number of the owner's, whose text index is always in memory.

        Args:
            owner_no: The owner.
            owner_seq: The number, which the log has; 0 is the state before everything.
            generation: Encoder generation of the vectors, which the log has.
            vector_bytes: As of :meth:`newest`.

        Raises:
            StoreBusy, StoreCorrupt: the tables or the log cannot be read.
        """
        seq = 0 if owner_seq == 0 else self._log.seq_of(owner_no, owner_seq)
        if seq is None:
            raise StoreCorrupt(path=self._log.path, detail=f"entry {owner_seq} of owner {owner_no} is missing")
        return self._load(owner_no, seq, generation, vector_bytes, lambda memories: None)

    def follow(self, state: OwnerState, *, generation: int, limit: int | None = None) -> None:
        """Fold in the log's entries after those of a state, at most so many."""
        vectors = generation if Part.VECTORS in self._parts else None
        state.apply(self._log.read(after=state.seq, owner_no=state.owner_no, generation=vectors, limit=limit))

    def _load(
        self,
        owner_no: int,
        seq: int | None,
        generation: int,
        vector_bytes: int,
        lexical_dir: Callable[[int], Path | None],
    ) -> OwnerState:
        self._nodes.refresh()
        self._edges.refresh()
        position = min(self._nodes.position, self._edges.position)
        vectors = Part.VECTORS in self._parts
        in_table = not vectors or generation == self._table_generation()
        upto = 0 if not in_table else position if seq is None else min(position, seq)
        # Vectors are most of an owner's bytes: where they would not fit, the table searches them.
        on_disk = vectors and in_table and self._exceed(vector_bytes, owner_no, upto)
        without: Sequence[str] = [] if vectors and not on_disk else ["vector"]
        nodes = self._nodes.load(owner_no, upto=upto, without=without if in_table else [])
        state = OwnerState(
            owner_no,
            dimension=self._dimension_of(generation) if vectors else self._dimension,
            lexical_dir=lexical_dir(nodes.num_rows),
            table=self._nodes if on_disk else None,
            upto=upto,
            parts=self._parts,
        )
        loaded = self._log.last_of(owner_no, upto=upto)
        state.load(nodes, self._edges.load(owner_no, upto=upto), owner_seq=loaded.owner_seq, seq=loaded.seq)
        state.apply(self._log.read(after=upto, upto=seq, owner_no=owner_no, generation=generation if vectors else None))
        return state

    def _dimension_of(self, generation: int) -> int:
        if generation == self._table_generation():
            return self._dimension
        return next(found.dimension for found in self._log.generations() if found.generation == generation)

    def _exceed(self, budget: int, owner_no: int, upto: int) -> bool:
        size = 4 * self._dimension
        if self._nodes.count(upto=upto) * size <= budget:
            return False
        return self._nodes.count_with_vector(upto=upto, owner_no=owner_no) * size > budget
