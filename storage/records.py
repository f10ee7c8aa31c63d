"""What the log takes in and gives back, and what a reader may ask of an owner.

One :class:`Admission` is one acknowledged write: all its entries are committed together or not at
all. The log numbers entries in one sequence a shard; the fold of an owner's entries up to a number
*is* the owner's state at that number, and vectors are immutable per (node, encoder generation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from prme_ray.model.enums import Scope
from prme_ray.model.errors import InvalidRequest, TerminalError
from prme_ray.model.text import check_text

__all__ = [
    "LATE_RECORDS",
    "Admission",
    "Appended",
    "Committed",
    "Entry",
    "EntryKind",
    "Filters",
    "Generation",
    "LastEntry",
    "LateOperation",
    "LogRow",
    "Operation",
    "OperationRow",
    "OwnerKey",
    "Recorded",
    "Repeat",
]

LATE_RECORDS = 200
"""Most late records that wait anywhere: each keeps the tables of a whole request in memory."""


class EntryKind(StrEnum):
    """What a log entry admits."""

    EVENT = "event"
    NODE = "node"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class OwnerKey:
    """The unit of isolation: tenant and owner, both in NFC (``prme_ray.model.text.name_of``).

    Raises:
        InvalidText: a name is no string, or has a NUL character or a lone surrogate.
    """

    tenant: str
    owner: str

    def __post_init__(self) -> None:
        check_text(self.tenant, "tenant")
        check_text(self.owner, "owner")


@dataclass(frozen=True, slots=True)
class Entry:
    """One record to append.

    Attributes:
        kind: What it admits.
        subject: UUID of the record.
        payload: JSON text of the record (``Event``, ``Node`` or ``Edge`` of ``prme_ray.model.nodes``).
        vector: Little-endian float32 vector of a node, for the store's current encoder generation.
        if_absent: Skip the entry when this owner already has the subject (names and sessions, whose
            ids are derived from the owner and the name). Without it a known subject is refused.
    """

    kind: EntryKind
    subject: str
    payload: str
    vector: bytes | None = None
    if_absent: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """Entries of one owner that become visible together. ``generation`` is that of the vectors."""

    owner: OwnerKey
    entries: tuple[Entry, ...]
    generation: int


@dataclass(frozen=True, slots=True)
class LogRow:
    """An entry as committed.

    Attributes:
        seq: Its number in the shard: dense, shared by all owners, never shown to one.
        owner_no: Number of the owner in the log.
        owner_seq: The owner's own number of the entry: 1, 2, 3… in the order of ``seq``.
        kind: What it admits.
        subject: UUID of the record.
        payload: JSON text of the record.
        recorded_at: Microseconds since the epoch.
        vector: Vector of the generation that was asked for.
    """

    seq: int
    owner_no: int
    owner_seq: int
    kind: EntryKind
    subject: str
    payload: str
    recorded_at: int
    vector: bytes | None = None


class LastEntry(NamedTuple):
    """Where an owner stands: both numbers of an owner's last entry, 0 and 0 before the first."""

    seq: int
    owner_seq: int


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of one admission.

    Attributes:
        owner_no: The owner's number in this log; 0 where the admission was refused.
        rows: Its entries as committed, in order, skipped ones left out.
        repeated: The log had it already: ``rows`` are those of the first time, nothing was added.
        error: Why it was refused; the other admissions of the batch are not affected.
    """

    owner_no: int
    rows: tuple[LogRow, ...] = ()
    error: TerminalError | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Generation:
    """Vectors of one encoder identity. ``created_at`` is in microseconds since the epoch."""

    generation: int
    identity: str
    model_name: str
    dimension: int
    created_at: int


class Repeat(StrEnum):
    """What becomes of an operation whose owner has one of its type and target already."""

    ADD = "add"
    """It is added all the same."""
    SAME = "same"
    """One with the same bytes stands for it; beside others it is added."""
    ONCE = "once"
    """One with the same bytes stands for it; beside others it is refused."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A record about an owner that is not part of the owner's state: a retrieval, a judgement.

    Attributes:
        owner: Whom it is about.
        op_type: What it records, such as ``RETRIEVAL_REQUEST`` (digest b §4.2).
        target: Id of what it is about, such as a request id.
        payload: The record's bytes, kept as they are.
        repeat: What becomes of it when it comes again; decided where it is written.

    Raises:
        InvalidRequest: ``payload`` is not bytes.
        InvalidText: a name has a NUL character or a lone surrogate.
    """

    owner: OwnerKey
    op_type: str
    target: str
    payload: bytes
    repeat: Repeat = Repeat.ADD

    def __post_init__(self) -> None:
        check_text(self.op_type, "op_type")
        check_text(self.target, "target")
        if not isinstance(self.payload, bytes):
            raise InvalidRequest(argument="payload", given=type(self.payload).__name__, allowed="bytes")


@dataclass(frozen=True, slots=True)
class LateOperation:
    """An operation whose bytes are made when it is written, so that nobody waits for them.

    Attributes:
        owner: As of :class:`Operation`; so are ``op_type`` and ``target``.
        make: Returns the record's bytes. Called once, in another thread, where writes may wait for it: what
            it reads must not change, and it must not wait for the store.

    Raises:
        InvalidText: a name has a NUL character or a lone surrogate.
    """

    owner: OwnerKey
    op_type: str
    target: str
    make: Callable[[], bytes]

    def __post_init__(self) -> None:
        check_text(self.op_type, "op_type")
        check_text(self.target, "target")

    def made(self) -> Operation:
        """Return the operation with its bytes.

        Raises:
            InvalidRequest: ``make`` did not return bytes.
            Exception: what ``make`` raised.
        """
        return Operation(self.owner, self.op_type, self.target, self.make())


@dataclass(frozen=True, slots=True)
class OperationRow:
    """An operation as committed.

    Attributes:
        op_seq: Its number in the shard, in a sequence of its own, never shown to an owner.
        owner_no: Number of the owner in the log.
        owner_op_seq: The owner's own number of the operation: 1, 2, 3… without gaps.
        op_type: What it records.
        target: Id of what it is about.
        recorded_at: Microseconds since the epoch.
        previous: Chain value of the owner's operation before it; zeros for the first.
        chain: SHA-256 over ``previous`` and this operation; see ``storage.chain``.
        payload: The record's bytes.
    """

    op_seq: int
    owner_no: int
    owner_op_seq: int
    op_type: str
    target: str
    recorded_at: int
    previous: bytes
    chain: bytes
    payload: bytes


Recorded = OperationRow | TerminalError
"""The operation as committed, or held before; or why it is refused."""


class Committed(NamedTuple):
    """What became of a batch: one result an admission, and one an operation, in their order."""

    appended: list[Appended]
    recorded: list[Recorded]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which of an owner's memories a request may see; enforced inside every channel.

    Attributes:
        scopes: Allowed scopes; ``None``: all.
        include_inactive: AUDIT mode: superseded, deprecated and archived memories too.
        time_from: Keep where ``valid_to`` is none or later (entities and preferences are exempt).
        time_to: Keep where ``valid_from`` is not later (same exemption).
        knowledge_at: Keep what was created by then.
        event_time_from: Keep where the stated time (else creation) is not earlier.
        event_time_to: Keep where it is not later.
        at: Instant at which edges must be valid.
    """

    scopes: frozenset[Scope] | None = None
    include_inactive: bool = False
    time_from: datetime | None = None
    time_to: datetime | None = None
    knowledge_at: datetime | None = None
    event_time_from: datetime | None = None
    event_time_to: datetime | None = None
    at: datetime | None = None
