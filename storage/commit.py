"""Group commit: one thread appends everything that waits in one durable transaction.

A write is acknowledged when it is durable in the log *and* visible to readers of this process, so a
future resolves only after ``on_commit``. A lone write never waits for company; retrieval records
and the writes of a bulk load do, for a moment, because nobody waits for a single one of them.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from typing import Any

from prme_ray.model.errors import (
    PrmeRayError,
    StoreBusy,
    StoreClosed,
    TransientError,
    WriteFailed,
    WriterFenced,
)
from prme_ray.model.frames import where
from prme_ray.model.times import micros
from storage.log import Log
from storage.losses import Losses
from storage.records import LATE_RECORDS, Admission, Appended, Committed, LateOperation, Operation, OperationRow
from storage.waiting import LateRecords, Record, Write, as_write_failure, made_of, reason_of, twin_of

__all__ = ["GroupCommit"]

_WRITE_PATIENCE_S = 0.05
"""Longest time that a write of a bulk load is kept back so that it can share a commit."""

_RECORD_PATIENCE_S = 0.25
"""The same for a record; longer, because nobody waits for it and a commit costs more than it does."""

_BREATH_S = 0.001
"""Time before the bytes of a late record are made: its request still has an answer to give. Not longer: the next
request soon waits for its embedding, which leaves the interpreter free; many made at once would hold one up."""

_AGAIN_S = 0.1
"""Pause between attempts to hear from a database that did not answer a commit."""

_COMPANY = 32
"""So many writes wait for no more: they already cost little each."""

_BESIDE_WRITES = 32
"""Most records that a commit with writes takes along: making one takes time, and the writes wait for it."""

_report = logging.getLogger(__name__)


class GroupCommit:
    """The committer thread of one log. Any thread may submit.

    Args:
        log: Where writes go.
        epoch: This writer's epoch, of ``log.begin_epoch()``.
        clock: Returns the current UTC time.
        on_commit: Makes committed admissions visible to readers; called in the committer thread, in
            commit order, with those that wrote something. If it raises, this committer is broken.
        max_rows: Most writes, and most records, a commit takes.
        queue_limit: Most writes that wait; as many records.
        timeout_s: Longest wait for a place in the queue, or for a database that left a commit
            unanswered, in seconds.
    """

    def __init__(
        self,
        log: Log,
        *,
        epoch: int,
        clock: Callable[[], datetime],
        on_commit: Callable[[list[Appended]], None],
        max_rows: int = 256,
        queue_limit: int = 4096,
        timeout_s: float = 30.0,
    ) -> None:
        self._log = log
        self._epoch = epoch
        self._clock = clock
        self._on_commit = on_commit
        self._max_rows = max_rows
        self._queue_limit = queue_limit
        self._timeout_s = timeout_s
        self._pid = os.getpid()
        self._writes: deque[Write] = deque()
        self._records: deque[Record] = deque()
        lock = threading.Lock()
        self._work = threading.Condition(lock)  # the committer waits here
        self._progress = threading.Condition(lock)  # callers wait here, for a place or for a flush
        self._due = math.inf  # when something in the queues has waited long enough
        self._queued_writes = self._settled_writes = 0
        self._queued_records = self._settled_records = 0
        self._closing = False
        self._broken: PrmeRayError | None = None
        self._last_error: str | None = None
        self._commits = 0
        self._failing = False  # whether the last commit failed
        self._losses = Losses()
        self._late = LateRecords()
        self._thread = threading.Thread(target=self._run, name="prme-ray-commit", daemon=True)
        self._thread.start()

    # --- callers ---------------------------------------------------------------------------------

    def submit(self, admission: Admission, *, patient: bool = False) -> Future[Appended]:
        """Queue a write; the future resolves when it is durable and visible.

        A ``patient`` write may be kept back for a moment, so that it can share a commit with others
        of a bulk load; one that is not takes all that wait along.

        The future raises :class:`DuplicateSubject` or another refusal of ``storage.admit``;
        :class:`WriteFailed`, whose ``durable`` says whether the log holds it; :class:`StoreBusy` when
        the log stayed locked; :class:`WriterFenced` when a newer writer took over.

        Raises:
            StoreBusy: no place in the queue within ``timeout_s``.
            StoreClosed: closed, or used in a forked child.
            WriteFailed: an earlier failure broke this committer; reopen the store.
            WriterFenced: a newer writer took over.
        """
        self._check_process()
        write = Write(admission, time.monotonic() + (_WRITE_PATIENCE_S if patient else 0.0))
        with self._work:
            self._await_place(self._writes)
            self._writes.append(write)
            self._queued_writes += 1
            self._hurry(write.due)
        return write.future

    def record(self, operation: Operation | LateOperation) -> Future[OperationRow]:
        """Queue a record; the future resolves when it is durable, or when one that stands for it is found.

        The bytes of a late record are made in the committer's thread, and in this one where very many
        wait.

        The future raises what ``make`` raised; :class:`ConflictingOperation`; or as :meth:`submit`.

        Raises:
            StoreBusy, StoreClosed, WriteFailed, WriterFenced: as :meth:`submit`.
            Exception: what ``make`` raised.
        """
        self._check_process()
        record = Record(self._bounded(operation), time.monotonic())
        with self._work:
            self._await_place(self._records)
            self._enqueue(record)
        return record.future

    def submit_operation(self, operation: Operation | LateOperation, *, wait: bool = False) -> bool:
        """Queue a record that shares the next commit; return whether it can be relied on.

        Without ``wait`` this never blocks and never raises. True then means: it is queued, behind a
        log whose last commit succeeded. A record that finds no place, whose bytes cannot be made or
        whose commit fails is counted in :meth:`state` and reported to the log of the process. After a
        commit that failed, records are queued and tried, but the answer is false until one succeeds.
        With ``wait`` it returns when the record is durable.

        Raises:
            Exception: as :meth:`record` and its future, only with ``wait``.
        """
        if wait:
            self.record(operation).result()
            return True
        try:
            self._check_process()
            now = time.monotonic()
            record = Record(self._bounded(operation), now + _RECORD_PATIENCE_S, now + _BREATH_S)
            with self._work:
                self._check_open()
                if len(self._records) >= self._queue_limit:
                    raise StoreBusy(what=f"the record queue of {self._log.path}", waited_s=0.0)  # noqa: TRY301
                self._enqueue(record)
        except Exception as error:
            self._losses.add(1, reason_of(error))
            return False
        return not self._failing

    def _bounded(self, operation: Operation | LateOperation) -> Operation | LateOperation:
        """Return the operation; made where so many late ones wait that they would fill the memory."""
        return made_of(operation) if len(self._late) >= LATE_RECORDS else operation

    def _enqueue(self, record: Record) -> None:
        self._records.append(record)
        self._queued_records += 1
        if self._late.add(record):
            self._work.notify()
        self._hurry(record.due)

    def flush(self) -> None:
        """Return when everything submitted before is committed or has failed."""
        self._check_process()
        with self._work:
            if self._writes or self._records:
                self._hurry(0.0)
            writes, records = self._queued_writes, self._queued_records
            while self._settled_writes < writes or self._settled_records < records:
                self._progress.wait()

    def state(self) -> dict[str, Any]:
        """Return queue lengths, number of commits and failures, for health."""
        return {
            "waiting": len(self._writes),
            "operations_waiting": len(self._records),
            "operations_lost": self._losses.count,
            "commits": self._commits,
            "last_error": self._last_error,
            "broken": None if self._broken is None else str(self._broken),
        }

    def close(self) -> None:
        """Commit what waits, then stop. Repeatable; does nothing in a forked child."""
        if os.getpid() != self._pid:
            return
        with self._work:
            self._closing = True
            self._work.notify()
            self._progress.notify_all()
        self._thread.join()

    def _check_process(self) -> None:
        # Threads do not survive a fork: in a child nobody would ever take the write.
        if os.getpid() != self._pid:
            raise StoreClosed(path=self._log.path)

    def _check_open(self) -> None:
        if self._broken is not None:
            raise twin_of(self._broken)
        if self._closing:
            raise StoreClosed(path=self._log.path)

    def _hurry(self, due: float) -> None:
        """Let the committer know, holding the lock, that something queued is due at that time."""
        if due < self._due or len(self._writes) >= _COMPANY:
            self._due = min(self._due, due)
            self._work.notify()

    def _await_place(self, queue: deque[Any]) -> None:
        deadline = time.monotonic() + self._timeout_s
        self._check_open()
        while len(queue) >= self._queue_limit:
            left = deadline - time.monotonic()
            if left <= 0:
                raise StoreBusy(what=f"the write queue of {self._log.path}", waited_s=self._timeout_s)
            self._progress.wait(left)
            self._check_open()

    # --- committer thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while self._await_work():
            with self._work:
                writes = [self._writes.popleft() for _ in range(min(len(self._writes), self._max_rows))]
                most = min(_BESIDE_WRITES, self._max_rows) if writes else self._max_rows
                records = [self._records.popleft() for _ in range(min(len(self._records), most))]
                self._late.leave(records)
                self._due = 0.0 if self._writes or self._records else math.inf
                self._progress.notify_all()
            # A caller may have cancelled while it waited; from here on it cannot.
            self._commit(
                [write for write in writes if write.future.set_running_or_notify_cancel()],
                [record for record in records if record.future.set_running_or_notify_cancel()],
            )
            with self._work:
                self._settled_writes += len(writes)
                self._settled_records += len(records)
                self._progress.notify_all()

    def _await_work(self) -> bool:
        """Wait for something to commit, making the bytes of late records meanwhile; false when closed and drained."""
        while True:
            with self._work:
                found = self._wait()
            if isinstance(found, bool):
                return found
            # What fails here fails again where it counts.
            with suppress(Exception):
                found.operation = made_of(found.operation)

    def _wait(self) -> Record | bool:
        """Wait, holding the lock; return a record to be made, or whether there is something to commit."""
        while True:
            now = time.monotonic()
            if self._writes or self._records:
                if self._due <= now or self._closing or len(self._writes) >= _COMPANY:
                    return True
                if (record := self._late.take(now)) is not None:
                    return record
                self._work.wait(min(self._due, self._late.early) - now)
            elif self._closing:
                return False
            else:
                self._work.wait()

    def _commit(self, writes: Sequence[Write], records: Sequence[Record]) -> None:
        if self._broken is not None:
            self._fail(writes, records, self._broken)
            return
        made = self._make(records)
        if not writes and not made:
            return  # all were cancelled, or could not be made
        try:
            appended, recorded = self._append(writes, [operation for _, operation in made])
        except BaseException as error:  # every waiting caller must hear of it
            known = as_write_failure(error, durable=False)
            if isinstance(known, WriterFenced):
                self._broken = known
            self._fail(writes, [record for record, _ in made], known)
            return
        self._commits += 1
        self._failing = False
        if made:
            self._losses.end()
        for (record, _), outcome in zip(made, recorded, strict=True):
            record.settle(outcome)
        try:
            written = [result for result in appended if result.rows]
            if written:
                self._on_commit(written)
        except BaseException as error:
            _report.error("committed writes could not be made visible; reopen %s: %s", self._log.path, where(error))
            self._broken = WriteFailed(detail=f"{self._log.path} needs reopening after: {error!r}", durable=False)
            self._fail_durable(writes, appended, error)
            return
        for write, result in zip(writes, appended, strict=True):
            write.settle(result)

    def _make(self, records: Sequence[Record]) -> list[tuple[Record, Operation]]:
        """Return the records with their operations, without those whose bytes cannot be made."""
        made: list[tuple[Record, Operation]] = []
        for record in records:
            try:
                # Kept no longer: a late operation holds on to the tables of its request.
                record.operation = operation = made_of(record.operation)
                made.append((record, operation))
            except BaseException as error:  # whoever waits for it must hear of it, and nobody else
                record.future.set_exception(error)
                self._losses.add(1, reason_of(error))
        return made

    def _append(self, writes: Sequence[Write], operations: Sequence[Operation]) -> Committed:
        admissions = [write.admission for write in writes]
        recorded_at = micros(self._clock())
        try:
            return self._log.append(admissions, recorded_at=recorded_at, epoch=self._epoch, operations=operations)
        except WriteFailed as unknown:
            if unknown.durable is not None:
                raise
            return self._find_out(unknown, admissions, operations, recorded_at=recorded_at)

    def _find_out(
        self,
        unknown: WriteFailed,
        admissions: Sequence[Admission],
        operations: Sequence[Operation],
        *,
        recorded_at: int,
    ) -> Committed:
        """Send a batch again whose commit was not answered: it is written once, whatever became of it."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._log.append(
                    admissions, recorded_at=recorded_at, epoch=self._epoch, operations=operations, again=True
                )
            except WriterFenced as fenced:
                self._broken = fenced
                raise unknown from fenced  # it may have been written before the other writer came
            except TransientError as failure:
                if time.monotonic() >= deadline or self._closing:
                    raise unknown from failure
            time.sleep(_AGAIN_S)

    def _fail(self, writes: Sequence[Write], records: Sequence[Record], error: PrmeRayError) -> None:
        self._last_error = str(error)
        self._failing = True
        for write in writes:
            write.future.set_exception(twin_of(error))
        for record in records:
            record.future.set_exception(twin_of(error))
        if records:
            self._losses.add(len(records), reason_of(error))

    def _fail_durable(self, writes: Sequence[Write], results: Sequence[Appended], error: BaseException) -> None:
        failure = WriteFailed(detail=f"it could not be made visible: {error!r}", durable=True)
        self._last_error = str(failure)
        for write, result in zip(writes, results, strict=True):
            if result.rows:
                write.future.set_exception(twin_of(failure))
            else:
                write.settle(result)
