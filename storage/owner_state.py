"""One owner in memory: a state that follows the log and hands out views.

::

    log entries ──► OwnerState ──► OwnerView ──► vector, lexical, graph, pinned, session windows

One writer applies, any number of threads read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from prme_ray.model.errors import InvalidRequest, StoreCorrupt
from storage.folded import Folded
from storage.lexical import LexicalIndex
from storage.parts import ALL_PARTS, Part
from storage.records import LogRow
from storage.tables import EDGE, EdgeTable, NodeTable, node_schema
from storage.view import OwnerView

__all__ = ["OwnerState"]

_PAST_VIEWS = 8
"""Views kept behind the newest: requests of several coordinators cross, none needs an old one for long."""


class OwnerState:
    """Follows one owner's log entries and hands out views.

    Args:
        owner_no: Number of the owner in the log.
        dimension: Length of a vector.
        lexical_dir: Folder for the text index of a large owner; ``None`` keeps it in memory.
        table: Node table that is searched for the vectors admitted up to ``upto``, for an owner whose
            vectors do not fit the memory budget; ``None`` keeps all vectors in memory.
        upto: Sequence number, for ``table``.
        parts: What is kept of the owner; the views answer only from those.
    """

    def __init__(
        self,
        owner_no: int,
        *,
        dimension: int,
        lexical_dir: Path | None = None,
        table: NodeTable | None = None,
        upto: int = 0,
        parts: frozenset[Part] = ALL_PARTS,
    ) -> None:
        self.owner_no = owner_no
        self._node_schema = node_schema(dimension)
        self._folded = Folded(dimension=dimension, table=table, owner_no=owner_no, upto=upto, parts=parts)
        self._lexical = LexicalIndex(lexical_dir)
        self._lock = threading.Lock()
        self._seq = 0
        self._owner_seq = 0
        self._unindexed: list[tuple[int, str, str]] = []
        self._unpublished = False
        self._broken = False
        self._closed = False
        self._past: deque[OwnerView] = deque(maxlen=_PAST_VIEWS)
        self._view = self._make_view()
        self._nbytes = self._folded.nbytes

    @property
    def seq(self) -> int:
        """Largest sequence number folded in."""
        return self._seq

    @property
    def owner_seq(self) -> int:
        """How many of the owner's entries are folded in, events included."""
        return self._owner_seq

    @property
    def nbytes(self) -> int:
        """Estimated bytes in memory."""
        return self._nbytes

    def load(self, nodes: pa.Table, edges: pa.Table, *, owner_seq: int, seq: int | None = None) -> None:
        """Fold in an owner's rows of the node and edge projections, in sequence order.

        The views follow with the next :meth:`apply` or :meth:`view`: a text index on disk may be ahead
        of the projections and is compared only when the log's tail has been applied too.

        Args:
            nodes: Columns of :func:`storage.tables.node_schema`.
            edges: Columns of :data:`storage.tables.EDGE`.
            owner_seq: The owner's own number of the last entry that both hold, as the log has it.
            seq: Number up to which both hold everything; the largest of their rows when ``None``.

        Raises:
            StoreCorrupt: a node comes twice, or the state is no longer usable.
        """
        with self._lock:
            last = [int(table.column("seq")[-1].as_py()) for table in (nodes, edges) if table.num_rows]
            self._fold(nodes, edges, seq=max([self._seq, *last]) if seq is None else seq, owner_seq=owner_seq)

    def apply(self, rows: Sequence[LogRow]) -> None:
        """Fold in log entries and publish the new view; on return every channel finds them.

        Entries at or below :attr:`seq` are already in and skipped; events change nothing but the
        number. A closed state takes in nothing: its owner has left memory.

        Raises:
            InvalidRequest: an entry is another owner's.
            StoreCorrupt: an entry cannot be read or a node comes twice, and nothing was folded in; or
                an earlier call failed half-way, and the state must be made anew from the log.
        """
        foreign = next((row for row in rows if row.owner_no != self.owner_no), None)
        if foreign is not None:
            raise InvalidRequest(
                argument="rows", given=f"owner {foreign.owner_no}", allowed=f"entries of owner {self.owner_no}"
            )
        with self._lock:
            if self._closed:
                return
            new = [row for row in rows if row.seq > self._seq]
            if new:
                nodes = _batch(NodeTable, new, self._node_schema)
                edges = _batch(EdgeTable, new, EDGE)
                self._fold(nodes, edges, seq=new[-1].seq, owner_seq=new[-1].owner_seq)
            self._publish()

    def view(self) -> OwnerView:
        """Return the newest view; the same object until something is applied."""
        if self._unpublished:
            with self._lock:
                self._publish()
        return self._view

    def view_at(self, owner_seq: int) -> OwnerView | None:
        """Return the view at that number of the owner's, ``None`` when it is not there yet or any more."""
        view = self.view()
        if view.owner_seq == owner_seq:
            return view
        with self._lock:
            return next((past for past in self._past if past.owner_seq == owner_seq), None)

    def release(self) -> None:
        """End the threads of the text index's writer; the next write starts them again."""
        with self._lock:
            self._lexical.release()

    def close(self) -> None:
        """Take in nothing more and let go of threads and files. Views handed out stay valid."""
        with self._lock:
            self._closed = True
            self._lexical.release()

    def _fold(self, nodes: pa.Table, edges: pa.Table, *, seq: int, owner_seq: int) -> None:
        self._check_whole()
        self._folded.check(nodes)
        self._broken = True
        if nodes.num_rows:
            self._unindexed.extend(self._folded.add_nodes(nodes))
        if nodes.num_rows or edges.num_rows:
            self._folded.add_edges(edges)
        self._seq = seq
        self._owner_seq = owner_seq
        self._unpublished = True
        self._broken = False

    def _publish(self) -> None:
        if not self._unpublished:
            return
        self._check_whole()
        self._broken = True
        self._lexical.extend(self._unindexed)
        self._unindexed = []
        self._past.append(self._view)
        self._view = self._make_view()
        self._nbytes = self._folded.nbytes
        self._unpublished = False
        self._broken = False

    def _check_whole(self) -> None:
        if self._broken:
            raise StoreCorrupt(
                path=f"owner {self.owner_no} in memory",
                detail="an earlier write was folded in only in part; load the owner from the log again",
            )

    def _make_view(self) -> OwnerView:
        lexical = self._lexical.freeze()
        return OwnerView(self._folded.head(seq=self._seq, owner_seq=self._owner_seq, lexical=lexical))


def _batch(table: type[NodeTable] | type[EdgeTable], rows: Sequence[LogRow], schema: pa.Schema) -> pa.Table:
    """Return the entries of a table's kind as its rows."""
    own = [row for row in rows if row.kind is table.kind]
    return table.batch(own, schema) if own else schema.empty_table()
