"""Where a store has its logs: a file in each shard's folder, or a database that all machines reach."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from prme_ray.model.settings import StorageSettings
from storage.catalog import Catalog
from storage.log import Log
from storage.sql_log import sqlite_log

if TYPE_CHECKING:
    from storage.postgres_server import PostgresServer

__all__ = ["LOG_FILE", "Logs", "open_logs"]

LOG_FILE = "log.sqlite"
"""Name of the log in a shard's folder; a shard exists once it does."""


class Logs(Protocol):
    """The logs of one store."""

    def existing(self) -> list[int]:
        """Return the numbers of the shards that have a log, ascending."""
        ...

    def exists(self, shard: int) -> bool:
        """Return whether the shard has a log."""
        ...

    def open(self, shard: int, *, read_only: bool) -> Log:
        """Open a shard's log; a writer creates it when it is missing."""
        ...

    def close(self) -> None:
        """Free what the logs share. Close the logs before."""
        ...


class _Files:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def existing(self) -> list[int]:
        return [shard for shard in self._catalog.shards if self.exists(shard)]

    def exists(self, shard: int) -> bool:
        return self._file(shard).exists()

    def open(self, shard: int, *, read_only: bool) -> Log:
        return sqlite_log(self._file(shard), read_only=read_only)

    def close(self) -> None:
        """Nothing is shared."""

    def _file(self, shard: int) -> Path:
        return self._catalog.shard_path(shard) / LOG_FILE


class _Schemas:
    def __init__(self, server: PostgresServer, *, prefix: str, read_only: bool) -> None:
        from storage.postgres_presence import Presence

        self._server = server
        self._prefix = prefix
        self._presence = None if read_only else Presence(server, prefix=prefix)

    def existing(self) -> list[int]:
        from storage.postgres_log import existing_shards

        return existing_shards(self._server, prefix=self._prefix)

    def exists(self, shard: int) -> bool:
        return shard in self.existing()

    def open(self, shard: int, *, read_only: bool) -> Log:
        from storage.postgres_log import postgres_log

        return postgres_log(self._server, prefix=self._prefix, shard=shard, read_only=read_only)

    def close(self) -> None:
        if self._presence is not None:
            self._presence.close()
        self._server.close()


def open_logs(
    path: Path, *, settings: StorageSettings, store_id: str, created_at: datetime, read_only: bool
) -> tuple[Catalog, Logs]:
    """Open a store's catalog and the place of its logs, creating the store when it is missing.

    Args:
        path: The store's folder.
        settings: ``database_url`` says whether the logs are in a database.
        store_id: UUID of the store, if it is created.
        created_at: Current UTC time, if it is created.
        read_only: Create and change nothing.

    Raises:
        InvalidRequest, InvalidSettings, StoreCorrupt, StoreFormatTooNew, StoreBusy: as
            :meth:`Catalog.open_or_create` and :func:`storage.postgres_catalog.open_catalog`.
    """
    if settings.database_url is None:
        if read_only:
            catalog = Catalog.open(path, read_only=True)
        else:
            catalog = Catalog.open_or_create(
                path, virtual_shards=settings.virtual_shards, store_id=store_id, created_at=created_at
            )
        return catalog, _Files(catalog)

    from storage.postgres_catalog import Identity, open_catalog
    from storage.postgres_server import PostgresServer

    server = PostgresServer(settings.database_url)
    fresh = Identity(store_id, settings.virtual_shards, created_at)
    try:
        catalog = open_catalog(path, server, prefix=settings.database_prefix, fresh=fresh, read_only=read_only)
        return catalog, _Schemas(server, prefix=settings.database_prefix, read_only=read_only)
    except BaseException:
        server.close()
        raise
