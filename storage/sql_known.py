"""What a batch names that the log has already: owners, records, whole admissions that come again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Connection

from storage import sql_statements as sql
from storage.admit import RecordKey, record_keys
from storage.records import Admission, EntryKind, LogRow, OwnerKey

__all__ = ["committed_rows", "known_owners", "known_records"]

# Bound parameters a statement, below the limits of SQLite (32,766) and PostgreSQL (65,535).
_PARAMETERS = 10_000


def known_owners(
    connection: Connection, named: Sequence[OwnerKey], cached: Mapping[OwnerKey, int]
) -> dict[OwnerKey, int]:
    """Return the numbers of the named owners that have one."""
    found: dict[OwnerKey, int] = {}
    for owner in dict.fromkeys(named):
        number = cached.get(owner)
        if number is None:
            number = connection.execute(sql.OWNER_NO, {"tenant": owner.tenant, "owner": owner.owner}).scalar()
        if number is not None:
            found[owner] = number
    return found


def known_records(
    connection: Connection, admissions: Sequence[Admission], owners: Mapping[OwnerKey, int]
) -> set[RecordKey]:
    """Return the batch's records that the log has already; an owner without a number has none."""
    subjects = {entry.subject for admission in admissions if admission.owner in owners for entry in admission.entries}
    names = {number: owner for owner, number in owners.items()}
    known: set[RecordKey] = set()
    for chunk in _chunks(subjects):
        known.update(
            (names[owner_no], EntryKind(kind), subject)
            for owner_no, kind, subject in connection.execute(sql.KNOWN, {"subjects": chunk})
            if owner_no in names
        )
    return known


def committed_rows(
    connection: Connection, admissions: Sequence[Admission], known: set[RecordKey], owners: Mapping[OwnerKey, int]
) -> dict[RecordKey, LogRow]:
    """Return the log's entries, with vectors, of every admission that brings a record it has already.

    That is rare: an admission that comes again, or an id that is taken.
    """
    found: dict[RecordKey, LogRow] = {}
    for admission in admissions:
        keys = record_keys(admission)
        if not any(key in known and not entry.if_absent for key, entry in zip(keys, admission.entries, strict=True)):
            continue
        wanted = {key for key in keys if key in known}
        for chunk in _chunks({subject for _, _, subject in wanted}):
            given = {"subjects": chunk, "owner_no": owners[admission.owner], "generation": admission.generation}
            for row in map(sql.log_row, connection.execute(sql.COMMITTED, given)):
                key = (admission.owner, row.kind, row.subject)
                if key in wanted:
                    found[key] = row
    return found


def _chunks(subjects: set[str]) -> Iterator[list[str]]:
    # A subject that no database could take cannot be known either; ``admit`` refuses it.
    ordered = sorted(subject for subject in subjects if _storable(subject))
    for start in range(0, len(ordered), _PARAMETERS):
        yield ordered[start : start + _PARAMETERS]


def _storable(text: str) -> bool:
    return "\0" not in text and (text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text))
