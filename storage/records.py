"""What the log takes in and gives back, and what a reader may ask of an owner.

One :class:`Admission` is one acknowledged write: all its entries are committed together or not at
all. The log numbers entries in one sequence a shard; the fold of an owner's entries up to a number
*is* the owner's state at that number, and vectors are immutable per (node, encoder generation).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from prme_ray.model.enums import Scope

__all__ = ["Admission", "Entry", "EntryKind", "Filters", "LogRow", "OwnerKey"]


class EntryKind(StrEnum):
    """What a log entry admits."""

    EVENT = "event"
    NODE = "node"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class OwnerKey:
    """The unit of isolation: tenant and owner, both in NFC."""

    tenant: str
    owner: str


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
    """An entry as committed. ``recorded_at`` is in microseconds since the epoch."""

    seq: int
    owner_no: int
    kind: EntryKind
    subject: str
    payload: str
    recorded_at: int
    vector: bytes | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """Which of an owner's memories a request may see; enforced inside every channel.

    Attributes:
        scopes: Allowed scopes; ``None``: all.
        excluded_scopes: Scopes that are not allowed (cross-scope hints).
        include_inactive: AUDIT mode: superseded, deprecated and archived memories too.
        time_from: Keep where ``valid_to`` is none or later (entities and preferences are exempt).
        time_to: Keep where ``valid_from`` is not later (same exemption).
        knowledge_at: Keep what was created by then.
        event_time_from: Keep where the stated time (else creation) is not earlier.
        event_time_to: Keep where it is not later.
        at: Instant at which edges must be valid.
    """

    scopes: frozenset[Scope] | None = None
    excluded_scopes: frozenset[Scope] = field(default_factory=frozenset)
    include_inactive: bool = False
    time_from: datetime | None = None
    time_to: datetime | None = None
    knowledge_at: datetime | None = None
    event_time_from: datetime | None = None
    event_time_to: datetime | None = None
    at: datetime | None = None
