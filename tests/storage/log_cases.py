"""Small admissions for the tests of the log."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import contextmanager
from pathlib import Path

from storage.records import Admission, Entry, EntryKind, OwnerKey
from storage.sql_log import SqlLog, sqlite_log
from tests.storage import old_logs
from tests.storage.log_values import ANNA, BEN, DIMENSION, NOW, vector

__all__ = ["ANNA", "BEN", "DIMENSION", "NOW", "Files", "Schemas", "Writer", "admission", "event", "node", "vector"]


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
        return self.commit(*admissions, operations=operations).appended

    def commit(self, *admissions, operations=()):
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
    def refusing(self, table: str, message: str):
        self.behind(f"CREATE TRIGGER no BEFORE INSERT ON {table} BEGIN SELECT raise(ABORT, '{message}'); END")
        yield
        self.behind("DROP TRIGGER no")

    def behind(self, *statements: str) -> None:
        """Change the tables behind the log's back."""
        raw = sqlite3.connect(self._folder / f"shard{self._number}" / "log.sqlite")
        with raw:
            for statement in statements:
                raw.execute(statement)
        raw.close()

    def make_old(self) -> None:
        """Make the log as version 2 left it."""
        folder = self._folder / f"shard{self._number}"
        folder.mkdir()
        self.behind("PRAGMA journal_mode=WAL", *old_logs.statements(postgres=False))
        raw = sqlite3.connect(folder / "log.sqlite")
        with raw:
            for table, rows in old_logs.rows().items():
                raw.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
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
    def refusing(self, table: str, message: str):
        self.behind(
            f"CREATE OR REPLACE FUNCTION no() RETURNS trigger LANGUAGE plpgsql "
            f"AS $$ BEGIN RAISE EXCEPTION '{message}'; END $$",
            f"CREATE TRIGGER no BEFORE INSERT ON {table} EXECUTE FUNCTION no()",
        )
        yield
        self.behind(f"DROP TRIGGER no ON {table}")

    def behind(self, *statements: str) -> None:
        """Change the tables behind the log's back."""
        with self.server.connect() as raw:
            raw.execute(f"SET search_path = {self.prefix}_{self._number:04d}")
            for statement in statements:
                raw.execute(statement)

    def make_old(self) -> None:
        """Make the log as version 2 left it."""
        schema = f"{self.prefix}_{self._number:04d}"
        self.behind(f"CREATE SCHEMA {schema}", *old_logs.statements(postgres=True))
        with self.server.connect() as raw, raw.cursor() as cursor:
            for table, rows in old_logs.rows().items():
                marks = ", ".join(["%s"] * len(rows[0]))
                cursor.executemany(f"INSERT INTO {schema}.{table} VALUES ({marks})", rows)

    def close(self) -> None:
        self.server.close()
