"""Tables of a shard's log, in SQL that SQLite and PostgreSQL both take.

Entries and vectors are append-only. A vector is a row of its own, so re-embedding adds a generation
and rewrites nothing.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    insert,
    inspect,
    select,
    update,
)

from prme_ray.model.errors import InvalidRequest, LogEmpty, StoreCorrupt, StoreFormatTooNew
from storage.sql_database import Database
from storage.sql_upgrade import STEPS

__all__ = [
    "EPOCH",
    "METADATA",
    "SCHEMA_VERSION",
    "check_schema",
    "create_schema",
    "entries",
    "generations",
    "meta",
    "operations",
    "owners",
    "vectors",
]

SCHEMA_VERSION = 3
"""Version of these tables, kept in ``meta``. Version 1 had no ``owner_seq``, version 2 no chain of operations."""

EPOCH = "writer_epoch"
_SCHEMA = "schema_version"

METADATA = MetaData()

# SQLite makes a column the row number, which costs no index, only where it says INTEGER.
_Number = BigInteger().with_variant(Integer, "sqlite")
# Sorted by its bytes, as SQLite does, whatever language a server's database is set to.
_Plain = Text().with_variant(Text(collation="C"), "postgresql")

meta = Table("meta", METADATA, Column("key", String, primary_key=True), Column("value", Text, nullable=False))

owners = Table(
    "owners",
    METADATA,
    Column("owner_no", _Number, primary_key=True, autoincrement=False),
    Column("tenant", Text, nullable=False),
    Column("owner", Text, nullable=False),
    # How many operations the owner has, and the chain value of the newest: a tail cannot just go.
    Column("op_count", _Number, nullable=False),
    Column("op_chain", LargeBinary, nullable=False),
    UniqueConstraint("tenant", "owner"),
)

entries = Table(
    "entries",
    METADATA,
    Column("seq", _Number, primary_key=True, autoincrement=False),
    Column("owner_no", _Number, ForeignKey(owners.c.owner_no), nullable=False),
    Column("owner_seq", _Number, nullable=False),
    Column("kind", String, nullable=False),
    Column("subject", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    # Subject first: one look-up by subject answers for a whole batch of many owners.
    UniqueConstraint("subject", "owner_no", "kind"),
    Index("entries_by_owner", "owner_no", "seq"),
)

generations = Table(
    "generations",
    METADATA,
    Column("generation", _Number, primary_key=True, autoincrement=False),
    Column("identity", Text, nullable=False, unique=True),
    Column("model_name", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

vectors = Table(
    "vectors",
    METADATA,
    Column("seq", _Number, ForeignKey(entries.c.seq), nullable=False),
    Column("generation", _Number, ForeignKey(generations.c.generation), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("seq", "generation"),
)

operations = Table(
    "operations",
    METADATA,
    Column("op_seq", _Number, primary_key=True, autoincrement=False),
    Column("owner_no", _Number, ForeignKey(owners.c.owner_no), nullable=False),
    Column("owner_op_seq", _Number, nullable=False),
    Column("op_type", String, nullable=False),
    Column("target", _Plain, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("previous", LargeBinary, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    # Last: it may fill pages of its own, which a look at the other columns then leaves alone.
    Column("payload", LargeBinary, nullable=False),
    Index("operations_by_number", "owner_no", "owner_op_seq", unique=True),
    Index("operations_by_type", "owner_no", "op_type", "owner_op_seq"),
    Index("operations_by_target", "owner_no", "op_type", "target", "owner_op_seq"),
)


def create_schema(connection: Connection, database: Database) -> None:
    """Create the tables where there are none, or bring older ones up, inside the caller's transaction.

    Raises:
        StoreFormatTooNew: a newer prme-ray made the tables.
        StoreCorrupt: the version cannot be read.
    """
    if not _exist(connection, database):
        database.prepare(connection)
    if not _exist(connection, database):  # another writer may have made them before this one had the lock
        METADATA.create_all(connection, checkfirst=False)
        connection.execute(insert(meta), [{"key": _SCHEMA, "value": str(SCHEMA_VERSION)}, {"key": EPOCH, "value": "0"}])
    found = _version(connection, database)
    if found < SCHEMA_VERSION:
        for version in range(found, SCHEMA_VERSION):
            STEPS[version](connection)
        connection.execute(update(meta).where(meta.c.key == _SCHEMA).values(value=str(SCHEMA_VERSION)))


def check_schema(connection: Connection, database: Database) -> None:
    """Check that the tables are there, in a version this code reads.

    Raises:
        InvalidRequest: an older prme-ray made them, and a reader cannot change them.
        StoreFormatTooNew: a newer prme-ray made them.
        StoreCorrupt: they are missing or have no version.
    """
    found = _version(connection, database)
    if found < SCHEMA_VERSION:
        raise InvalidRequest(
            argument="read_only",
            given=True,
            allowed=f"False once: {database.path} is a log of version {found}, opening it for writing brings it to "
            f"{SCHEMA_VERSION}",
        )


def _exist(connection: Connection, database: Database) -> bool:
    return inspect(connection).has_table(meta.name, schema=database.schema)


def _version(connection: Connection, database: Database) -> int:
    path = database.path
    if not _exist(connection, database):
        raise LogEmpty(path=path, detail="the log has no tables yet; open the store for writing once")
    found = connection.execute(select(meta.c.value).where(meta.c.key == _SCHEMA)).scalar()
    if found is None or not found.isdecimal() or int(found) < 1:
        raise StoreCorrupt(path=path, detail=f"the log's schema version is {found!r}; restore it from a backup")
    if int(found) > SCHEMA_VERSION:
        raise StoreFormatTooNew(path=path, found=int(found), supported=SCHEMA_VERSION)
    return int(found)
