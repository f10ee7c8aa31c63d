"""Small admissions for the tests of the log."""

from __future__ import annotations

import itertools
import sqlite3
import struct
from contextlib import contextmanager
from pathlib import Path

from storage.records import Admission, Entry, EntryKind, OwnerKey
from storage.sql_log import SqlLog, sqlite_log

ANNA = OwnerKey("acme", "anna")
BEN = OwnerKey("acme", "ben")
DIMENSION = 2
NOW = 1_777_888_999_000_001


def vector(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def event(subject: str, payload: str = "{}", *, if_absent: bool = False) -> Entry:
    return Entry(EntryKind.EVENT, subject, payload, if_absent=if_absent)


def node(subject: str, values: bytes | None = None, payload: str = "{}", *, if_absent: bool = False) -> Entry:
    return Entry(EntryKind.NODE, subject, payload, vector=values, if_absent=if_absent)


def admission(*entries: Entry, owner: OwnerKey = ANNA, generation: int = 1) -> Admission:
    return Admission(owner, entries, generation)


class Writer:
    """A log with its epoch and one encoder generation, as a shard's writer has it."""

    def __init__(self, log):
        self.log = log if isinstance(log, SqlLog) else sqlite_log(log)
        self.epoch = self.log.begin_epoch()
        self.generation = self.log.register_generation("id-1", "mini", DIMENSION, created_at=NOW, epoch=self.epoch)

    def append(self, *admissions, operations=()):
        return self.log.append(admissions, recorded_at=NOW, epoch=self.epoch, operations=operations)


class Files:
    """Logs in SQLite files."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._number = 0

    def open(self, *, read_only: bool = False) -> SqlLog:
        return sqlite_log(self._folder / f"shard{self._number}" / "log.sqlite", read_only=read_only)

    def another(self) -> SqlLog:
        self._number += 1
        return self.open()

    @contextmanager
    def refusing_entries(self, message: str):
        raw = sqlite3.connect(self._folder / f"shard{self._number}" / "log.sqlite")
        raw.execute(f"CREATE TRIGGER no BEFORE INSERT ON entries BEGIN SELECT raise(ABORT, '{message}'); END")
        yield
        raw.execute("DROP TRIGGER no")
        raw.close()

    def close(self) -> None:
        pass


class Schemas:
    """Logs in a PostgreSQL database, under a prefix that nobody else has."""

    _numbers = itertools.count()

    def __init__(self, url: str):
        from storage.postgres_server import PostgresServer

        self.url = url
        self.server = PostgresServer(url)
        self.prefix = f"test{next(self._numbers)}"
        self._number = 0

    def open(self, *, read_only: bool = False) -> SqlLog:
        from storage.postgres_log import postgres_log

        return postgres_log(self.server, prefix=self.prefix, shard=self._number, read_only=read_only)

    def another(self) -> SqlLog:
        self._number += 1
        return self.open()

    @contextmanager
    def refusing_entries(self, message: str):
        schema = f"{self.prefix}_{self._number:04d}"
        with self.server.connect() as raw:
            raw.execute(
                f"CREATE FUNCTION {schema}.no() RETURNS trigger LANGUAGE plpgsql "
                f"AS $$ BEGIN RAISE EXCEPTION '{message}'; END $$"
            )
            raw.execute(f"CREATE TRIGGER no BEFORE INSERT ON {schema}.entries EXECUTE FUNCTION {schema}.no()")
        yield
        with self.server.connect() as raw:
            raw.execute(f"DROP TRIGGER no ON {schema}.entries")

    def close(self) -> None:
        self.server.close()
