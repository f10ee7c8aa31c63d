"""The catalog of a store whose log is in PostgreSQL: one row in the database, and a folder that agrees.

The database says what the store is, so that a second machine with an empty folder opens the same
one. The folder holds what is made from the log; its ``store.json`` says of which store.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    insert,
    inspect,
    select,
)

from prme_ray.model.errors import InvalidRequest, StoreCorrupt, StoreFormatTooNew
from prme_ray.model.times import iso
from storage.catalog import SHARD_LIMIT, Catalog
from storage.migrations import FORMAT_VERSION
from storage.postgres_log import checked_prefix, existing_shards, make_schema
from storage.postgres_server import PostgresServer

__all__ = ["Identity", "create_identity", "open_catalog", "read_identity"]

_METADATA = MetaData()
_catalog = Table(
    "catalog",
    _METADATA,
    # The table has one row.
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("format", Integer, nullable=False),
    Column("store_id", Text, nullable=False),
    Column("virtual_shards", Integer, nullable=False),
    Column("created_at", Text, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a store the store it is, wherever its files are."""

    store_id: str
    virtual_shards: int
    created_at: datetime


def open_catalog(
    path: str | os.PathLike[str], server: PostgresServer, *, prefix: str, fresh: Identity, read_only: bool
) -> Catalog:
    """Open the store of a database, creating it when the database has none.

    Args:
        path: Folder for what is made from the log; a reader's may be missing.
        server: The database.
        prefix: Name of the store in the database.
        fresh: Used when the store is created, else not.
        read_only: Create and change nothing.

    Raises:
        InvalidRequest: there is no store and ``read_only``, or an argument is out of range.
        StoreCorrupt: the folder belongs to another store, or the database's row cannot be read.
        StoreFormatTooNew: a newer prme-ray made the store.
        StoreBusy: the database cannot be reached.
    """
    root = Path(path).expanduser().absolute()
    identity = read_identity(server, prefix=prefix)
    if identity is None:
        if read_only:
            raise InvalidRequest(
                argument="storage.database_url",
                given=f"{server.address}#{prefix}",
                allowed="a database with a store, or open without read_only to create one",
            )
        identity = create_identity(server, prefix=prefix, fresh=fresh, cache=root)
    has_file = (root / "store.json").exists()
    if read_only and not has_file:
        return Catalog(root, identity.store_id, identity.virtual_shards, identity.created_at)
    if has_file:
        found = Catalog.open(root, read_only=read_only, log="postgresql")
    else:
        found = Catalog.open_or_create(
            root,
            virtual_shards=identity.virtual_shards,
            store_id=identity.store_id,
            created_at=identity.created_at,
            log="postgresql",
        )
    if (found.store_id, found.virtual_shards) != (identity.store_id, identity.virtual_shards):
        raise StoreCorrupt(
            path=str(root),
            detail=f"the folder was made from store {found.store_id} ({found.virtual_shards} shards), but "
            f"{server.address}#{prefix} holds store {identity.store_id} ({identity.virtual_shards} shards); give "
            "an empty folder, or the database of this one",
        )
    return found


def read_identity(server: PostgresServer, *, prefix: str) -> Identity | None:
    """Return what the database says of its store, ``None`` where it has none.

    Raises:
        StoreCorrupt, StoreFormatTooNew, StoreBusy: as :func:`open_catalog`.
    """
    with server.reading(checked_prefix(prefix), path=f"{server.address}#{prefix}") as connection:
        return _read(connection, prefix=prefix, path=f"{server.address}#{prefix}")


def create_identity(
    server: PostgresServer, *, prefix: str, fresh: Identity, cache: Path | None = None, copied: bool = False
) -> Identity:
    """Create the store in the database; of several at once one does, the others get what it made.

    Args:
        server: The database.
        prefix: Name of the store in the database.
        fresh: What the store shall be.
        cache: Folder that must not have been made from another store.
        copied: The shards are there already, as a copy left them.

    Raises:
        InvalidRequest: ``fresh`` is out of range.
        StoreCorrupt: the folder was made from a store that the database does not have, or the database
            has shards without a catalog.
        StoreBusy: the database cannot be reached.
    """
    _check(fresh)
    path = f"{server.address}#{prefix}"
    with server.writing(checked_prefix(prefix), path=path) as connection:
        make_schema(connection, prefix)
        found = _read(connection, prefix=prefix, path=path)
        if found is not None:
            return found
        if cache is not None and (cache / "store.json").exists():
            made = Catalog.open(cache, read_only=True, log="postgresql")
            raise StoreCorrupt(
                path=str(cache),
                detail=f"the folder was made from store {made.store_id}, but {path} holds no store; restore the "
                "database from a backup, or give an empty folder",
            )
        if not copied and existing_shards(server, prefix=prefix):
            raise StoreCorrupt(
                path=path,
                detail="it holds shards but no catalog, as a copy that was cut short leaves it; drop the schemas "
                f"{prefix}_0000 and so on and copy again",
            )
        _METADATA.create_all(connection)
        connection.execute(
            insert(_catalog),
            {
                "one": 1,
                "format": FORMAT_VERSION,
                "store_id": fresh.store_id,
                "virtual_shards": fresh.virtual_shards,
                "created_at": iso(fresh.created_at),
            },
        )
    return fresh


def _check(identity: Identity) -> None:
    if not 1 <= identity.virtual_shards <= SHARD_LIMIT:
        raise InvalidRequest(argument="virtual_shards", given=identity.virtual_shards, allowed=f"1 to {SHARD_LIMIT}")


def _read(connection: Connection, *, prefix: str, path: str) -> Identity | None:
    if not inspect(connection).has_table(_catalog.name, schema=prefix):
        return None
    rows = connection.execute(select(_catalog)).fetchall()
    if len(rows) != 1:
        raise StoreCorrupt(
            path=path, detail=f"its catalog has {len(rows)} rows instead of one; restore it from a backup"
        )
    row = rows[0]
    if row.format > FORMAT_VERSION:
        raise StoreFormatTooNew(path=path, found=row.format, supported=FORMAT_VERSION)
    try:
        created_at = datetime.fromisoformat(row.created_at).astimezone(UTC)
        identity = Identity(str(UUID(row.store_id)), row.virtual_shards, created_at)
        _check(identity)
    except (ValueError, InvalidRequest) as error:
        raise StoreCorrupt(
            path=path, detail=f"its catalog cannot be read ({error}); restore it from a backup"
        ) from error
    return identity
