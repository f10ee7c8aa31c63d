"""Keeps a shard's LanceDB tables up to date with its log, in the background and in batches.

A write is acknowledged without waiting for this: until an entry has arrived here it is read from
the log. That allows few, large adds (1,000 adds of one row would leave 3,003 files) and lets a
failing disk delay the tables without losing anything; :meth:`Projector.state` then says so.

The log fences writers, LanceDB does not. So before every batch and every compaction the projector asks
the log whether its epoch is still the newest, and stops for good when it is not. What had begun at that
very moment may still arrive; :meth:`storage.lance.Projection.follow` of the new writer puts it right.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from prme_ray.model.errors import PrmeRayError, ProjectionFailed, StoreCorrupt, WriterFenced
from prme_ray.model.frames import where
from prme_ray.model.times import iso
from storage.lance import Projection
from storage.records import LogRow
from storage.tables import EdgeTable, NodeTable

__all__ = ["LogReader", "Projector"]

_LONGEST_PAUSE_S = 60.0
# A compaction rewrites the table, so a larger one waits for more fragments.
_ROWS_PER_SCALE = 100_000
_LARGEST_SCALE = 8

_log = logging.getLogger(__name__)


class LogReader(Protocol):
    """The part of the log that a projection reads."""

    @property
    def path(self) -> str:
        """Where the log is, for messages."""
        ...

    def current_epoch(self) -> int:
        """Return the newest writer's epoch."""
        ...

    def last_seq(self) -> int:
        """Return the newest sequence number, 0 for an empty log."""
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
        """Return entries with ``after < seq <= upto`` in order, with the generation's vectors."""
        ...


