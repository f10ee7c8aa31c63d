"""The log of a shard in PostgreSQL: the tables of ``sql_schema`` in a schema of their own.

A schema a shard, not a shard column: the statements and indexes are then those of the SQLite log,
the newest number of a shard is one step down an index, and one shard can be dumped, restored or
dropped alone. The price is six tables a shard in use.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

from sqlalchemy import Connection, text

from prme_ray.model.errors import InvalidSettings, ReadOnlyStore
from storage.postgres_server import PostgresServer
from storage.sql_log import SqlLog

__all__ = ["PostgresDatabase", "checked_prefix", "existing_shards", "make_schema", "postgres_log", "shard_schema"]

_PREFIX = re.compile(r"[a-z][a-z0-9_]{0,39}")


def postgres_log(server: PostgresServer, *, prefix: str, shard: int, read_only: bool = False) -> SqlLog:
    """Open the log of a shard.

    Args:
        server: Database of the store; it stays open when the log is closed.
        prefix: Name of the store in the database.
        shard: Number of the shard. For writing, its tables are created when missing.
        read_only: Open beside a writer; sees its last commit.

    Raises:
        InvalidRequest: ``read_only`` and an older prme-ray made the tables.
        InvalidSettings: the server refuses the login, or ``prefix`` is no name.
        StoreFormatTooNew: a newer prme-ray made the tables.
        StoreCorrupt: there are no tables and ``read_only``, or they are no log.
        StoreBusy: the server cannot be reached.
    """
    return SqlLog.open(PostgresDatabase(server, schema=shard_schema(prefix, shard), read_only=read_only))


class PostgresDatabase:
    """One schema of a database.

    Args:
        server: The database.
        schema: Name of the schema.
        read_only: Refuse to write.
    """

    def __init__(self, server: PostgresServer, *, schema: str, read_only: bool) -> None:
        self._server = server
        self._schema = schema
        self._read_only = read_only

    @property
    def path(self) -> str:
        """Server, database and schema."""
        return f"{self._server.address}#{self._schema}"

    @property
    def schema(self) -> str | None:
        """The schema."""
        return self._schema

    @property
    def writable(self) -> bool:
        """Whether it was opened for writing."""
        return not self._read_only

    def reading(self) -> AbstractContextManager[Connection]:
        """Return a connection whose every statement sees the last commit."""
        return self._server.reading(self._schema, path=self.path)

    def writing(self) -> AbstractContextManager[Connection]:
        """Return a connection in a transaction; the fence's row lock makes appends follow one another."""
        if self._read_only:
            raise ReadOnlyStore(path=self.path)
        return self._server.writing(self._schema, path=self.path)

    def prepare(self, connection: Connection) -> None:
        """Make the schema, alone until the transaction ends."""
        make_schema(connection, self._schema)

    def close(self) -> None:
        """Do nothing: the connections are the server's."""


def make_schema(connection: Connection, schema: str) -> None:
    """Make the schema where it is missing; whoever makes the same one waits until the transaction ends."""
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": f"prme-ray {schema}"})
    connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))  # the name is a checked one


def existing_shards(server: PostgresServer, *, prefix: str) -> list[int]:
    """Return the numbers of the shards that have a log in the database."""
    found = text(
        "SELECT nspname FROM pg_catalog.pg_namespace JOIN pg_catalog.pg_class ON relnamespace = pg_namespace.oid "
        "WHERE relname = 'meta' AND nspname ~ :pattern ORDER BY nspname"
    )
    with server.reading(prefix, path=f"{server.address}#{prefix}") as connection:
        names = connection.execute(found, {"pattern": f"^{checked_prefix(prefix)}_[0-9]{{4}}$"}).scalars()
        return [int(name[-4:]) for name in names]


def shard_schema(prefix: str, shard: int) -> str:
    """Return the schema of a shard's tables."""
    return f"{checked_prefix(prefix)}_{shard:04d}"


def checked_prefix(prefix: str) -> str:
    """Return a store's name in the database.

    Raises:
        InvalidSettings: it is none.
    """
    if not _PREFIX.fullmatch(prefix):
        raise InvalidSettings(
            argument="storage.database_prefix", given=prefix, allowed="up to 40 of a-z, 0-9 and _, a letter first"
        )
    return prefix
