"""Group commit: one thread appends everything that waits in one durable transaction.

A write is acknowledged when it is durable in the log *and* visible to readers of this process, so a
future resolves only after ``on_commit``. A lone write never waits for company; retrieval records
and the writes of a bulk load do, for a moment, because nobody waits for a single one of them.
"""

from __future__ import annotations

import copy
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
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
from prme_ray.model.times import micros
from storage.log import Log
from storage.records import Admission, Appended, Operation

__all__ = ["GroupCommit"]

_WRITE_PATIENCE_S = 0.05
"""Longest time that a write of a bulk load is kept back so that it can share a commit."""

_RECORD_PATIENCE_S = 0.25
"""The same for a record; longer, because nobody waits for it and a commit costs more than it does."""

_AGAIN_S = 0.1
"""Pause between attempts to hear from a database that did not answer a commit."""

_COMPANY = 32
"""So many writes wait for no more: they already cost little each."""

_report = logging.getLogger(__name__)


@dataclass(slots=True)
class _Write:
    admission: Admission
    due: float
    future: Future[Appended] = field(default_factory=Future)


@dataclass(slots=True)
class _Record:
    operation: Operation
    due: float
    future: Future[None] = field(default_factory=Future)


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
        self._writes: deque[_Write] = deque()
        self._records: deque[_Record] = deque()
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
        self._lost = 0
        self._losing = False
        self._loss_lock = threading.Lock()
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
        write = _Write(admission, _due(_WRITE_PATIENCE_S if patient else 0.0))
        with self._work:
            self._await_place(self._writes)
            self._writes.append(write)
            self._queued_writes += 1
            self._hurry(write.due)
        return write.future

    def submit_operation(self, operation: Operation, *, wait: bool = False) -> bool:
        """Queue a record that shares the next commit; return whether it was taken.

        Without ``wait`` this never blocks and never raises: a record that finds no place, or whose
        commit fails, is counted in :meth:`state` and reported to the log of the process. With
        ``wait`` it returns when the record is durable.

        Raises:
            StoreBusy, StoreClosed, WriteFailed, WriterFenced: as :meth:`submit`, only with ``wait``.
        """
        record = _Record(operation, _due(0.0 if wait else _RECORD_PATIENCE_S))
        try:
            self._check_process()
            with self._work:
                if wait:
                    self._await_place(self._records)
                else:
                    self._check_open()
                    if len(self._records) >= self._queue_limit:
                        self._lose(1, StoreBusy(what=f"the record queue of {self._log.path}", waited_s=0.0))
                        return False
                self._records.append(record)
                self._queued_records += 1
                self._hurry(record.due)
        except PrmeRayError as error:
            if wait:
                raise
            self._lose(1, error)
            return False
        if wait:
            record.future.result()
        return True

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
            "operations_lost": self._lost,
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
            raise _again(self._broken)
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
                records = [self._records.popleft() for _ in range(min(len(self._records), self._max_rows))]
                self._due = 0.0 if self._writes or self._records else math.inf
                self._progress.notify_all()
            # A caller may have cancelled while its write waited; from here on it cannot.
            self._commit([write for write in writes if write.future.set_running_or_notify_cancel()], records)
            with self._work:
                self._settled_writes += len(writes)
                self._settled_records += len(records)
                self._progress.notify_all()

    def _await_work(self) -> bool:
        """Wait for something to commit; false when closed and drained."""
        with self._work:
            while True:
                if self._writes or self._records:
                    left = self._due - time.monotonic()
                    if left <= 0 or self._closing or len(self._writes) >= _COMPANY:
                        return True
                    self._work.wait(left)
                elif self._closing:
                    return False
                else:
                    self._work.wait()

    def _commit(self, writes: Sequence[_Write], records: Sequence[_Record]) -> None:
        if not writes and not records:
            return  # all were cancelled
        if self._broken is not None:
            self._fail(writes, records, self._broken)
            return
        try:
            results = self._append(writes, records)
        except BaseException as error:  # every waiting caller must hear of it
            known = _as_write_failure(error, durable=False)
            if isinstance(known, WriterFenced):
                self._broken = known
            self._fail(writes, records, known)
            return
        self._commits += 1
        if records:
            self._losing = False
        for record in records:
            record.future.set_result(None)
        try:
            written = [result for result in results if result.rows]
            if written:
                self._on_commit(written)
        except BaseException as error:
            _report.exception("committed writes could not be made visible; reopen %s", self._log.path)
            self._broken = WriteFailed(detail=f"{self._log.path} needs reopening after: {error!r}", durable=False)
            self._fail_durable(writes, results, error)
            return
        for write, result in zip(writes, results, strict=True):
            _resolve(write, result)

    def _append(self, writes: Sequence[_Write], records: Sequence[_Record]) -> list[Appended]:
        admissions = [write.admission for write in writes]
        operations = [record.operation for record in records]
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
    ) -> list[Appended]:
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

    def _fail(self, writes: Sequence[_Write], records: Sequence[_Record], error: PrmeRayError) -> None:
        self._last_error = str(error)
        for write in writes:
            write.future.set_exception(_again(error))
        for record in records:
            record.future.set_exception(_again(error))
        if records:
            self._lose(len(records), error)

    def _fail_durable(self, writes: Sequence[_Write], results: Sequence[Appended], error: BaseException) -> None:
        failure = WriteFailed(detail=f"it could not be made visible: {error!r}", durable=True)
        self._last_error = str(failure)
        for write, result in zip(writes, results, strict=True):
            if result.rows:
                write.future.set_exception(_again(failure))
            else:
                _resolve(write, result)

    def _lose(self, count: int, error: PrmeRayError) -> None:
        with self._loss_lock:
            self._lost += count
            first, self._losing = not self._losing, True
        if first:  # once until a record succeeds again, so that an outage does not fill the process's log
            _report.warning("operation records are being lost: %s", error)


def _due(patience_s: float) -> float:
    return time.monotonic() + patience_s


def _resolve(write: _Write, result: Appended) -> None:
    if result.error is not None:
        write.future.set_exception(result.error)
    else:
        write.future.set_result(result)


def _as_write_failure(error: BaseException, *, durable: bool) -> PrmeRayError:
    if isinstance(error, PrmeRayError):
        return error
    failure = WriteFailed(detail=repr(error), durable=durable)
    failure.__cause__ = error
    return failure


def _again(error: PrmeRayError) -> PrmeRayError:
    """Return a copy: one exception raised in several threads would mix their tracebacks."""
    twin = copy.copy(error)
    twin.__cause__ = error
    return twin
