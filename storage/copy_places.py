"""The two ends of a copy: a store's folder with its logs in files, or a PostgreSQL database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from prme_ray.model.errors import InvalidRequest
from prme_ray.model.settings import StorageSettings
from storage.catalog import Catalog
from storage.durable import make_folders, sync_folder
from storage.lock import ShardLocks
from storage.logs import LOG_FILE
from storage.postgres_catalog import Identity, create_identity, read_identity
from storage.postgres_log import PostgresDatabase, existing_shards, shard_schema
from storage.postgres_presence import Presence
from storage.postgres_server import PostgresServer
from storage.sql_database import Database
from storage.sql_log import SqlLog
from storage.sqlite_engine import SqliteDatabase

__all__ = ["CopySource", "CopyTarget", "copy_source", "copy_target"]

_PARTIAL = ".partial"


class CopySource(Protocol):
    """A store that no writer has open, and none can write while it is copied."""

    identity: Identity

    def shards(self) -> list[int]:
        """Return the shards that have a log, ascending."""
        ...

    def shard(self, number: int) -> Database:
        """Return a shard's log, its earlier writers fenced."""
        ...


class CopyTarget(Protocol):
    """A place without a store."""

    def shard(self, number: int) -> Database:
        """Return the place of a shard's log."""
        ...

    def finish(self) -> None:
        """Make the store whole: from now on it can be opened."""
        ...


@contextmanager
def copy_source(place: str, *, now: datetime) -> Iterator[CopySource]:
    """Hold the store at ``place`` for a copy.

    Args:
        place: Folder, or ``postgresql://…/database`` with ``#prefix`` behind it where it is not "prme".
        now: Current UTC time.

    Raises:
        InvalidRequest: there is no store.
        StoreLocked, StoreBusy: a writer has it open.
        StoreCorrupt, StoreFormatTooNew, InvalidSettings: it cannot be read.
    """
    if _is_url(place):
        with _postgres(place) as (server, prefix):
            identity = read_identity(server, prefix=prefix)
            if identity is None:
                raise InvalidRequest(
                    argument="--from", given=f"{server.address}#{prefix}", allowed="a database with a store"
                )
            yield _PostgresSource(server, prefix, identity)
        return
    catalog = Catalog.open(place)
    with ShardLocks.acquire(catalog.path, catalog.shards, now=now):
        yield _FolderSource(catalog)


@contextmanager
def copy_target(place: str, *, identity: Identity) -> Iterator[CopyTarget]:
    """Hold ``place``, which must have no store, for a copy.

    Args:
        place: As of :func:`copy_source`.
        identity: What the store is.

    Raises:
        InvalidRequest: something is there.
        StoreBusy: a database that a writer has open, or that cannot be reached.
        InvalidSettings: a database that refuses the login.
    """
    if _is_url(place):
        with _postgres(place) as (server, prefix):
            if read_identity(server, prefix=prefix) is not None or existing_shards(server, prefix=prefix):
                raise InvalidRequest(
                    argument="--to",
                    given=f"{server.address}#{prefix}",
                    allowed="a database without a store of that name; drop the schemas "
                    f"{prefix} and {prefix}_0000 and so on, or give another name behind #",
                )
            yield _PostgresTarget(server, prefix, identity)
        return
    yield _FolderTarget(Path(place).expanduser().absolute(), identity)


class _FolderSource:
    def __init__(self, catalog: Catalog) -> None:
        self.identity = Identity(catalog.store_id, catalog.virtual_shards, catalog.created_at)
        self._catalog = catalog

    def shards(self) -> list[int]:
        return [number for number in self._catalog.shards if self._file(number).exists()]

    def shard(self, number: int) -> Database:
        return _fenced(SqliteDatabase(self._file(number), read_only=False))

    def _file(self, number: int) -> Path:
        return self._catalog.shard_path(number) / LOG_FILE


class _FolderTarget:
    """The store is made in a folder beside the target, which gets its name when it is whole."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self._path = path
        partial = path.with_name(path.name + _PARTIAL)
        for folder, rest in ((path, ""), (partial, "; it is left of a copy that was cut short: delete it")):
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise InvalidRequest(argument="--to", given=str(folder), allowed=f"a missing or an empty folder{rest}")
        self._catalog = Catalog.open_or_create(
            partial,
            virtual_shards=identity.virtual_shards,
            store_id=identity.store_id,
            created_at=identity.created_at,
        )

    def shard(self, number: int) -> Database:
        folder = self._catalog.shard_path(number)
        make_folders(folder)
        return SqliteDatabase(folder / LOG_FILE, read_only=False)

    def finish(self) -> None:
        os.replace(self._catalog.path, self._path)
        sync_folder(self._path.parent)


class _PostgresSource:
    def __init__(self, server: PostgresServer, prefix: str, identity: Identity) -> None:
        self.identity = identity
        self._server = server
        self._prefix = prefix

    def shards(self) -> list[int]:
        return existing_shards(self._server, prefix=self._prefix)

    def shard(self, number: int) -> Database:
        schema = shard_schema(self._prefix, number)
        return _fenced(PostgresDatabase(self._server, schema=schema, read_only=False))


class _PostgresTarget:
    def __init__(self, server: PostgresServer, prefix: str, identity: Identity) -> None:
        self._server = server
        self._prefix = prefix
        self._identity = identity

    def shard(self, number: int) -> Database:
        return PostgresDatabase(self._server, schema=shard_schema(self._prefix, number), read_only=False)

    def finish(self) -> None:
        create_identity(self._server, prefix=self._prefix, fresh=self._identity, copied=True)


def _fenced(database: Database) -> Database:
    # A writer that is cut off, and so was not seen, can never add to the source what the copy lacks.
    SqlLog.open(database).begin_epoch()
    return database


def _is_url(place: str) -> bool:
    return place.startswith(("postgresql://", "postgres://"))


@contextmanager
def _postgres(place: str) -> Iterator[tuple[PostgresServer, str]]:
    url, _, name = place.partition("#")
    prefix = name or StorageSettings().database_prefix
    server = PostgresServer(url)
    try:
        presence = Presence(server, prefix=prefix, alone=True)
        try:
            yield server, prefix
        finally:
            presence.close()
    finally:
        server.close()
