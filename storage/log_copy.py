"""Copies a shard's log from one database to another, row for row, and proves it before it commits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select, tuple_

from prme_ray.model.errors import StoreCorrupt
from storage.sql_database import Database
from storage.sql_operations import check_chain
from storage.sql_schema import METADATA, create_schema, meta, owners

__all__ = ["LogCopy", "TableSum", "copy_log", "table_sum"]

_BATCH_ROWS = 1000

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TableSum:
    """What a table holds: its number of rows and the SHA-256 over all of them in the order of their key."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class LogCopy:
    """A log that both sides hold alike.

    Attributes:
        tables: What each table holds.
        broken_chains: How many owners have operations that are not as they were written; the source's
            were not either, since every row is the same.
    """

    tables: dict[str, TableSum]
    broken_chains: int


def copy_log(source: Database, target: Database, *, progress: Callable[[int], None]) -> LogCopy:
    """Copy all tables in one transaction of the target, which has none yet.

    What was written is read back inside the transaction; it is only committed where both sides agree.
    Then every owner's chain is checked in the copy: one that is broken is copied as it is, and reported.

    Args:
        source: The log; nobody writes it meanwhile.
        target: Where it goes.
        progress: Told after every batch how many rows were copied since it was last told.

    Raises:
        StoreCorrupt: the target does not hold what the source does; nothing is left in it.
        WriteFailed: the target failed; nothing is left in it.
        StoreBusy: one of them cannot be reached.
    """
    with target.writing() as writing:
        create_schema(writing, target)
        writing.execute(delete(meta))
        copied = {}
        for table in METADATA.sorted_tables:
            hasher = _Hasher()
            for batch in _batches(source, table):
                writing.execute(insert(table), [dict(zip(table.columns.keys(), row, strict=True)) for row in batch])
                hasher.add(batch)
                progress(len(batch))
            copied[table.name] = hasher.sum()
        for table in METADATA.sorted_tables:
            found = table_sum(writing, table)
            if found != copied[table.name]:
                raise StoreCorrupt(
                    path=target.path,
                    detail=f"table {table.name} has {found.rows} rows (SHA-256 {found.digest}) after the copy, the "
                    f"source had {copied[table.name].rows} ({copied[table.name].digest}); nothing was kept",
                )
        owner_numbers = writing.execute(select(owners.c.owner_no).order_by(owners.c.owner_no)).scalars().all()
        broken = sum(not check_chain(writing, number).whole for number in owner_numbers)
    return LogCopy(copied, broken)


def table_sum(connection: Connection, table: Table) -> TableSum:
    """Return what a table holds."""
    hasher = _Hasher()
    for batch in _pages(connection, table):
        hasher.add(batch)
    return hasher.sum()


class _Hasher:
    """Adds up rows. Types and lengths go in, so that no two lists of rows are spelled the same."""

    def __init__(self) -> None:
        self._rows = 0
        self._hash = hashlib.sha256()

    def add(self, rows: list[Row]) -> None:
        self._rows += len(rows)
        for row in rows:
            for value in row:
                data = value if isinstance(value, bytes) else str(value).encode()
                self._hash.update(f"{type(value).__name__} {len(data)} ".encode())
                self._hash.update(data)

    def sum(self) -> TableSum:
        return TableSum(self._rows, self._hash.hexdigest())


def _batches(source: Database, table: Table) -> Iterator[list[Row]]:
    with source.reading() as connection:
        yield from _pages(connection, table)


def _pages(connection: Connection, table: Table) -> Iterator[list[Row]]:
    """Yield all rows, by key. Each page begins behind the last: no cursor has to stay open."""
    if table is meta:  # a few rows, by text, which every database orders in its own way
        yield sorted(tuple(row) for row in connection.execute(select(table)))
        return
    key = list(table.primary_key.columns)
    places = [table.columns.keys().index(column.name) for column in key]
    pages = select(table).order_by(*key).limit(_BATCH_ROWS)
    after: Row | None = None
    while True:
        page = pages if after is None else pages.where(tuple_(*key) > tuple_(*after))
        rows: list[Row] = [tuple(row) for row in connection.execute(page)]
        if rows:
            yield rows
        if len(rows) < _BATCH_ROWS:
            return
        after = tuple(rows[-1][place] for place in places)
