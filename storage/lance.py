"""One LanceDB table that follows the log: how far it got, atomic adds, safe reads, clean-up.

The log is the truth and the table a projection of it. Entries are applied in the order of their
sequence numbers, and one add is one atomic version of the table, so a table always holds exactly
the rows of *some* prefix of the log, whatever instant its writer was killed at.

Position: the last entry applied, which is the largest ``seq`` in the table. Where the last entries of
a batch make no row here (an edge, for the node table), the same add brings a *marker*: a row of owner
0, whom no entry belongs to, with the last ``seq`` and nothing else. So the position is always true,
in a folder as in an object store, and needs no file beside the table.

Two writers: where a table is on a URI, a writer that was cut off may finish an add that it had begun
before its successor came. Such an add is a piece of the log like any other, so it can only bring rows
a second time. Reads leave the second ones out; :meth:`Projection.follow` removes them.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np
import pyarrow as pa

from prme_ray.model.errors import ReadOnlyStore, StoreBusy, StoreCorrupt
from storage.records import EntryKind, LogRow
from storage.table_place import TABLE, TablePlace
from storage.table_rows import NO_OWNER, bounds, difference, distinct, marker, owned

__all__ = ["Projection"]

T = TypeVar("T")

_FORMER_POSITION = "position.json"  # until 2026-10 the position was in this file beside the table
_INDEX_ROWS = 50_000  # from here a bitmap on owner pays: 64 ms against 330 ms at 100,000 rows
_SUPERSEDED = timedelta(milliseconds=1)  # zero would do the same and warn
_READ_ATTEMPTS = 8
_REMOVED_AT_ONCE = 10_000

_log = logging.getLogger(__name__)


class Projection(ABC):
    """Base of the node and the edge table; see :mod:`storage.tables`.

    One handle may be used by several threads; ``append``, ``follow`` and ``compact`` by one at a time.
    A handle belongs to the process that opened it: give other processes the place.

    Attributes:
        place: Where the table is.
        schema: Arrow schema of the rows, ``seq`` and ``owner`` first.
        read_only: Whether another process may be writing.
    """

    kind: ClassVar[EntryKind]
    """The entries that make rows here."""

    def __init__(self, place: str | os.PathLike[str] | TablePlace, schema: pa.Schema, *, read_only: bool) -> None:
        self.place = place if isinstance(place, TablePlace) else TablePlace.of(place)
        self.schema = schema
        self.read_only = read_only
        self._table: Any = None  # None: there is none, or it was deleted
        self._seen: tuple[tuple[int, int], int] = ((-1, 0), 0)  # table version and rows, its largest seq
        self._size = 0  # rows this writer knows of, markers included
        self._certain = False  # whether they are all; only ``follow`` makes it so
        self._open()
        self._position = self._read(self._largest, 0)

    @classmethod
    @abstractmethod
    def batch(cls, rows: Sequence[LogRow], schema: pa.Schema) -> pa.Table:
        """Return the table rows of log entries that are all of ``kind``.

        Raises:
            StoreCorrupt: an entry does not fit the schema.
        """

    # -- opening

    def _open(self) -> None:
        if self.read_only and self.place.is_missing():
            return  # connecting would create the folder
        try:
            # A writer knows its own newest version; ``follow`` looks for those of others.
            database = self.place.connect(fresh=self.read_only)
            try:
                table = database.open_table(TABLE)
            except ValueError:  # not there, or its creation was cut short
                if self.read_only:
                    return
                table = database.create_table(TABLE, schema=self.schema, exist_ok=True)
            wrong = difference(table.schema, self.schema)
            if wrong and not self.read_only and not table.count_rows(f"owner > {NO_OWNER}"):
                # Created for another encoder, then never used.
                table = database.create_table(TABLE, schema=self.schema, mode="overwrite")
                wrong = None
        except (RuntimeError, OSError, ValueError) as error:
            self._corrupt(f"the table cannot be opened ({_first_line(error)})", error)
        if wrong:
            self._corrupt(wrong)
        if not self.read_only and self.place.folder is not None:
            (self.place.folder / _FORMER_POSITION).unlink(missing_ok=True)
        self._table = table

    def _corrupt(self, detail: str, cause: BaseException | None = None) -> NoReturn:
        hint = "delete what is here while no writer is open: it is rebuilt from the log at the next open"
        raise StoreCorrupt(path=self.place.uri, detail=f"{detail}; {hint}") from cause

    def _read(self, query: Callable[[Any], T], nothing: T) -> T:
        """Run ``query`` on the table; again when clean-up took away the version it was reading.

        Where there is no table the answer is ``nothing``; one that disappears meanwhile is an error,
        because the caller may just have been told how much it held.
        """
        if self._table is None and self.read_only:
            self._open()
        table = self._table
        if table is None:
            return nothing
        for _ in range(_READ_ATTEMPTS):
            before = None
            try:
                before = table.version
                return query(table)
            except (RuntimeError, OSError) as error:
                if not self._was_replaced(table, before):
                    self._corrupt(f"the table cannot be read ({_first_line(error)})", error)
        raise self._busy(f"was compacted {_READ_ATTEMPTS} times during one read")

    def _was_replaced(self, table: Any, before: int | None) -> bool:
        try:
            table.checkout_latest()
            return bool(table.version != before)
        except (RuntimeError, OSError):
            if self._is_gone():
                self._table = None
                raise self._busy("was deleted, and is being rebuilt from the log") from None
            return False

    def _is_gone(self) -> bool:
        try:
            return not self.place.holds_table()
        except (RuntimeError, OSError):
            return False  # nobody can say: the caller reports what it met

    def _busy(self, what: str) -> StoreBusy:
        return StoreBusy(what=f"{self.place.uri}, which {what},", waited_s=0.0)

    # -- position

    @property
    def position(self) -> int:
        """Largest sequence number applied, 0 for none."""
        if self.read_only:
            return self._read(self._largest, 0)
        return 0 if self._table is None else self._position

    def _largest(self, table: Any) -> int:
        from lancedb.query import ColumnOrdering

        version = (table.version, table.count_rows())  # a table made anew counts its versions again
        if self._seen[0] != version:
            newest = [ColumnOrdering(column_name="seq", ascending=False)]
            found = table.search().select(["seq"]).order_by(newest).limit(1).to_arrow()
            self._seen = (version, found["seq"][0].as_py() if found.num_rows else 0)
        return self._seen[1]

    # -- writing

    def follow(self) -> int:
        """Take in what the table has become, before writing; return how many second rows were removed.

        Nothing changes a table but its writer, so this is cheap and finds what was expected, unless an
        add raised (it may have been committed all the same), a writer that was cut off finished one, or
        the table was deleted: it is then made again, empty, and ``position`` is 0.

        Raises:
            ReadOnlyStore: the table was opened for reading.
            StoreCorrupt: the table cannot be read.
            RuntimeError: LanceDB could not write.
        """
        self._check_writable()
        self.refresh()
        if self._table is None:
            _log.warning("%s was deleted: making it again from the log", self.place.uri)
            self._open()
            self._certain = False
        if self._certain and self._table.count_rows() == self._size:
            return 0
        # An add of our own that raised brings nothing twice, and the lock of a folder keeps others out; to
        # look for nothing costs 40 ms for 100,000 rows.
        removed = self._remove_second_rows() if self.place.shared or self._certain else 0
        self._certain = False
        self._size = self._table.count_rows()
        self._position = self._read(self._largest, 0)
        self._certain = True
        return removed

    def _remove_second_rows(self) -> int:
        found = self._read(lambda table: table.search().with_row_id(True).select(["seq"]).to_arrow(), None)
        seqs, places = found["seq"].to_numpy(), found["_rowid"].to_numpy()
        order = np.lexsort((places, seqs))  # whoever does this removes the same rows
        second = places[order[1:][seqs[order[1:]] == seqs[order[:-1]]]].tolist()
        for first in range(0, len(second), _REMOVED_AT_ONCE):
            chosen = ", ".join(map(str, second[first : first + _REMOVED_AT_ONCE]))
            self._table.delete(f"_rowid IN ({chosen})")
        if second:
            _log.warning("%s: removed %d rows that another writer had added again", self.place.uri, len(second))
        return len(second)

    def append(self, rows: Sequence[LogRow]) -> int:
        """Apply log entries in one add, and return how many rows they made.

        Entries up to ``position`` are skipped, so applying a batch twice changes nothing. Entries that
        do not join on to ``position`` are not applied, because the table would have a hole.

        Args:
            rows: Entries of any kind in order of ``seq``, with none left out.

        Raises:
            ReadOnlyStore: the table was opened for reading.
            StoreCorrupt: an entry does not fit the table.
            RuntimeError: LanceDB could not write; the same entries may be given again.
        """
        self._check_writable()
        if not self._certain:
            self.follow()
        fresh = [row for row in rows if row.seq > self._position]
        if not fresh or fresh[0].seq != self._position + 1:
            return 0
        mine = [row for row in fresh if row.kind == self.kind]
        batch = self.batch(mine, self.schema)
        if not mine or mine[-1].seq != fresh[-1].seq:
            batch = pa.concat_tables([batch, marker(fresh[-1].seq, self.schema)])
        self._certain = False  # an add that raises may have been committed all the same
        self._table.add(batch)
        self._size += batch.num_rows
        self._position = fresh[-1].seq
        self._certain = True  # ``follow`` will see whether another writer added meanwhile
        return len(mine)

    def compact(self) -> None:
        """Merge small files into one and remove every version but the newest, and markers but the last.

        In a folder, what a killed writer left half done is removed too: the shard's lock makes sure
        that nobody is just writing it. On a URI nothing does, so there it stays for the seven days that
        LanceDB asks for. A large table gets a bitmap index on ``owner``. Readers, of this and of other
        processes, go on: a read whose version disappears starts again on the newest.

        Raises:
            ReadOnlyStore: the table was opened for reading.
            RuntimeError: LanceDB could not write; the rows are unchanged.
        """
        self._check_writable()
        if not self._certain:
            self.follow()
        markers = f"owner = {NO_OWNER} AND seq < {self._position}"
        if self._table.count_rows(markers):
            self._certain = False
            self._size -= self._table.delete(markers).num_deleted_rows
            self._certain = True
        if self._size >= _INDEX_ROWS and not self._table.list_indices():
            from lancedb.index import Bitmap

            self._table.create_index("owner", config=Bitmap())
        self._table.optimize(cleanup_older_than=_SUPERSEDED, delete_unverified=not self.place.shared)
        _log.debug("compacted %s: %d rows", self.place.uri, self._size)

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyStore(path=self.place.uri)

    # -- reading

    def load(self, owner_no: int, *, upto: int | None = None, without: Sequence[str] = ()) -> pa.Table:
        """Return the rows of one owner in order of ``seq``, every column in one chunk.

        Args:
            owner_no: Number of the owner.
            upto: Largest sequence number to include; ``None``: all there are.
            without: Columns to leave on disk.

        Returns:
            ``schema`` without ``owner`` and those columns.

        Raises:
            StoreBusy: the table no longer reaches ``upto``: it was deleted and is being rebuilt.
        """
        columns = [name for name in self.schema.names if name not in ("owner", *without)]
        schema = pa.schema([self.schema.field(name) for name in columns])
        where = owned(owner_no, upto)
        found = self._read(
            lambda table: table.search().where(where).select(columns).to_arrow(), schema.empty_table()
        ).combine_chunks()
        self._check_reaches(upto)
        seqs = found["seq"].to_numpy()
        # Files are written and merged in order of seq; sorting 10,000 rows costs 20 ms, looking 0.01.
        return found if bool((seqs[1:] > seqs[:-1]).all()) else distinct(found).combine_chunks()

    def _check_reaches(self, upto: int | None) -> None:
        # Looked at after the read: before it, the table could be deleted in between.
        if upto is not None and self.position < upto:
            raise self._busy(f"holds entries up to {self.position} only where {upto} were there before")

    def count(self, *, upto: int | None = None, owner_no: int | None = None) -> int:
        """Return the number of rows, of one owner or of all, up to a sequence number."""
        where = " AND ".join(bounds(upto, owner_no) + ([f"owner > {NO_OWNER}"] if owner_no is None else []))
        return int(self._read(lambda table: table.count_rows(where), 0))

    def size(self) -> int:
        """Return the number of rows with the few that are no entry's: nothing is read for it."""
        return int(self._read(lambda table: table.count_rows(), 0))

    def fragments(self) -> int:
        """Return the number of data files that a scan has to open."""
        return int(self._read(lambda table: table.stats()["fragment_stats"]["num_fragments"], 0))

    def files(self) -> int | None:
        """Return the number of files of the table, or ``None`` where only the object store knows."""
        return self.place.files()

    def refresh(self) -> None:
        """Look at the newest version now. Read-only handles do before every read anyway."""
        try:
            self._read(lambda table: table.checkout_latest(), None)
        except StoreBusy:
            if self._table is not None:
                raise
            # Deleted: found before anybody was told what it held, so it simply holds nothing.

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} belongs to one process; open {self.place.uri!r} in the other")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
