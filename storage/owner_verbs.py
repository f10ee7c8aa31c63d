"""What may be asked and written about one owner, the same in a writer's store and in a coordinator's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import replace
from typing import Protocol

from prme_ray.model.errors import InvalidRequest, SnapshotGone
from storage.chain import CHAIN_START, ChainReport
from storage.records import (
    EntryKind,
    LastEntry,
    LateOperation,
    LogRow,
    Operation,
    OperationRow,
    OwnerKey,
    Repeat,
)
from storage.shard import Shard
from storage.view import OwnerView

__all__ = ["OwnerVerbs", "Recorder", "check_owner"]


class Recorder(Protocol):
    """Takes records about the owners of a shard."""

    def record(self, operation: Operation) -> Future[OperationRow]:
        """Queue a record; the future resolves when it is durable."""
        ...


class OwnerVerbs(ABC):
    """Base of :class:`storage.store.Store` and of a coordinator's store."""

    @abstractmethod
    def shard_of(self, owner: OwnerKey) -> Shard | None:
        """Return the owner's shard, for reading; ``None`` where it was never written."""

    @abstractmethod
    def writer(self, owner: OwnerKey) -> Recorder:
        """Return what takes this owner's writes."""

    @abstractmethod
    def empty_view(self) -> OwnerView:
        """Return the view of an owner for whom nothing was ever stored."""

    # -- states ---------------------------------------------------------------------------------

    def view(self, owner: OwnerKey) -> OwnerView | None:
        """Return the owner's newest committed state, or ``None`` for an owner nothing was ever stored for."""
        found = self._found(owner)
        if found is None:
            return None
        shard, number = found
        # A question about an owner is on record too, and gives them a number before the first memory.
        return shard.view(number) if shard.has_entries(number) else None

    def view_at(
        self, owner: OwnerKey, owner_seq: int, *, past: bool = False, generation: int | None = None
    ) -> OwnerView:
        """Return the owner's state at one number of theirs.

        Args:
            owner: Whose.
            owner_seq: The number.
            past: Any number they ever had, 0 included: folded from the log where it is no longer in
                memory, byte for byte as it was. Without it only a state that follows the newest ones.
            generation: With ``past``, the encoder generation of the vectors; ``None``: the one that is
                read.

        Raises:
            SnapshotGone: without ``past``: this process no longer has it, or the owner is not known.
            InvalidRequest: with ``past``: the owner never had that number.
            SnapshotExpired: with ``past``: the log has no vectors of the generation any more.
        """
        found = self._found(owner)
        if found is not None:
            shard, number = found
            if past:
                return shard.past_view(number, owner_seq, generation=generation)
            return shard.view_at(number, owner_seq)
        if not past:
            raise SnapshotGone(wanted=owner_seq, newest=0)
        if owner_seq != 0:
            raise InvalidRequest(argument="owner_seq", given=owner_seq, allowed="0: nothing was ever stored")
        return self.empty_view().as_past(1 if generation is None else generation)

    def newest(self, owner: OwnerKey) -> int:
        """Return the owner's number of their newest entry, 0 before the first."""
        return self._last_of(owner).owner_seq

    def number_at(self, owner: OwnerKey, micros: int) -> int:
        """Return the owner's number of the last entry recorded at or before a time, 0 where there is none.

        Args:
            owner: Whose.
            micros: Microseconds since the epoch.
        """
        return self._last_of(owner, by=micros).owner_seq

    def reading_generation(self, owner: OwnerKey) -> int:
        """Return the encoder generation whose vectors are read for an owner; 1 before the first vector."""
        shard = self.shard_of(owner)
        return 1 if shard is None else shard.reading_generation()

    # -- entries and operations -----------------------------------------------------------------

    def record(self, owner: OwnerKey, kind: EntryKind, subject: str) -> LogRow | None:
        """Return one of the owner's log entries, or ``None``."""
        found = self._found(owner)
        return None if found is None else found[0].log.record(found[1], kind, subject)

    def record_operation(self, owner: OwnerKey, operation: Operation) -> OperationRow:
        """Write a record that may come twice; return it as it is in the log, durable.

        Where the owner has one of the same type and target, the same bytes give back the row held, and
        nothing is added. Decided where it is written, so it holds whoever else sends it at that moment.

        Raises:
            ConflictingOperation: the owner has one with other bytes.
            InvalidRequest: the record is about somebody else.
            ReadOnlyStore, StoreBusy, StoreClosed, WriteFailed, WriterFenced: it was not written.
        """
        check_owner(owner, operation)
        return self.writer(owner).record(replace(operation, repeat=Repeat.ONCE)).result()

    @abstractmethod
    def settle(self, owner: OwnerKey) -> None:
        """Return when every record about an owner that this process queued before is in the log, or lost."""

    def operations(
        self, owner: OwnerKey, *, op_type: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[OperationRow]:
        """Return the owner's operations by their number, none for an owner who is not known.

        Args:
            owner: Whose.
            op_type: Only of this type.
            after: Only with a larger ``owner_op_seq``.
            limit: At most so many.
        """
        found = self._found(owner)
        return [] if found is None else found[0].log.operations(found[1], op_type=op_type, after=after, limit=limit)

    def operations_of(self, owner: OwnerKey, target: str, *, op_type: str) -> list[OperationRow]:
        """Return all of the owner's operations of a type about ``target``, by their number."""
        found = self._found(owner)
        return [] if found is None else found[0].log.operations_of(found[1], target, op_type=op_type)

    def operations_by_target(
        self, owner: OwnerKey, *, op_type: str, after_target: str | None = None, limit: int | None = None
    ) -> list[OperationRow]:
        """Return the owner's operations of a type by target, in the order of its UTF-8 bytes.

        A page may end between two operations of one target, and the next begins behind the target: page
        through types that have one operation a target, as :meth:`record_operation` writes them.

        Args:
            owner: Whose.
            op_type: The type.
            after_target: Only targets behind this one.
            limit: At most so many.
        """
        found = self._found(owner)
        if found is None:
            return []
        shard, number = found
        return shard.log.operations_by_target(number, op_type=op_type, after_target=after_target, limit=limit)

    def verify_chain(self, owner: OwnerKey) -> ChainReport:
        """Return whether the owner's operations are as they were written; a broken chain is reported, not raised."""
        found = self._found(owner)
        return ChainReport(0, CHAIN_START.hex()) if found is None else found[0].log.verify_chain(found[1])

    def _last_of(self, owner: OwnerKey, *, by: int | None = None) -> LastEntry:
        found = self._found(owner)
        return LastEntry(0, 0) if found is None else found[0].log.last_of(found[1], by=by)

    def _found(self, owner: OwnerKey) -> tuple[Shard, int] | None:
        """Return the owner's shard and number, ``None`` for an owner who is not known."""
        shard = self.shard_of(owner)
        number = None if shard is None else shard.owner_no(owner)
        return None if shard is None or number is None else (shard, number)


def check_owner(owner: OwnerKey, operation: Operation | LateOperation) -> None:
    """Refuse a record that is about somebody else: it would be written in another owner's shard.

    Raises:
        InvalidRequest: it is.
    """
    if operation.owner != owner:
        raise InvalidRequest(argument="operation", given=operation.owner, allowed=f"a record about {owner}")
