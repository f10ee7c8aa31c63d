"""The contract of a shard's log: append-only, numbered without gaps, the only truth.

Everything else in a store is derived from it and can be made again. ``SqlLog`` keeps it in SQLite
or, on a cluster, in another SQL database; whatever implements this protocol passes the same tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.chain import ChainReport
from storage.records import (
    Admission,
    Committed,
    EntryKind,
    Generation,
    LastEntry,
    LogRow,
    Operation,
    OperationRow,
    OwnerKey,
)

__all__ = ["Log"]


class Log(Protocol):
    """Entries have one sequence a shard, operations another, so a retrieval changes no state number.

    Times are microseconds since 1970-01-01T00:00Z and always arguments. Methods may be called from
    any thread. Writing needs the epoch of :meth:`begin_epoch`; once a newer writer has begun, every
    write of the older one raises :class:`WriterFenced`. All methods raise :class:`StoreClosed`
    after :meth:`close`, :class:`StoreBusy` when the database stays locked and :class:`StoreCorrupt`
    when it cannot be read; writing methods raise :class:`ReadOnlyStore` on a log opened for reading
    and :class:`WriteFailed` when the database failed: nothing was written, or, where ``durable`` is
    ``None``, the answer to the commit was lost and the batch is to be sent again to find out.
    """

    @property
    def path(self) -> str:
        """Where the log is, for messages."""
        ...

    def begin_epoch(self) -> int:
        """Return a new epoch, larger than every earlier one, and fence earlier writers."""
        ...

    def current_epoch(self) -> int:
        """Return the newest writer's epoch, 0 before the first. Very cheap, and locks nothing."""
        ...

    def append(
        self,
        admissions: Sequence[Admission],
        *,
        recorded_at: int,
        epoch: int,
        operations: Sequence[Operation] = (),
        again: bool = False,
    ) -> Committed:
        """Commit ``admissions`` and ``operations`` in one durable transaction.

        Each admission is taken whole or refused whole (``Appended.error``); a refusal leaves the
        others alone. See ``storage.admit`` for what is refused and what is skipped. One that the log
        has already, byte for byte, is answered with the entries it brought then (``repeated``), so a
        write whose acknowledgement was lost may simply be sent again.

        Args:
            admissions: Writes of any owners.
            recorded_at: Time of the commit.
            epoch: The writer's epoch.
            operations: Records about owners. Each is chained to the one before of its owner.
            again: The batch may have been committed before: also leave out its operations that the
                log holds already.

        Returns:
            One result an admission and one an operation, each in order. Sequence numbers are dense and
            rise in that order.
        """
        ...

    def register_generation(
        self, identity: str, model_name: str, dimension: int, *, created_at: int, epoch: int
    ) -> int:
        """Return the generation of encoder ``identity``, registering it when it is new.

        Raises:
            InvalidRequest: the identity is known with another dimension.
        """
        ...

    def generations(self) -> list[Generation]:
        """Return every registered generation, oldest first."""
        ...

    def last_seq(self) -> int:
        """Return the number of the newest committed entry, 0 when there is none. Very cheap."""
        ...

    def owner_no(self, owner: OwnerKey) -> int | None:
        """Return the owner's number in this log, or ``None`` for an owner never written."""
        ...

    def owners(self) -> list[tuple[int, OwnerKey]]:
        """Return every owner with its number, by number."""
        ...

    def last_of(self, owner_no: int, *, upto: int | None = None, by: int | None = None) -> LastEntry:
        """Return both numbers of the owner's newest entry, 0 and 0 where there is none.

        Args:
            owner_no: The owner.
            upto: Only entries with ``seq <= upto``.
            by: Only entries recorded at or before this time.
        """
        ...

    def seq_of(self, owner_no: int, owner_seq: int) -> int | None:
        """Return the number in the shard of the owner's entry ``owner_seq``, or ``None``."""
        ...

    def read(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        owner_no: int | None = None,
        generation: int | None = None,
        limit: int | None = None,
    ) -> list[LogRow]:
        """Return entries with ``after < seq <= upto``, by ``seq``.

        Args:
            after: Exclusive lower bound.
            upto: Inclusive upper bound; none: the newest.
            owner_no: Only this owner's.
            generation: Attach the vectors of this generation; none: no vectors are read.
            limit: At most so many, the lowest numbers first.
        """
        ...

    def record(self, owner_no: int, kind: EntryKind, subject: str) -> LogRow | None:
        """Return the owner's entry with that id (without vector), or ``None``."""
        ...

    def counts(
        self, *, upto: int | None = None, owner_no: int | None = None, generation: int | None = None
    ) -> dict[str, int]:
        """Return the number of entries by kind (every kind is a key) up to ``upto``.

        With ``generation`` also ``"vectors"``: how many entries have a vector of that generation.
        """
        ...

    def operations(
        self, owner_no: int, *, after: int = 0, limit: int | None = None, op_type: str | None = None
    ) -> list[OperationRow]:
        """Return the owner's operations with ``owner_op_seq > after``, by ``owner_op_seq``."""
        ...

    def operations_of(self, owner_no: int, target: str, *, op_type: str) -> list[OperationRow]:
        """Return the owner's operations of a type on ``target``, by ``owner_op_seq``."""
        ...

    def operations_by_target(
        self, owner_no: int, *, op_type: str, after_target: str | None = None, limit: int | None = None
    ) -> list[OperationRow]:
        """Return the owner's operations of a type by (``target``, ``owner_op_seq``).

        Args:
            owner_no: The owner.
            op_type: The type.
            after_target: Only targets behind this one, compared by their UTF-8 bytes.
            limit: At most so many.
        """
        ...

    def verify_chain(self, owner_no: int) -> ChainReport:
        """Return whether the owner's operations are as they were written (``storage.chain``)."""
        ...

    def close(self) -> None:
        """Free connections and files. Repeatable."""
        ...
