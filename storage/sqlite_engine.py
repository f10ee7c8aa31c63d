"""SQLite as the log's database: how its connections are opened and what its failures mean.

WAL mode lets readers go on while one connection writes, each reader seeing the last commit.
``synchronous=FULL`` makes a commit wait for the disk, so it survives a power loss.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from prme_ray.model.errors import PrmeRayError, ReadOnlyStore, StoreBusy, StoreCorrupt, WriteFailed

__all__ = ["BUSY_S", "SqliteDatabase"]

BUSY_S = 5.0
"""Longest wait for another connection's transaction, in seconds."""

# A vector of 384 float32 takes 1,536 bytes: pages of 8 KiB hold five of them and waste 6 %, the
# default 4 KiB pages hold two and waste 25 %.
_PAGE_BYTES = 8192
# The write-ahead file stays near 2 MiB: a store may have many shards, most of them small.
_CHECKPOINT_PAGES = 256
_WAL_BYTES = _CHECKPOINT_PAGES * _PAGE_BYTES

_EVERY = (f"PRAGMA busy_timeout={int(BUSY_S * 1000)}",)
_WRITING = (
    f"PRAGMA page_size={_PAGE_BYTES}",  # only has an effect before the first table
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}",
    f"PRAGMA journal_size_limit={_WAL_BYTES}",
)
_READING = ("PRAGMA query_only=ON",)


class SqliteDatabase:
    """One SQLite file.

    Args:
        path: The file; for writing it is created when it is missing.
        read_only: Open the file itself for reading only.
    """

    schema = None

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self._file = path
        self._writer = None if read_only else _writing_engine(path)
        self._reader = _reading_engine(path, read_only=read_only)

    @property
    def path(self) -> str:
        """The file."""
        return str(self._file)

    @property
    def writable(self) -> bool:
        """Whether it was opened for writing."""
        return self._writer is not None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Return a connection whose every statement sees the last commit."""
        try:
            with self._reader.connect() as connection:
                yield connection
        except (DBAPIError, sqlite3.Error) as error:
            raise _translated(error, path=self.path, writing=False) from error

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Return a connection in a transaction that holds the write lock from its begin."""
        if self._writer is None:
            raise ReadOnlyStore(path=self.path)
        try:
            with self._writer.begin() as connection:
                yield connection
        except (DBAPIError, sqlite3.Error) as error:
            raise _translated(error, path=self.path, writing=True) from error

    def prepare(self, connection: Connection) -> None:
        """Do nothing: the transaction has the only write lock of the file."""

    def close(self) -> None:
        """Free connections and files. Repeatable."""
        for engine in (self._reader, self._writer):
            if engine is not None:
                engine.dispose()


def _writing_engine(path: Path) -> Engine:
    """Return an engine whose transactions write; the file is created when it is missing."""
    engine = _engine(path, mode="rwc", pragmas=_EVERY + _WRITING)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # Takes the write lock at once: a transaction that starts by reading could not upgrade later.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _reading_engine(path: Path, *, read_only: bool) -> Engine:
    """Return an engine whose every statement sees the last commit.

    Args:
        path: The database file, which exists.
        read_only: Open the file itself for reading only.
    """
    mode = "ro" if read_only else "rw"
    return _engine(path, mode=mode, pragmas=_EVERY + _READING, isolation_level="AUTOCOMMIT", pool_reset_on_return=None)


def _engine(path: Path, *, mode: str, pragmas: tuple[str, ...], **options: Any) -> Engine:
    address = f"file:{quote(str(path))}?mode={mode}"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_S, cached_statements=64
        )
        try:
            for pragma in pragmas:
                connection.execute(pragma)
        except BaseException:
            connection.close()
            raise
        return connection

    # Last in, first out: threads that come one after another keep using one warm connection.
    return create_engine(
        "sqlite+pysqlite://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=16,
        max_overflow=-1,
        pool_use_lifo=True,
        hide_parameters=True,  # they are memories
        **options,
    )


def _translated(error: DBAPIError | sqlite3.Error, *, path: str, writing: bool) -> PrmeRayError:
    """Return what a failure of the database means to the caller.

    Args:
        error: As raised by SQLAlchemy, or by the driver while it connected.
        path: The log, for the message.
        writing: Inside a transaction that was to write; it has been rolled back.
    """
    cause = error.orig if isinstance(error, DBAPIError) else error
    name = getattr(cause, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreBusy(what=f"the log {path}", waited_s=BUSY_S)
    if writing and not name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return WriteFailed(detail=f"{path}: {cause}", durable=False)
    return StoreCorrupt(path=path, detail=f"cannot be read as a log: {cause}")
