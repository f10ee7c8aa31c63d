"""Writes that may be repeated: the same key and the same request give the same ids, and one write.

A caller that got no answer cannot know whether its write is durable. With a key it asks again: ids are
derived from owner, key and place in the request (UUIDv5), so a repeat meets the records of the first
attempt inside the log's own transaction, in whatever process or at whatever moment it arrives.
Every keyed write admits an event whose id is the key's and which keeps the digest of the request: what
a structured memory or an edge has no event for, gets an empty one. The log takes an id once, so of two
requests with one key one is admitted, and the digest says whether the other is its repeat.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from prme_ray.model.errors import DuplicateSubject, IdempotencyConflict
from prme_ray.model.nodes import Event
from prme_ray.model.text import uuid_of
from storage.records import Admission, Appended, Entry, EntryKind, LogRow, OwnerKey

__all__ = ["Records", "WriteKey", "settle", "write_key"]

_IDS = uuid.UUID("b1c5c1f2-9a0e-5d3f-8e57-2f0c6f6a4d11")
_NO_TEXT = hashlib.sha256(b"").hexdigest()


class Records(Protocol):
    """What a repeat is compared with: the owner's log."""

    def record(self, owner: OwnerKey, kind: EntryKind, subject: str) -> LogRow | None:
        """Return one of the owner's log entries, or ``None``."""
        ...


@dataclass(frozen=True, slots=True)
class WriteKey:
    """A caller's key for one request of one owner.

    Attributes:
        owner: Whose write it is; the same key of another owner is another key.
        key: The UUID the caller gave.
        digest: SHA-256 of everything the request says, in hex.
    """

    owner: OwnerKey
    key: str
    digest: str

    def id_of(self, what: str, item: int = 0) -> str:
        """Return the id of what the request's ``item`` brings: ``event``, ``node`` or ``edge``."""
        # Lengths frame the parts, so that no two lists of parts spell the same name.
        parts = (self.owner.tenant, self.owner.owner, self.key, what, str(item))
        return str(uuid.uuid5(_IDS, "".join(f"{len(part)}:{part}" for part in parts)))

    def ids(self, item: int) -> Callable[[], str]:
        """Return a source of ids as ``draft_memory`` takes them: the event's, then the memory's."""
        return iter([self.id_of("event", item), self.id_of("node", item)]).__next__

    def marker(self, now: datetime) -> Entry:
        """Return the empty event that stands for a write without a source event."""
        event = Event(
            id=self.id_of("event"), content="", timestamp=now, content_hash=_NO_TEXT, request_digest=self.digest
        )
        return Entry(EntryKind.EVENT, event.id, event.model_dump_json(exclude_none=True))


def write_key(key: str | None, owner: OwnerKey, verb: str, given: Any) -> WriteKey | None:
    """Return the key of a write, or ``None`` where the caller gave none.

    Args:
        key: UUID, or ``None``.
        owner: Whose write it is.
        verb: What is asked for; the same arguments of another verb are another request.
        given: The arguments. A list of items is one request, whatever is in it.

    Raises:
        InvalidRequest: ``key`` is not a UUID.
    """
    if key is None:
        return None
    parts = given if isinstance(given, list) else [given]
    digests = [verb, *(_digest(part) for part in parts)]
    return WriteKey(owner, uuid_of(key, "idempotency_key"), hashlib.sha256("\n".join(digests).encode()).hexdigest())


def settle(records: Records, admission: Admission, future: Future[Appended], key: WriteKey | None) -> int:
    """Return the owner's number of the write's last entry, be it this write or the one that it repeats.

    Raises:
        IdempotencyConflict: the key was used for another request.
        PrmeRayError: what the write itself failed with.
    """
    try:
        return future.result().rows[-1].owner_seq
    except DuplicateSubject as error:
        # Refusals are decided inside a transaction and told after its commit, so the other record is there.
        first = admission.entries[0]
        if key is None or (error.kind, error.subject) != (str(first.kind), first.subject):
            raise
        row = records.record(admission.owner, first.kind, first.subject)
        if row is None:
            raise
        if Event.model_validate_json(row.payload).request_digest != key.digest:
            raise IdempotencyConflict(key=key.key) from error
        last = admission.entries[-1]
        return (records.record(admission.owner, last.kind, last.subject) or row).owner_seq


def _digest(given: Any) -> str:
    try:
        text = json.dumps(given, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return "-"  # not JSON, so the request is refused anyway
    return hashlib.sha256(text.encode()).hexdigest()
