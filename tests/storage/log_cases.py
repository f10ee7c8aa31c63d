"""Small admissions for the tests of the log."""

from __future__ import annotations

import struct

from storage.records import Admission, Entry, EntryKind, OwnerKey

ANNA = OwnerKey("acme", "anna")
BEN = OwnerKey("acme", "ben")
DIMENSION = 2


def vector(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def event(subject: str, payload: str = "{}", *, if_absent: bool = False) -> Entry:
    return Entry(EntryKind.EVENT, subject, payload, if_absent=if_absent)


def node(subject: str, values: bytes | None = None, payload: str = "{}", *, if_absent: bool = False) -> Entry:
    return Entry(EntryKind.NODE, subject, payload, vector=values, if_absent=if_absent)


def admission(*entries: Entry, owner: OwnerKey = ANNA, generation: int = 1) -> Admission:
    return Admission(owner, entries, generation)