class Projector:
    """Applies a shard's log to its node and edge table. One a shard, in the writing process.

    The thread starts with the first entry that waits, and sleeps while none does.

    Args:
        log: The shard's log.
        nodes: Its node table, open for writing.
        edges: Its edge table, open for writing.
        epoch: The writer's epoch in the log.
        generation: Encoder generation of the vectors in ``nodes``.
        batch_rows: Waiting entries that start a batch, and the most a batch holds.
        idle_s: Quiet time in seconds after which fewer are written anyway.
        compact_after_fragments: New data files of a table that start its compaction.
        clock: Returns the current UTC time, for :meth:`state` only.
    """

    def __init__(
        self,
        log: LogReader,
        nodes: NodeTable,
        edges: EdgeTable,
        *,
        epoch: int,
        generation: int,
        batch_rows: int = 512,
        idle_s: float = 2.0,
        compact_after_fragments: int = 16,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._log = log
        self._tables: dict[str, Projection] = {"nodes": nodes, "edges": edges}
        self._epoch = epoch
        self._generation = generation
        self._batch_rows = batch_rows
        self._idle_s = idle_s
        self._compact_after = compact_after_fragments
        self._clock = clock
        self._settled = {name: min(1, table.fragments()) for name, table in self._tables.items()}
        self._applied = self.position
        self._newest = self._applied
        self._notified_at = 0.0
        self._failures = 0
        self._last_error: str | None = None
        self._cut_off = False
        self._removed = 0
        self._last_compaction: datetime | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        self._wake = threading.Condition(threading.Lock())
        self._apply_lock = threading.Lock()  # one add or compaction at a time

    @property
    def position(self) -> int:
        """Largest sequence number that both tables hold."""
        return min(table.position for table in self._tables.values())

    # -- called by the committer

    def notify(self, seq: int) -> None:
        """Say that the log has been committed up to ``seq``. Takes microseconds and never fails."""
        with self._wake:
            asleep = self._newest <= self._applied
            self._newest = max(self._newest, seq)
            self._notified_at = time.monotonic()
            if self._thread is None and not self._closing and not self._cut_off:
                self._thread = threading.Thread(target=self._work, name="prme-projector", daemon=True)
                self._thread.start()
            elif asleep or self._newest - self._applied >= self._batch_rows:
                self._wake.notify()

    # -- called by whoever opened the shard

    def catch_up(self) -> None:
        """Apply what the log holds beyond the tables, at open; less than a batch may wait.

        Raises:
            StoreCorrupt: a table holds entries that the log does not.
            ProjectionFailed: a table could not be written.
            WriterFenced: a newer writer took over.
        """
        newest = self._log.last_seq()
        for table in self._tables.values():
            if table.position > newest:
                detail = f"holds entries up to {table.position}, but the log ends at {newest}: was the log replaced?"
                raise StoreCorrupt(path=table.place.uri, detail=detail)
        self._attempt(self._follow)
        if newest - self._applied > self._batch_rows:
            self.flush()
        elif newest > self._applied:
            self.notify(newest)

    def flush(self) -> None:
        """Apply everything the log holds now, before returning.

        Raises:
            ProjectionFailed: a table could not be written. The log is unharmed and the background
                thread tries again.
            WriterFenced: a newer writer took over, and applies the log from now on.
        """
        newest = self._log.last_seq()
        if newest > self._applied:
            self.notify(newest)
        while self._applied < newest:
            self._attempt(lambda: self._apply_batch(newest))

    def compact(self) -> None:
        """Compact both tables now.

        Raises:
            ProjectionFailed: a table could not be written.
            WriterFenced: a newer writer took over.
        """
        self._attempt(lambda: self._compact(1))

    def close(self) -> None:
        """Stop the thread, apply the rest, and compact what has become scattered.

        A writer that was cut off only stops: what it acknowledged is in the log, and the tables are
        its successor's.

        Raises:
            ProjectionFailed: a table could not be written; the rest is applied at the next open.
        """
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
        try:
            self.flush()
            self._attempt(lambda: self._compact(max(2, self._compact_after // 4)))
        except WriterFenced as error:
            _log.warning("the tables are left to the newer writer: %s", error)

    def state(self) -> dict[str, Any]:
        """Return what health shows.

        ``position`` and ``lag`` (both in log entries); rows, files (``None`` on a URI that is no folder)
        and fragments of each table; the time of the last compaction; how many rows of a writer that
        was cut off were removed; whether this writer is ``cut_off`` itself; and the failures since the
        last success with their latest text.
        """
        position = self.position
        return {
            "position": position,
            "lag": max(0, self._log.last_seq() - position),
            "tables": {
                name: {"rows": table.count(), "files": table.files(), "fragments": table.fragments()}
                for name, table in self._tables.items()
            },
            "last_compaction": None if self._last_compaction is None else iso(self._last_compaction),
            "removed_rows": self._removed,
            "cut_off": self._cut_off,
            "failures": self._failures,
            "last_error": self._last_error,
        }

    # -- the thread

    def _work(self) -> None:
        while self._wait():
            try:
                self._attempt(lambda: self._apply_batch(self._newest))
            except WriterFenced as error:
                _log.warning("the tables are left to the newer writer: %s", error)
                return
            except Exception as error:
                _log.error("the tables could not follow the log; trying again: %s", where(error))

    def _wait(self) -> bool:
        """Sleep until a batch is due; return false when closing."""
        with self._wake:
            if self._failures:
                pause = min(self._idle_s * 2 ** min(self._failures, 16), _LONGEST_PAUSE_S)
                self._wake.wait_for(lambda: self._closing, pause)
                return not self._closing
            while not self._closing:
                waiting = self._newest - self._applied
                quiet_for = time.monotonic() - self._notified_at
                if waiting >= self._batch_rows or (waiting > 0 and quiet_for >= self._idle_s):
                    return True
                self._wake.wait(None if waiting <= 0 else self._idle_s - quiet_for)
            return False

    # -- the work

    def _attempt(self, work: Callable[[], None]) -> None:
        """Do ``work`` alone and as the newest writer; keep the failure for :meth:`state` and raise it."""
        with self._apply_lock:
            try:
                self._check_epoch()
                work()
            except Exception as error:
                self._failures += 1
                self._last_error = f"{type(error).__name__}: {error}"[:500]
                if isinstance(error, PrmeRayError):
                    raise
                raise ProjectionFailed(path=self._tables["nodes"].place.uri, detail=self._last_error) from error
            self._failures, self._last_error = 0, None

    def _check_epoch(self) -> None:
        current = self._log.current_epoch()
        if current != self._epoch:
            self._cut_off = True
            raise WriterFenced(path=self._log.path, epoch=self._epoch, current=current)

    def _follow(self) -> None:
        for table in self._tables.values():
            self._removed += table.follow()
        self._applied = self.position

    def _apply_batch(self, upto: int) -> None:
        self._follow()
        after = self._applied
        if after < upto:
            rows = self._log.read(after=after, upto=upto, generation=self._generation, limit=self._batch_rows)
            if not rows:
                raise StoreCorrupt(path="the log", detail=f"ends at {upto} but has no entry after {after}")
            for table in self._tables.values():
                table.append(rows)
        self._applied = self.position
        self._compact(self._compact_after)

    def _compact(self, fragments: int) -> None:
        """Compact each table that has at least so many new fragments, more where it is large."""
        for name, table in self._tables.items():
            scale = min(_LARGEST_SCALE, 1 + table.size() // _ROWS_PER_SCALE)
            if table.fragments() - self._settled[name] >= fragments * scale:
                table.compact()
                self._settled[name] = table.fragments()
                self._last_compaction = self._clock()
