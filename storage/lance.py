"""One LanceDB table that follows the log: how far it got, atomic adds, safe reads, clean-up.

The log is the truth and the table a projection of it. Entries are applied in the order of their
sequence numbers, and one add is one atomic version of the table, so a table always holds exactly
the rows of *some* prefix of the log, whatever instant its writer was killed at.

Position: the last entry applied. It is the largest ``seq`` in the table, unless later entries made
no row here (an edge, for the node table); a small file beside the table then remembers more. The
file also states how many rows the table had, so it is believed only by a table that has not lost
any: forgetting it costs reading some entries again, never a row.
"""

from __future__ import annotations

import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, NoReturn, TypeVar

import pyarrow as pa

from prme_ray.model.errors import ReadOnlyStore, StoreBusy, StoreCorrupt
from storage.records import EntryKind, LogRow

__all__ = ["Projection"]

T = TypeVar("T")

_NAME = "rows"
_POSITION = "position.json"
_INDEX_ROWS = 50_000  # from here a bitmap on owner pays: 64 ms against 330 ms at 100,000 rows
_SUPERSEDED = timedelta(milliseconds=1)  # zero would do the same and warn
_READ_ATTEMPTS = 8

_log = logging.getLogger(__name__)


class Projection(ABC):
    """Base of the node and the edge table; see :mod:`storage.tables`.

    One handle may be used by several threads; ``append`` and ``compact`` by one at a time. A handle
    belongs to the process that opened it: give other processes the path.

    Attributes:
        path: Folder of the table.
        schema: Arrow schema of the rows, ``seq`` and ``owner`` first.
        read_only: Whether another process may be writing.
    """

    kind: ClassVar[EntryKind]
    """The entries that make rows here."""

    def __init__(self, path: str | os.PathLike[str], schema: pa.Schema, *, read_only: bool) -> None:
        self.path = Path(path)
        self.schema = schema
        self.read_only = read_only
        self._table: Any = None
        self._seen: tuple[int, int] = (-1, 0)  # table version, its largest seq
        self._open()
        self._synchronise()

    def _synchronise(self) -> None:
        self._rows = self.count()
        self._position = self._measure()
        self._certain = True

    @classmethod
    @abstractmethod
    def batch(cls, rows: Sequence[LogRow], schema: pa.Schema) -> pa.Table:
        """Return the table rows of log entries that are all of ``kind``.

        Raises:
            StoreCorrupt: an entry does not fit the schema.
        """

    # -- opening

    def _open(self) -> None:
        import lancedb

        if self.read_only and not self.path.is_dir():
            return  # connecting would create the folder
        fresh = timedelta(0) if self.read_only else None  # a writer knows its own newest version
        try:
            database = lancedb.connect(self.path, read_consistency_interval=fresh)
            try:
                table = database.open_table(_NAME)
            except ValueError:  # not there, or its creation was cut short
                if self.read_only:
                    return
                table = database.create_table(_NAME, schema=self.schema, exist_ok=True)
            difference = _difference(table.schema, self.schema)
            if difference and not self.read_only and not table.count_rows():
                # Created for another encoder, then never used.
                table = database.create_table(_NAME, schema=self.schema, mode="overwrite")
                difference = None
        except (RuntimeError, OSError) as error:
            self._corrupt(f"the table cannot be opened ({_first_line(error)})", error)
        if difference:
            self._corrupt(difference)
        self._table = table

    def _corrupt(self, detail: str, cause: BaseException | None = None) -> NoReturn:
        hint = "delete this folder while no writer is open: it is rebuilt from the log at the next open"
        raise StoreCorrupt(path=str(self.path), detail=f"{detail}; {hint}") from cause

    def _read(self, query: Callable[[Any], T], nothing: T) -> T:
        """Run ``query`` on the table; again when clean-up took away the version it was reading.

        A read-only handle whose table does not exist yet answers ``nothing``.
        """
        if self._table is None:
            self._open()
            if self._table is None:
                return nothing
        for _ in range(_READ_ATTEMPTS):
            before = None
            try:
                before = self._table.version
                return query(self._table)
            except (RuntimeError, OSError) as error:
                try:
                    self._table.checkout_latest()
                    replaced = self._table.version != before
                except (RuntimeError, OSError):
                    replaced = False
                if not replaced:
                    self._corrupt(f"the table cannot be read ({_first_line(error)})", error)
        raise StoreBusy(what=f"{self.path} (compacted {_READ_ATTEMPTS} times during one read)", waited_s=0.0)

    # -- position

    @property
    def position(self) -> int:
        """Largest sequence number applied, 0 for none."""
        return self._measure() if self.read_only else self._position

    def _measure(self) -> int:
        largest = self._read(self._largest, 0)
        try:
            noted = json.loads((self.path / _POSITION).read_bytes())
            seq, rows = int(noted["seq"]), int(noted["rows"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return largest  # absent, or torn by a power cut: the table itself knows enough
        return max(largest, seq) if self.count() >= rows else largest

    def _largest(self, table: Any) -> int:
        from lancedb.query import ColumnOrdering

        version = table.version
        if self._seen[0] != version:
            newest = [ColumnOrdering(column_name="seq", ascending=False)]
            found = table.search().select(["seq"]).order_by(newest).limit(1).to_arrow()
            self._seen = (version, found["seq"][0].as_py() if found.num_rows else 0)
        return self._seen[1]

    def _note(self) -> None:
        """Remember the position; replaced in one step, so a reader never sees half of it."""
        partial = self.path / (_POSITION + ".tmp")
        partial.write_text(json.dumps({"seq": self._position, "rows": self._rows}))
        os.replace(partial, self.path / _POSITION)

    # -- writing

    def append(self, rows: Sequence[LogRow]) -> int:
        """Apply log entries in one add, and return how many rows they made.

        Entries up to ``position`` are skipped, so applying a batch twice changes nothing.

        Args:
            rows: Entries of any kind in order of ``seq``, with none left out between ``position``
                and the last.

        Raises:
            ReadOnlyStore: the table was opened for reading.
            StoreCorrupt: an entry does not fit the table.
            RuntimeError: LanceDB could not write; the same entries may be given again.
        """
        if self.read_only:
            raise ReadOnlyStore(path=str(self.path))
        if not self._certain:
            self.refresh()
            self._synchronise()
        fresh = [row for row in rows if row.seq > self._position]
        if not fresh:
            return 0
        mine = [row for row in fresh if row.kind == self.kind]
        if mine:
            batch = self.batch(mine, self.schema)
            self._certain = False  # an add that raises may have been committed all the same
            self._table.add(batch)
            self._certain = True
            self._rows += len(mine)
        self._position = fresh[-1].seq
        if not mine or mine[-1].seq != self._position:
            self._note()
        return len(mine)

    def compact(self) -> None:
        """Merge small files into one and remove every version but the newest.

        What a killed writer left half done is removed too, which is safe because only the one writer
        of the shard calls this. A large table gets a bitmap index on ``owner``. Readers, of this and
        of other processes, go on: a read whose version disappears starts again on the newest.

        Raises:
            ReadOnlyStore: the table was opened for reading.
            RuntimeError: LanceDB could not write; the table is unchanged.
        """
        if self.read_only:
            raise ReadOnlyStore(path=str(self.path))
        if self._rows >= _INDEX_ROWS and not self._table.list_indices():
            from lancedb.index import Bitmap

            self._table.create_index("owner", config=Bitmap())
        self._table.optimize(cleanup_older_than=_SUPERSEDED, delete_unverified=True)
        _log.debug("compacted %s: %d rows, %d files", self.path, self._rows, self.files())

    # -- reading

    def load(self, owner_no: int, *, upto: int | None = None, without: Sequence[str] = ()) -> pa.Table:
        """Return the rows of one owner in order of ``seq``, every column in one chunk.

        Args:
            owner_no: Number of the owner.
            upto: Largest sequence number to include; ``None``: all there are.
            without: Columns to leave on disk.

        Returns:
            ``schema`` without ``owner`` and those columns.
        """
        columns = [name for name in self.schema.names if name not in ("owner", *without)]
        schema = pa.schema([self.schema.field(name) for name in columns])
        where = owned(owner_no, upto)
        found = self._read(
            lambda table: table.search().where(where).select(columns).to_arrow(), schema.empty_table()
        ).combine_chunks()
        seqs = found["seq"].to_numpy()
        # Files are written and merged in order of seq; sorting 10,000 rows costs 20 ms, looking 0.01.
        return found if bool((seqs[1:] > seqs[:-1]).all()) else found.sort_by("seq").combine_chunks()

    def count(self, *, upto: int | None = None, owner_no: int | None = None) -> int:
        """Return the number of rows, of one owner or of all, up to a sequence number."""
        where = " AND ".join(bounds(upto, owner_no)) or None
        return int(self._read(lambda table: table.count_rows(where), 0))

    def fragments(self) -> int:
        """Return the number of data files that a scan has to open."""
        return int(self._read(lambda table: table.stats()["fragment_stats"]["num_fragments"], 0))

    def files(self) -> int:
        """Return the number of files on disk below ``path``."""
        return sum(len(names) for _, _, names in os.walk(self.path))

    def refresh(self) -> None:
        """Look at the newest version now. Read-only handles do before every read anyway."""
        self._read(lambda table: table.checkout_latest(), None)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} belongs to one process; open {str(self.path)!r} in the other")


def bounds(upto: int | None, owner_no: int | None) -> list[str]:
    """Return the conditions of a filter; numbers only, so nothing a caller names is part of it."""
    return [
        f"{name} {sign} {int(value)}"
        for name, sign, value in (("owner", "=", owner_no), ("seq", "<=", upto))
        if value is not None
    ]


def owned(owner_no: int, upto: int | None) -> str:
    """Return the filter for an owner's rows up to a sequence number."""
    return " AND ".join(bounds(upto, owner_no))


def _difference(found: pa.Schema, expected: pa.Schema) -> str | None:
    for field in expected:
        index = found.get_field_index(field.name)
        kind = "nothing" if index < 0 else found.field(index).type
        if kind != field.type:
            return f"column {field.name} holds {kind} where {field.type} is expected"
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
