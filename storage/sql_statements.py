"""The log's statements, built once each, so that SQLAlchemy compiles each once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Executable, bindparam, func, insert, literal, null, select, update
from sqlalchemy.sql.elements import ColumnElement

from storage.records import EntryKind, LogRow
from storage.sql_schema import EPOCH, entries, generations, meta, operations, owners, vectors

__all__ = [
    "ADD_ENTRIES",
    "ADD_GENERATION",
    "ADD_OPERATIONS",
    "ADD_OWNERS",
    "ADD_VECTORS",
    "COMMITTED",
    "CURRENT_EPOCH",
    "GENERATIONS",
    "KNOWN",
    "LAST_OPERATION",
    "LAST_OWNER",
    "LAST_OWNER_SEQS",
    "LAST_SEQ",
    "OPERATIONS_BEFORE",
    "OWNERS",
    "OWNER_CHAIN",
    "OWNER_ENDS",
    "OWNER_NO",
    "RECORD",
    "SEEN_EPOCH",
    "SEQ_OF",
    "SET_EPOCH",
    "SET_OWNER_END",
    "count_kinds",
    "count_vectors",
    "last_of",
    "log_row",
    "operations_by_target",
    "read_entries",
    "read_operations",
]

_KINDS = {kind.value: kind for kind in EntryKind}

ADD_ENTRIES = insert(entries)
ADD_GENERATION = insert(generations)
ADD_OPERATIONS = insert(operations)
ADD_OWNERS = insert(owners)
ADD_VECTORS = insert(vectors)

# Locks the row where a database has row locks, so that an old writer cannot slip in behind a new epoch.
CURRENT_EPOCH = select(meta.c.value).where(meta.c.key == EPOCH).with_for_update()
SEEN_EPOCH = select(meta.c.value).where(meta.c.key == EPOCH)  # without its lock
SET_EPOCH = update(meta).where(meta.c.key == EPOCH).values(value=bindparam("epoch"))

LAST_SEQ = select(func.coalesce(func.max(entries.c.seq), 0))
LAST_OPERATION = select(func.coalesce(func.max(operations.c.op_seq), 0))
OWNER_ENDS = select(owners.c.owner_no, owners.c.op_count, owners.c.op_chain).where(
    owners.c.owner_no.in_(bindparam("owners", expanding=True))
)
SET_OWNER_END = (
    update(owners)
    .where(owners.c.owner_no == bindparam("number"))
    .values(op_count=bindparam("count"), op_chain=bindparam("chain"))
)
OWNER_CHAIN = select(owners.c.tenant, owners.c.owner, owners.c.op_count, owners.c.op_chain).where(
    owners.c.owner_no == bindparam("owner_no")
)
OPERATIONS_BEFORE = (
    select(operations.c.owner_op_seq)
    .where(operations.c.owner_no == bindparam("owner_no"), operations.c.op_seq < bindparam("op_seq"))
    .order_by(operations.c.op_seq.desc())
    .limit(bindparam("limit"))
)
LAST_OWNER = select(func.coalesce(func.max(owners.c.owner_no), 0))
# One step down an index an owner; a maximum by group would read every entry of the owners.
_LAST_OWNER_SEQ = (
    select(entries.c.owner_seq)
    .where(entries.c.owner_no == owners.c.owner_no)
    .order_by(entries.c.seq.desc())
    .limit(1)
    .scalar_subquery()
)
LAST_OWNER_SEQS = select(owners.c.owner_no, func.coalesce(_LAST_OWNER_SEQ, 0)).where(
    owners.c.owner_no.in_(bindparam("owners", expanding=True))
)

OWNERS = select(owners.c.owner_no, owners.c.tenant, owners.c.owner).order_by(owners.c.owner_no)
OWNER_NO = select(owners.c.owner_no).where(owners.c.tenant == bindparam("tenant"), owners.c.owner == bindparam("owner"))
GENERATIONS = select(generations).order_by(generations.c.generation)
KNOWN = select(entries.c.owner_no, entries.c.kind, entries.c.subject).where(
    entries.c.subject.in_(bindparam("subjects", expanding=True))
)
COMMITTED = (
    select(entries, vectors.c.vector)
    .select_from(
        entries.outerjoin(vectors, (vectors.c.seq == entries.c.seq) & (vectors.c.generation == bindparam("generation")))
    )
    .where(entries.c.subject.in_(bindparam("subjects", expanding=True)), entries.c.owner_no == bindparam("owner_no"))
    .order_by(entries.c.seq)
)
RECORD = select(entries, null().label("vector")).where(
    entries.c.owner_no == bindparam("owner_no"),
    entries.c.kind == bindparam("kind"),
    entries.c.subject == bindparam("subject"),
)

# Owner's numbers have no gaps, so a place in the order of ``seq`` is found in the index alone.
SEQ_OF = (
    select(entries.c.seq)
    .where(entries.c.owner_no == bindparam("owner_no"))
    .order_by(entries.c.seq)
    .offset(bindparam("before"))
    .limit(1)
)


def log_row(found: Sequence[Any]) -> LogRow:
    """Return a row of a statement over all columns of ``entries`` and a vector."""
    seq, owner_no, owner_seq, kind, subject, payload, recorded_at, vector = found
    return LogRow(seq, owner_no, owner_seq, _KINDS[kind], subject, payload, recorded_at, vector)


@cache
def read_entries(*, upto: bool, owner: bool, vector: bool, limit: bool) -> Executable:
    """Return the statement of ``Log.read``; each flag adds the bound parameter of that meaning."""
    statement = select(entries, vectors.c.vector if vector else null().label("vector"))
    if vector:
        of_generation = (vectors.c.seq == entries.c.seq) & (vectors.c.generation == bindparam("generation"))
        statement = statement.select_from(entries.outerjoin(vectors, of_generation))
    statement = statement.where(entries.c.seq > bindparam("after"), *_bounds(upto=upto, owner=owner))
    statement = statement.order_by(entries.c.seq)
    return statement.limit(bindparam("limit")) if limit else statement


@cache
def last_of(*, upto: bool, by: bool) -> Executable:
    """Return the statement of ``Log.last_of``; flags as in :func:`read_entries`."""
    statement = select(entries.c.seq, entries.c.owner_seq).where(*_bounds(upto=upto, owner=True))
    if by:
        statement = statement.where(entries.c.recorded_at <= bindparam("by"))
    return statement.order_by(entries.c.seq.desc()).limit(1)


@cache
def read_operations(*, op_type: bool, limit: bool) -> Executable:
    """Return the statement of ``Log.operations``; flags as in :func:`read_entries`."""
    statement = select(operations).where(
        operations.c.owner_no == bindparam("owner_no"), operations.c.owner_op_seq > bindparam("after")
    )
    if op_type:
        statement = statement.where(operations.c.op_type == bindparam("op_type"))
    statement = statement.order_by(operations.c.owner_op_seq)
    return statement.limit(bindparam("limit")) if limit else statement


@cache
def operations_by_target(*, target: bool, after: bool, limit: bool) -> Executable:
    """Return the statement over operations of a type by target: of one, or of those behind another."""
    statement = select(operations).where(
        operations.c.owner_no == bindparam("owner_no"), operations.c.op_type == bindparam("op_type")
    )
    if target:
        statement = statement.where(operations.c.target == bindparam("target"))
    if after:
        statement = statement.where(operations.c.target > bindparam("after_target"))
    statement = statement.order_by(operations.c.target, operations.c.owner_op_seq)
    return statement.limit(bindparam("limit")) if limit else statement


@cache
def count_kinds(*, upto: bool, owner: bool) -> Executable:
    """Return the statement that counts entries by kind; flags as in :func:`read_entries`."""
    return select(entries.c.kind, func.count()).where(*_bounds(upto=upto, owner=owner)).group_by(entries.c.kind)


@cache
def count_vectors(*, upto: bool, owner: bool) -> Executable:
    """Return the statement that counts one generation's vectors; flags as in :func:`read_entries`."""
    statement = select(literal("vectors"), func.count()).where(vectors.c.generation == bindparam("generation"))
    if upto or owner:
        statement = statement.select_from(vectors.join(entries)).where(*_bounds(upto=upto, owner=owner))
    return statement


def _bounds(*, upto: bool, owner: bool) -> list[ColumnElement[bool]]:
    bounds: list[ColumnElement[bool]] = []
    if upto:
        bounds.append(entries.c.seq <= bindparam("upto"))
    if owner:
        bounds.append(entries.c.owner_no == bindparam("owner_no"))
    return bounds
