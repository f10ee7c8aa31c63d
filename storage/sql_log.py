"""The log in an SQL database, through SQLAlchemy Core; ``sqlite_log`` opens one in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Executable

from prme_ray.model.errors import InvalidRequest, ReadOnlyStore, StoreClosed
from storage import sql_statements as sql
from storage.chain import ChainReport
from storage.durable import make_folders
from storage.log import Log
from storage.records import (
    Admission,
    Committed,
    EntryKind,
    Generation,
    LastEntry,
    LogRow,
    Operation,
    OperationRow,
    OwnerKey,
)
from storage.sql_append import fence, write_batch
from storage.sql_database import Database
from storage.sql_operations import check_chain
from storage.sql_schema import check_schema, create_schema
from storage.sqlite_engine import SqliteDatabase

__all__ = ["SqlLog", "sqlite_log"]

_CACHED_OWNERS = 65_536


def sqlite_log(path: str | os.PathLike[str], *, read_only: bool = False) -> SqlLog:
    """Open the log in the SQLite file ``path``.

    Args:
        path: The file. For writing, it and its folder are created when missing.
        read_only: Open beside a writer, or after one that was killed; sees its last commit.

    Raises:
        InvalidRequest: ``read_only`` and there is no file, or an older prme-ray made the tables.
        StoreFormatTooNew: a newer prme-ray made the tables.
        StoreCorrupt: the file is not a log.
        StoreBusy: another process kept the database locked.
    """
    file = Path(path).absolute()
    if read_only and not file.exists():
        raise InvalidRequest(
            argument="path", given=str(file), allowed="an existing log; open it for writing once to create it"
        )
    if not read_only:
        make_folders(file.parent)
    return SqlLog.open(SqliteDatabase(file, read_only=read_only))


class SqlLog(Log):
    """A log in a database. Usable from any thread of the process that opened it, and only there.

    Args:
        database: Its tables, which this log closes. Use :meth:`open`, which checks them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pid = os.getpid()
        self._closed = False
        self._owners: dict[OwnerKey, int] = {}
        self._dimensions: dict[int, int] = {}

    @classmethod
    def open(cls, database: Database) -> SqlLog:
        """Return the log; a writer creates the tables, or brings older ones up, before.

        Raises:
            InvalidRequest: an older prme-ray made the tables and ``database`` is for reading.
            StoreFormatTooNew: a newer prme-ray made them.
            StoreCorrupt: this is not a log.
        """
        log = cls(database)
        try:
            if database.writable:
                with database.writing() as connection:
                    create_schema(connection, database)
            else:
                with database.reading() as connection:
                    check_schema(connection, database)
        except BaseException:
            log.close()
            raise
        return log

    @property
    def path(self) -> str:
        """Where the log is, for messages."""
        return self._database.path

    # --- writing ---------------------------------------------------------------------------------

    def begin_epoch(self) -> int:
        """Return a new epoch and fence earlier writers; see :class:`Log`."""
        with self._writing() as connection:
            epoch = int(connection.execute(sql.CURRENT_EPOCH).scalar_one()) + 1
            connection.execute(sql.SET_EPOCH, {"epoch": str(epoch)})
        return epoch

    def append(
        self,
        admissions: Sequence[Admission],
        *,
        recorded_at: int,
        epoch: int,
        operations: Sequence[Operation] = (),
        again: bool = False,
    ) -> Committed:
        """Commit the batch in one durable transaction; see :class:`Log`."""
        with self._writing() as connection:
            fence(connection, epoch=epoch, path=self.path)
            batch = write_batch(
                connection,
                admissions,
                operations,
                recorded_at=recorded_at,
                owners=self._owners,
                dimensions=self._known_dimensions(connection, admissions),
                again=again,
            )
        self._remember(batch.owners)
        return Committed(batch.appended, batch.recorded)

    def register_generation(
        self, identity: str, model_name: str, dimension: int, *, created_at: int, epoch: int
    ) -> int:
        """Return the generation of an encoder identity, registering a new one; see :class:`Log`."""
        with self._writing() as connection:
            fence(connection, epoch=epoch, path=self.path)
            known = _generations(connection)
            for generation in known:
                if generation.identity == identity:
                    if generation.dimension != dimension:
                        raise InvalidRequest(argument="dimension", given=dimension, allowed=str(generation.dimension))
                    return generation.generation
            if dimension < 1:
                raise InvalidRequest(argument="dimension", given=dimension, allowed="at least 1")
            fresh = Generation(
                generation=1 + max((generation.generation for generation in known), default=0),
                identity=identity,
                model_name=model_name,
                dimension=dimension,
                created_at=created_at,
            )
            connection.execute(sql.ADD_GENERATION, asdict(fresh))
        return fresh.generation

    def _known_dimensions(self, connection: Connection, admissions: Sequence[Admission]) -> dict[int, int]:
        if any(admission.generation not in self._dimensions for admission in admissions):
            self._dimensions = {found.generation: found.dimension for found in _generations(connection)}
        return self._dimensions

    # --- reading ---------------------------------------------------------------------------------

    def current_epoch(self) -> int:
        """Return the newest writer's epoch, 0 before the first."""
        return int(self._fetch(sql.SEEN_EPOCH)[0][0])

    def generations(self) -> list[Generation]:
        """Return every registered generation, oldest first."""
        with self._reading() as connection:
            return _generations(connection)

    def last_seq(self) -> int:
        """Return the number of the newest committed entry, 0 when there is none."""
        return int(self._fetch(sql.LAST_SEQ)[0][0])

    def owner_no(self, owner: OwnerKey) -> int | None:
        """Return the owner's number in this log, or ``None`` for an owner never written."""
        self._check_usable()
        number = self._owners.get(owner)
        if number is None:
            found = self._fetch(sql.OWNER_NO, tenant=owner.tenant, owner=owner.owner)
            if not found:
                return None
            number = int(found[0][0])
            self._remember({owner: number})
        return number

    def owners(self) -> list[tuple[int, OwnerKey]]:
        """Return every owner with its number, by number."""
        return [(number, OwnerKey(tenant, owner)) for number, tenant, owner in self._fetch(sql.OWNERS)]

    def last_of(self, owner_no: int, *, upto: int | None = None, by: int | None = None) -> LastEntry:
        """Return both numbers of the owner's newest entry within the bounds; see :class:`Log`."""
        statement = sql.last_of(upto=upto is not None, by=by is not None)
        found = self._fetch(statement, owner_no=owner_no, upto=upto, by=by)
        return LastEntry(*found[0]) if found else LastEntry(0, 0)

    def seq_of(self, owner_no: int, owner_seq: int) -> int | None:
        """Return the number in the shard of the owner's entry ``owner_seq``, or ``None``."""
        found = self._fetch(sql.SEQ_OF, owner_no=owner_no, before=owner_seq - 1) if owner_seq > 0 else []
        return int(found[0][0]) if found else None

    def read(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        owner_no: int | None = None,
        generation: int | None = None,
        limit: int | None = None,
    ) -> list[LogRow]:
        """Return entries with ``after < seq <= upto``, by ``seq``; see :class:`Log`."""
        statement = sql.read_entries(
            upto=upto is not None,
            owner=owner_no is not None,
            vector=generation is not None,
            limit=limit is not None,
        )
        given = {"after": after, "upto": upto, "owner_no": owner_no, "generation": generation, "limit": limit}
        return _rows(self._fetch(statement, **given))

    def record(self, owner_no: int, kind: EntryKind, subject: str) -> LogRow | None:
        """Return the owner's entry with that id (without vector), or ``None``."""
        rows = _rows(self._fetch(sql.RECORD, owner_no=owner_no, kind=kind.value, subject=subject))
        return rows[0] if rows else None

    def counts(
        self, *, upto: int | None = None, owner_no: int | None = None, generation: int | None = None
    ) -> dict[str, int]:
        """Return the number of entries by kind, and of one generation's vectors; see :class:`Log`."""
        flags = {"upto": upto is not None, "owner": owner_no is not None}
        given = {"upto": upto, "owner_no": owner_no, "generation": generation}
        found = {kind.value: 0 for kind in EntryKind}
        found.update((kind, count) for kind, count in self._fetch(sql.count_kinds(**flags), **given))
        if generation is not None:
            found.update((name, count) for name, count in self._fetch(sql.count_vectors(**flags), **given))
        return found

    def operations(
        self, owner_no: int, *, after: int = 0, limit: int | None = None, op_type: str | None = None
    ) -> list[OperationRow]:
        """Return the owner's operations with ``owner_op_seq > after``, by ``owner_op_seq``."""
        statement = sql.read_operations(op_type=op_type is not None, limit=limit is not None)
        found = self._fetch(statement, owner_no=owner_no, after=after, limit=limit, op_type=op_type)
        return [OperationRow(*row) for row in found]

    def operations_of(self, owner_no: int, target: str, *, op_type: str) -> list[OperationRow]:
        """Return the owner's operations of a type on ``target``, by ``owner_op_seq``."""
        statement = sql.operations_by_target(target=True, after=False, limit=False)
        found = self._fetch(statement, owner_no=owner_no, op_type=op_type, target=target)
        return [OperationRow(*row) for row in found]

    def operations_by_target(
        self, owner_no: int, *, op_type: str, after_target: str | None = None, limit: int | None = None
    ) -> list[OperationRow]:
        """Return the owner's operations of a type by (``target``, ``owner_op_seq``); see :class:`Log`."""
        statement = sql.operations_by_target(target=False, after=after_target is not None, limit=limit is not None)
        given = {"owner_no": owner_no, "op_type": op_type, "after_target": after_target, "limit": limit}
        return [OperationRow(*row) for row in self._fetch(statement, **given)]

    def verify_chain(self, owner_no: int) -> ChainReport:
        """Return whether the owner's operations are as they were written; see :class:`Log`."""
        with self._reading() as connection:
            return check_chain(connection, owner_no)

    def close(self) -> None:
        """Free connections and files. Repeatable; in a forked child it leaves the parent's alone."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._database.close()

    # --- connections -----------------------------------------------------------------------------

    def _check_usable(self) -> None:
        # A connection must not be used across a fork: the child has to open the log itself.
        if self._closed or os.getpid() != self._pid:
            raise StoreClosed(path=self.path)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._check_usable()
        with self._database.reading() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._check_usable()
        if not self._database.writable:
            raise ReadOnlyStore(path=self.path)
        with self._database.writing() as connection:
            yield connection

    def _fetch(self, statement: Executable, **given: Any) -> Sequence[Any]:
        with self._reading() as connection:
            bound = {name: value for name, value in given.items() if value is not None}
            return connection.execute(statement, bound).fetchall()

    def _remember(self, owners: dict[OwnerKey, int]) -> None:
        if len(self._owners) + len(owners) > _CACHED_OWNERS:
            self._owners = {}
        self._owners.update(owners)


def _generations(connection: Connection) -> list[Generation]:
    return [Generation(*row) for row in connection.execute(sql.GENERATIONS)]


def _rows(found: Sequence[Any]) -> list[LogRow]:
    return [sql.log_row(row) for row in found]
