"""Writes operations inside the log's transaction, each chained to the owner's one before, and checks chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from sqlalchemy import Connection

from prme_ray.model.errors import ConflictingOperation
from storage import sql_statements as sql
from storage.chain import ChainChecker, ChainReport, chain_of
from storage.records import Operation, OperationRow, OwnerKey, Recorded, Repeat

__all__ = ["check_chain", "write_operations"]

_Key = tuple[OwnerKey, str, str]

_COLUMNS = [field.name for field in fields(OperationRow)]
_NEAR = 3
_CHECKED_AT_ONCE = 64  # a record may have tens of kilobytes


def write_operations(
    connection: Connection,
    operations: Sequence[Operation],
    owners: Mapping[OwnerKey, int],
    *,
    recorded_at: int,
    again: bool,
) -> list[Recorded]:
    """Append operations, leaving out those that their ``repeat`` says are there already.

    Args:
        connection: In a transaction that holds the write lock.
        operations: To be appended, in order.
        owners: Number of every owner, whose rows are there.
        recorded_at: Microseconds since the epoch.
        again: The batch may have been committed before: nothing is added beside the same bytes.

    Returns:
        One item an operation: the row as written, or the row held, or :class:`ConflictingOperation`.
    """
    if not operations:
        return []
    held = {_key(one): _held(connection, one, owners) for one in operations if again or one.repeat is not Repeat.ADD}
    ends = _ends(connection, {owners[one.owner] for one in operations})
    last: int = connection.execute(sql.LAST_OPERATION).scalar_one()
    written: list[OperationRow] = []
    recorded: list[Recorded] = []
    for operation in operations:
        rows = held.get(_key(operation))
        found = None if rows is None else _known(operation, rows, again=again)
        if found is None:
            number = owners[operation.owner]
            row = _row(operation, number, ends[number], op_seq=last + len(written) + 1, recorded_at=recorded_at)
            ends[number] = (row.owner_op_seq, row.chain)
            written.append(row)
            if rows is not None:
                rows.append(row)
            found = row
        recorded.append(found)
    if written:
        connection.execute(sql.ADD_OPERATIONS, [{name: getattr(row, name) for name in _COLUMNS} for row in written])
        connection.execute(
            sql.SET_OWNER_END,
            [
                {"number": number, "count": ends[number][0], "chain": ends[number][1]}
                for number in sorted({row.owner_no for row in written})
            ],
        )
    return recorded


def check_chain(connection: Connection, owner_no: int) -> ChainReport:
    """Return whether an owner's operations are as they were written; a broken chain is reported, not raised.

    Reads page by page beside a writer: what is written meanwhile is checked too.
    """
    given = {"owner_no": owner_no}

    def before(op_seq: int) -> list[int]:
        found = connection.execute(sql.OPERATIONS_BEFORE, {**given, "op_seq": op_seq, "limit": _NEAR})
        return list(found.scalars())

    checker: ChainChecker | None = None
    pages = sql.read_operations(op_type=False, limit=True)
    while True:
        # Before the page: what the owner's row counted then is there to be read.
        tenant, owner, count, head = connection.execute(sql.OWNER_CHAIN, given).one()
        checker = checker or ChainChecker(OwnerKey(tenant, owner), before)
        page = connection.execute(pages, {**given, "after": checker.last, "limit": _CHECKED_AT_ONCE}).fetchall()
        for row in page:
            if not checker.full:
                checker.add(OperationRow(*row))
        if not page or checker.full:
            return checker.finish(count=count, head=head)


def _key(operation: Operation) -> _Key:
    return operation.owner, operation.op_type, operation.target


def _held(connection: Connection, operation: Operation, owners: Mapping[OwnerKey, int]) -> list[OperationRow]:
    given = {"owner_no": owners[operation.owner], "op_type": operation.op_type, "target": operation.target}
    statement = sql.operations_by_target(target=True, after=False, limit=False)
    return [OperationRow(*row) for row in connection.execute(statement, given)]


def _known(operation: Operation, rows: Sequence[OperationRow], *, again: bool) -> Recorded | None:
    """Return what stands for an operation, or why it is refused; ``None``: it is to be written."""
    if operation.repeat is Repeat.ADD and not again:
        return None
    same = next((row for row in rows if row.payload == operation.payload), None)
    if same is None and rows and operation.repeat is Repeat.ONCE:
        return ConflictingOperation(op_type=operation.op_type, target=operation.target)
    return same


def _row(operation: Operation, owner_no: int, end: tuple[int, bytes], *, op_seq: int, recorded_at: int) -> OperationRow:
    count, chain = end
    row = OperationRow(
        op_seq=op_seq,
        owner_no=owner_no,
        owner_op_seq=count + 1,
        op_type=operation.op_type,
        target=operation.target,
        recorded_at=recorded_at,
        previous=chain,
        chain=b"",
        payload=operation.payload,
    )
    return replace(row, chain=chain_of(operation.owner, row))


def _ends(connection: Connection, owners: set[int]) -> dict[int, tuple[int, bytes]]:
    """Return how many operations each owner has, and the newest chain value."""
    found = connection.execute(sql.OWNER_ENDS, {"owners": sorted(owners)})
    return {int(number): (int(count), bytes(chain)) for number, count, chain in found}
