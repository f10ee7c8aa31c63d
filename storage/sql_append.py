"""The body of the log's one writing transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from prme_ray.model.errors import TerminalError, WriterFenced
from storage import sql_statements as sql
from storage.admit import RecordKey, Repeated, admit, record_keys
from storage.chain import CHAIN_START
from storage.records import Admission, Appended, Entry, LastEntry, LogRow, Operation, OwnerKey, Recorded
from storage.sql_known import committed_rows, known_owners, known_records
from storage.sql_operations import write_operations

__all__ = ["Batch", "fence", "write_batch"]


@dataclass(slots=True)
class Batch:
    """What one transaction wrote; true once it has been committed.

    Attributes:
        appended: One result an admission, in order.
        recorded: One result an operation, in order.
        owners: Numbers of the owners the batch names, new ones included.
    """

    appended: list[Appended] = field(default_factory=list)
    recorded: list[Recorded] = field(default_factory=list)
    owners: dict[OwnerKey, int] = field(default_factory=dict)


def fence(connection: Connection, *, epoch: int, path: str) -> None:
    """Refuse a writer that is no longer the newest, and keep others out until the transaction ends.

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
    again: bool = False,
) -> Batch:
    """Write a batch inside the caller's transaction.

    Args:
        connection: In a transaction that holds the write lock.
        admissions: To be appended; see ``storage.admit`` for refusals and repetitions.
        operations: To be appended after them; see ``storage.sql_operations``.
        recorded_at: Microseconds since the epoch.
        owners: Owner numbers known to be committed; others are looked up.
        dimensions: Registered generations and the length of their vectors.
        again: The batch may have been committed before.
    """
    named = [*(admission.owner for admission in admissions), *(operation.owner for operation in operations)]
    batch = Batch(owners=known_owners(connection, named, owners))
    known = known_records(connection, admissions, batch.owners)
    committed = committed_rows(connection, admissions, known, batch.owners)
    payloads = {key: committed[key].payload if key in committed else None for key in known}
    decisions = admit(admissions, known=payloads, dimensions=dimensions)
    taken = [
        (admission, decision)
        for admission, decision in zip(admissions, decisions, strict=True)
        if isinstance(decision, tuple)
    ]
    accepted = [admission.owner for admission, _ in taken]
    _add_owners(connection, [*accepted, *(operation.owner for operation in operations)], batch.owners)
    seq: int = connection.execute(sql.LAST_SEQ).scalar_one() if accepted else 0
    counts = _owner_counts(connection, accepted, batch.owners)
    for admission, decision in zip(admissions, decisions, strict=True):
        if isinstance(decision, TerminalError):
            batch.appended.append(Appended(owner_no=0, error=decision))
            continue
        number = batch.owners[admission.owner]
        if isinstance(decision, Repeated):
            batch.appended.append(Appended(number, _held(admission, committed), repeated=True))
            continue
        last = LastEntry(seq, counts.get(number, 0))
        rows = _rows(decision, last, owner_no=number, recorded_at=recorded_at)
        batch.appended.append(Appended(number, rows))
        committed.update(((admission.owner, row.kind, row.subject), row) for row in rows)
        seq, counts[number] = last.seq + len(rows), last.owner_seq + len(rows)
    _insert_rows(connection, admissions, batch.appended)
    batch.recorded = write_operations(connection, operations, batch.owners, recorded_at=recorded_at, again=again)
    return batch


def _held(admission: Admission, committed: Mapping[RecordKey, LogRow]) -> tuple[LogRow, ...]:
    """Return the entries a repeated admission brought the first time.

    A row before the first record it brings was there earlier: a name or a session of another write.
    """
    rows = [committed[key] for key in record_keys(admission) if key in committed]
    brought = {(entry.kind, entry.subject) for entry in admission.entries if not entry.if_absent}
    first = min(row.seq for row in rows if (row.kind, row.subject) in brought)
    return tuple(sorted({row for row in rows if row.seq >= first}, key=lambda row: row.seq))


def _add_owners(connection: Connection, named: Sequence[OwnerKey], owners: dict[OwnerKey, int]) -> None:
    fresh = [owner for owner in dict.fromkeys(named) if owner not in owners]
    if not fresh:
        return
    last: int = connection.execute(sql.LAST_OWNER).scalar_one()
    owners.update((owner, last + position) for position, owner in enumerate(fresh, start=1))
    connection.execute(
        sql.ADD_OWNERS,
        [
            {
                "owner_no": owners[owner],
                "tenant": owner.tenant,
                "owner": owner.owner,
                "op_count": 0,
                "op_chain": CHAIN_START,
            }
            for owner in fresh
        ],
    )


def _owner_counts(
    connection: Connection, accepted: Sequence[OwnerKey], owners: Mapping[OwnerKey, int]
) -> dict[int, int]:
    """Return how many entries each owner of an accepted admission has."""
    numbers = sorted({owners[owner] for owner in accepted})
    if not numbers:
        return {}
    return {int(row[0]): int(row[1]) for row in connection.execute(sql.LAST_OWNER_SEQS, {"owners": numbers})}


def _rows(entries: Sequence[Entry], last: LastEntry, *, owner_no: int, recorded_at: int) -> tuple[LogRow, ...]:
    return tuple(
        LogRow(
            seq=last.seq + step,
            owner_no=owner_no,
            owner_seq=last.owner_seq + step,
            kind=entry.kind,
            subject=entry.subject,
            payload=entry.payload,
            recorded_at=recorded_at,
            vector=entry.vector,
        )
        for step, entry in enumerate(entries, start=1)
    )


def _insert_rows(connection: Connection, admissions: Sequence[Admission], appended: Sequence[Appended]) -> None:
    rows = [row for result in appended if not result.repeated for row in result.rows]
    if rows:
        connection.execute(
            sql.ADD_ENTRIES,
            [
                {
                    "seq": row.seq,
                    "owner_no": row.owner_no,
                    "owner_seq": row.owner_seq,
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
        for row in () if result.repeated else result.rows:
            if row.vector is not None:
                yield {"seq": row.seq, "generation": admission.generation, "vector": row.vector}
