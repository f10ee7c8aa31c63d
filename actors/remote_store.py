"""The store as a coordinator sees it: it reads the log itself and has others write."""

from __future__ import annotations

import logging
import queue
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from actors.handles import Handles
from prme_ray.model.errors import PrmeRayError, StoreClosed
from storage.catalog import Catalog
from storage.parts import Part
from storage.records import Admission, Appended, EntryKind, LogRow, Operation, OwnerKey
from storage.residents import Residents
from storage.store import Store
from storage.view import OwnerView

__all__ = ["COORDINATOR_PARTS", "RemoteShard", "RemoteStore"]

_LOG = logging.getLogger("prme_ray.actors")

COORDINATOR_PARTS = frozenset({Part.RECORDS, Part.EDGES})
"""What the steps that run beside the coordinator read of an owner."""

_WRITES = 64
"""Writes of one coordinator under way at once."""
_RECORDS = 64
"""Most retrieval records sent in one call."""
_RECORD_PATIENCE_S = 0.1


class Stoppable(Protocol):
    """What a coordinator's store asks of its executor."""

    executions: int

    def close(self) -> None:
        """Let go of the actors."""
        ...


class RemoteShard:
    """The writing side of one shard: what ``prme_ray.writing`` asks of a ``Shard``."""

    def __init__(self, number: int, handles: Handles, pool: ThreadPoolExecutor) -> None:
        self.number = number
        self._handles = handles
        self._pool = pool
        self._generation: int | None = None

    def writing_generation(self) -> int:
        """Return the generation of new vectors; see ``Shard.writing_generation``."""
        if self._generation is None:
            self._generation = int(self._call("generation", self.number))
        return self._generation

    def submit(self, admission: Admission, *, patient: bool = False) -> Future[Appended]:
        """Send a write to the group's writer; the future resolves when it is durable and visible.

        A writer that dies meanwhile is asked again when it is back: it recognises what it has committed.
        """
        return self._pool.submit(self._append, admission, patient)

    def _append(self, admission: Admission, patient: bool) -> Appended:
        appended: Appended = self._call("append", admission, patient)
        return appended

    def _call(self, method: str, *arguments: Any) -> Any:
        group = partial(self._handles.group_of_shard, self.number)
        return self._handles.call("writer", group, method, *arguments)


class RemoteStore:
    """Same verbs as :class:`storage.store.Store`, for a process that is not the writer.

    Reads see every acknowledged write, as they look at the log. Records of retrievals are sent in the
    background and never delay an answer.

    Args:
        reader: The store, opened for reading, with :data:`COORDINATOR_PARTS`.
        handles: The actors.
        executor: What runs the flow; closed first.
        ends: End the actors on close (this process started them for itself).
    """

    read_only = False

    def __init__(self, reader: Store, handles: Handles, *, executor: Stoppable, ends: bool) -> None:
        self._reader = reader
        self._executor = executor
        self.handles = handles
        self._ends = ends
        self._pool = ThreadPoolExecutor(_WRITES, thread_name_prefix="prme-ray-write")
        self._shards: dict[int, RemoteShard] = {}
        self._records: queue.Queue[tuple[OwnerKey, Operation] | None] = queue.Queue(handles.deployment.cluster.queue)
        self._lost = 0
        self._closed = False
        self._sender = threading.Thread(target=self._send_records, name="prme-ray-records", daemon=True)
        self._sender.start()

    @property
    def path(self) -> Path:
        """Folder of the store."""
        return self._reader.path

    @property
    def catalog(self) -> Catalog:
        """Shards and format of the store."""
        return self._reader.catalog

    @property
    def residents(self) -> Residents:
        """Owners this process keeps in memory."""
        return self._reader.residents

    @property
    def mismatched_encoder(self) -> str | None:
        """Identity of the encoder that made the stored vectors, where it is not the configured one."""
        return self._reader.mismatched_encoder

    def writer(self, owner: OwnerKey) -> RemoteShard:
        """Return the shard that takes this owner's writes."""
        if self._closed:
            raise StoreClosed(path=str(self.path))
        number = self.catalog.shard_of(owner)
        found = self._shards.get(number)
        if found is None:
            found = self._shards.setdefault(number, RemoteShard(number, self.handles, self._pool))
        return found

    def submit_operation(self, owner: OwnerKey, operation: Operation) -> bool:
        """Queue a retrieval record; return whether it was taken."""
        try:
            self._records.put_nowait((owner, operation))
        except queue.Full:
            self._lose(1)
            return False
        return True

    def view(self, owner: OwnerKey) -> OwnerView | None:
        """Return the owner's newest committed state, or ``None`` for an owner never heard of."""
        return self._reader.view(owner)

    def record(self, owner: OwnerKey, kind: EntryKind, subject: str) -> LogRow | None:
        """Return one of the owner's log entries, or ``None``."""
        return self._reader.record(owner, kind, subject)

    def look(self, kind: str, at: Callable[[Store], Any]) -> list[Any]:
        """Return what a function finds in the store of every actor of a kind, by group."""
        groups = [_fixed(group) for group in range(self.handles.layout.groups)]
        asked = [self.handles.ask(kind, group, "look", at) for group in groups]
        return [self.handles.answer(one, kind, group, "look", at) for group, one in zip(groups, asked, strict=True)]

    def flush(self) -> None:
        """Write everything committed to the LanceDB tables now."""
        for group in range(self.handles.layout.groups):
            self.handles.call("writer", _fixed(group), "flush")

    def close(self) -> None:
        """Send what waits and let go; end the actors if they are this process's own. Repeatable."""
        if self._closed:
            return
        self._closed = True
        self._executor.close()
        self._pool.shutdown(wait=True)
        self._records.put(None)
        self._sender.join()
        try:
            if self._ends:
                self.handles.end()
        finally:
            self._reader.close()

    def _send_records(self) -> None:
        while (first := self._records.get()) is not None:
            batch = [first]
            last = False
            # A moment's patience: one call for all the retrievals of that moment.
            while len(batch) < _RECORDS and not last:
                try:
                    item = self._records.get(timeout=_RECORD_PATIENCE_S)
                except queue.Empty:
                    break
                last = item is None
                if item is not None:
                    batch.append(item)
            self._send(batch)
            if last:
                return

    def _send(self, batch: list[tuple[OwnerKey, Operation]]) -> None:
        by_shard: dict[int, list[tuple[OwnerKey, Operation]]] = defaultdict(list)
        for owner, operation in batch:
            by_shard[self.catalog.shard_of(owner)].append((owner, operation))
        for shard, records in by_shard.items():
            try:
                taken = self.handles.call("writer", partial(self.handles.group_of_shard, shard), "record", records)
                self._lose(len(records) - taken)
            except PrmeRayError as error:
                # Records are evidence, not data: losing one is counted and said, never raised into an answer.
                _LOG.warning("records of retrievals are being lost: %s", error)
                self._lose(len(records))

    def _lose(self, count: int) -> None:
        self._lost += count

    def state(self) -> dict[str, Any]:
        """Return records waiting and lost, recoveries, groups and answers of compiled graphs, for health."""
        return {
            "records_waiting": self._records.qsize(),
            "records_lost": self._lost,
            "recoveries": self.handles.recoveries,
            "groups": self.handles.layout.groups,
            "layout": self.handles.layout.version,
            "graph_answers": self._executor.executions,
        }


def _fixed(group: int) -> Callable[[], int]:
    return lambda: group
