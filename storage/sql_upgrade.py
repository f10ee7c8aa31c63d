"""Steps that bring the tables of an older log to the present version, inside one transaction.

A step says its own SQL, so that it goes on meaning what it meant when the tables change again.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, text

from storage.chain import CHAIN_START, chain_of
from storage.records import OperationRow, OwnerKey

__all__ = ["STEPS"]

_BATCH_ROWS = 200


def _owner_numbers(connection: Connection) -> None:
    """Give every entry its owner's own number, in the order of the shard's numbers."""
    connection.execute(text("ALTER TABLE entries ADD COLUMN owner_seq INTEGER NOT NULL DEFAULT 0"))
    connection.execute(
        text(
            "UPDATE entries SET owner_seq = numbered.place FROM "
            "(SELECT seq, row_number() OVER (PARTITION BY owner_no ORDER BY seq) AS place FROM entries) AS numbered "
            "WHERE entries.seq = numbered.seq"
        )
    )


def _operation_chains(connection: Connection) -> None:
    """Chain every owner's operations, in the order of the shard's numbers, and count them."""
    owners, operations = _named(connection, "owners"), _named(connection, "operations")
    postgres = connection.dialect.name == "postgresql"
    number, binary, nothing = ("BIGINT", "BYTEA", "''") if postgres else ("INTEGER", "BLOB", "X''")
    _all(
        connection,
        f"ALTER TABLE {owners} ADD COLUMN op_count {number} NOT NULL DEFAULT 0",
        f"ALTER TABLE {owners} ADD COLUMN op_chain {binary} NOT NULL DEFAULT {nothing}",
        f"ALTER TABLE {operations} ADD COLUMN owner_op_seq {number} NOT NULL DEFAULT 0",
        f"ALTER TABLE {operations} ADD COLUMN previous {binary} NOT NULL DEFAULT {nothing}",
        f"ALTER TABLE {operations} ADD COLUMN chain {binary} NOT NULL DEFAULT {nothing}",
        *([f'ALTER TABLE {operations} ALTER COLUMN target TYPE TEXT COLLATE "C"'] if postgres else []),
        f"DROP INDEX {_named(connection, 'operations_by_owner')}",
        f"DROP INDEX {_named(connection, 'operations_by_target')}",
    )
    found = connection.execute(text(f"SELECT owner_no, tenant, owner FROM {owners}"))
    names = {owner_no: OwnerKey(tenant, owner) for owner_no, tenant, owner in found}
    ends = dict.fromkeys(names, (0, CHAIN_START))
    page = text(
        f"SELECT op_seq, owner_no, op_type, target, recorded_at, payload FROM {operations} "
        "WHERE op_seq > :after ORDER BY op_seq LIMIT :rows"
    )
    write = text(
        f"UPDATE {operations} SET owner_op_seq = :number, previous = :previous, chain = :chain WHERE op_seq = :op_seq"
    )
    after = 0
    while rows := connection.execute(page, {"after": after, "rows": _BATCH_ROWS}).fetchall():
        chained = []
        for op_seq, owner_no, op_type, target, recorded_at, payload in rows:
            count, chain = ends[owner_no]
            row = OperationRow(
                op_seq=op_seq,
                owner_no=owner_no,
                owner_op_seq=count + 1,
                op_type=op_type,
                target=target,
                recorded_at=recorded_at,
                previous=chain,
                chain=b"",
                payload=bytes(payload),
            )
            ends[owner_no] = (count + 1, chain_of(names[owner_no], row))
            chained.append({"op_seq": op_seq, "number": count + 1, "previous": chain, "chain": ends[owner_no][1]})
        connection.execute(write, chained)
        after = rows[-1].op_seq
    if ends:
        connection.execute(
            text(f"UPDATE {owners} SET op_count = :count, op_chain = :chain WHERE owner_no = :owner_no"),
            [{"owner_no": owner_no, "count": count, "chain": chain} for owner_no, (count, chain) in ends.items()],
        )
    _all(
        connection,
        f"CREATE UNIQUE INDEX operations_by_number ON {operations} (owner_no, owner_op_seq)",
        f"CREATE INDEX operations_by_type ON {operations} (owner_no, op_type, owner_op_seq)",
        f"CREATE INDEX operations_by_target ON {operations} (owner_no, op_type, target, owner_op_seq)",
    )


def _named(connection: Connection, name: str) -> str:
    """Return a name in SQL: with its schema where the log has one of its own."""
    schema = connection.get_execution_options().get("schema_translate_map", {}).get(None)
    return name if schema is None else f'"{schema}".{name}'


def _all(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(text(statement))


STEPS: dict[int, Callable[[Connection], None]] = {1: _owner_numbers, 2: _operation_chains}
"""Version a step starts from, to the step; it ends at the next version."""
