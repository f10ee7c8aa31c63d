"""Small admissions for the tests of the log."""

from __future__ import annotations

import struct

from storage.records import Admission, Entry, EntryKind, OwnerKey
from storage.sql_log import sqlite_log

ANNA = OwnerKey("acme", "anna")
BEN = OwnerKey("acme", "ben")
DIMENSION = 2
NOW = 1_777_888_999_000_001


def vector(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def event(subject: str, payload: str = "{}", *, if_absent: bool = False) -> Entry:
    return Entry(EntryKind.EVENT, subject, payload, if_absent=if_absent)


def node(subject: str, values: bytes | None = None, payload: str = "{}", *, if_absent: bool = False) -> Entry:
    return Entry(EntryKind.NODE, subject, payload, vector=values, if_absent=if_absent)


def admission(*entries: Entry, owner: OwnerKey = ANNA, generation: int = 1) -> Admission:
    return Admission(owner, entries, generation)


class Writer:
    """A log with its epoch and one encoder generation, as a shard's writer has it."""

    def __init__(self, path):
        self.log = sqlite_log(path)
        self.epoch = self.log.begin_epoch()
        self.generation = self.log.register_generation("id-1", "mini", DIMENSION, created_at=NOW, epoch=self.epoch)

    def append(self, *admissions, operations=()):
        return self.log.append(admissions, recorded_at=NOW, epoch=self.epoch, operations=operations)
