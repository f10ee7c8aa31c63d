"""The body of the log's one writing transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from prme_ray.model.errors import TerminalError, WriterFenced
from storage import sql_statements as sql
from storage.admit import RecordKey, admit
from storage.records import Admission, Appended, Entry, EntryKind, LogRow, Operation, OwnerKey

__all__ = ["Batch", "fence", "write_batch"]

# Bound parameters a statement, below the limits of SQLite (32,766) and PostgreSQL (65,535).
_PARAMETERS = 10_000


@dataclass(slots=True)
class Batch:
    """What one transaction wrote; true once it has been committed.

    Attributes:
        appended: One result an admission, in order.
        owners: Numbers of the owners the batch names, new ones included.
    """

    appended: list[Appended] = field(default_factory=list)
    owners: dict[OwnerKey, int] = field(default_factory=dict)


def fence(connection: Connection, *, epoch: int, path: str) -> None:
    """Refuse a writer that is no longer the newest.

    Raises:
        WriterFenced: the log's epoch is not ``epoch``.
    """
    current = int(connection.execute(sql.CURRENT_EPOCH).scalar_one())
    if current != epoch:
        raise WriterFenced(path=path, epoch=epoch, current=current)


def write_batch(
    connection: Connection,
    admissions: Sequence[Admission],
    operations: Sequence[Operation],
    *,
    recorded_at: int,
    owners: Mapping[OwnerKey, int],
    dimensions: Mapping[int, int],
) -> Batch:
    """Write a batch inside the caller's transaction.

    Args:
        connection: In a transaction that holds the write lock.
        admissions: To be appended; see ``storage.admit`` for refusals.
        operations: To be appended after them.
        recorded_at: Microseconds since the epoch.
        owners: Owner numbers known to be committed; others are looked up.
        dimensions: Registered generations and the length of their vectors.
    """
    batch = Batch(owners=_look_up(connection, admissions, operations, owners))
    decisions = admit(admissions, known=_known(connection, admissions, batch.owners), dimensions=dimensions)
    accepted = [
        admission.owner
        for admission, decision in zip(admissions, decisions, strict=True)
        if not isinstance(decision, TerminalError)
    ]
    _add_owners(connection, [*accepted, *(operation.owner for operation in operations)], batch.owners)
    seq: int = connection.execute(sql.LAST_SEQ).scalar_one() if accepted else 0
    for admission, decision in zip(admissions, decisions, strict=True):
        if isinstance(decision, TerminalError):
            batch.appended.append(Appended(owner_no=0, error=decision))
            continue
        number = batch.owners[admission.owner]
        batch.appended.append(Appended(number, _rows(decision, seq, owner_no=number, recorded_at=recorded_at)))
        seq += len(decision)
    _insert_rows(connection, admissions, batch.appended)
    _insert_operations(connection, operations, batch.owners, recorded_at=recorded_at)
    return batch


def _look_up(
    connection: Connection,
    admissions: Sequence[Admission],
    operations: Sequence[Operation],
    cached: Mapping[OwnerKey, int],
) -> dict[OwnerKey, int]:
    found: dict[OwnerKey, int] = {}
    named = [admission.owner for admission in admissions] + [operation.owner for operation in operations]
    for owner in dict.fromkeys(named):
        number = cached.get(owner)
        if number is None:
            number = connection.execute(sql.OWNER_NO, {"tenant": owner.tenant, "owner": owner.owner}).scalar()
        if number is not None:
            found[owner] = number
    return found


def _known(connection: Connection, admissions: Sequence[Admission], owners: Mapping[OwnerKey, int]) -> set[RecordKey]:
    """Return the batch's records that the log has already; an owner without a number has none."""
    subjects = sorted(
        {
            entry.subject
            for admission in admissions
            if admission.owner in owners
            for entry in admission.entries
            if _has_utf8(entry.subject)
        }
    )
    names = {number: owner for owner, number in owners.items()}
    known: set[RecordKey] = set()
    for start in range(0, len(subjects), _PARAMETERS):
        chunk = {"subjects": subjects[start : start + _PARAMETERS]}
        known.update(
            (names[owner_no], EntryKind(kind), subject)
            for owner_no, kind, subject in connection.execute(sql.KNOWN, chunk)
            if owner_no in names
        )
    return known


def _has_utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _add_owners(connection: Connection, named: Sequence[OwnerKey], owners: dict[OwnerKey, int]) -> None:
    fresh = [owner for owner in dict.fromkeys(named) if owner not in owners]
    if not fresh:
        return
    last: int = connection.execute(sql.LAST_OWNER).scalar_one()
    owners.update((owner, last + position) for position, owner in enumerate(fresh, start=1))
    connection.execute(
        sql.ADD_OWNERS,
        [{"owner_no": owners[owner], "tenant": owner.tenant, "owner": owner.owner} for owner in fresh],
    )


def _rows(entries: Sequence[Entry], seq: int, *, owner_no: int, recorded_at: int) -> tuple[LogRow, ...]:
    return tuple(
        LogRow(position, owner_no, entry.kind, entry.subject, entry.payload, recorded_at, entry.vector)
        for position, entry in enumerate(entries, start=seq + 1)
    )


def _insert_rows(connection: Connection, admissions: Sequence[Admission], appended: Sequence[Appended]) -> None:
    rows = [row for result in appended for row in result.rows]
    if rows:
        connection.execute(
            sql.ADD_ENTRIES,
            [
                {
                    "seq": row.seq,
                    "owner_no": row.owner_no,
                    "kind": row.kind.value,
                    "subject": row.subject,
                    "payload": row.payload,
                    "recorded_at": row.recorded_at,
                }
                for row in rows
            ],
        )
    found = list(_vectors(admissions, appended))
    if found:
        connection.execute(sql.ADD_VECTORS, found)


def _vectors(admissions: Sequence[Admission], appended: Sequence[Appended]) -> Iterator[dict[str, int | bytes]]:
    for admission, result in zip(admissions, appended, strict=True):
        for row in result.rows:
            if row.vector is not None:
                yield {"seq": row.seq, "generation": admission.generation, "vector": row.vector}


def _insert_operations(
    connection: Connection, operations: Sequence[Operation], owners: Mapping[OwnerKey, int], *, recorded_at: int
) -> None:
    if not operations:
        return
    last: int = connection.execute(sql.LAST_OPERATION).scalar_one()
    connection.execute(
        sql.ADD_OPERATIONS,
        [
            {
                "op_seq": number,
                "owner_no": owners[operation.owner],
                "op_type": operation.op_type,
                "target": operation.target,
                "payload": operation.payload,
                "recorded_at": recorded_at,
            }
            for number, operation in enumerate(operations, last + 1)
        ],
    )
