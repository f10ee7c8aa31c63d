"""The store as a coordinator sees it: it reads the log itself and has others write."""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from actors.handles import Handles
from prme_ray.model.errors import StoreClosed
from storage.catalog import Catalog
from storage.losses import Losses
from storage.owner_verbs import OwnerVerbs, check_owner
from storage.parts import Part
from storage.records import (
    LATE_RECORDS,
    Admission,
    Appended,
    LateOperation,
    Operation,
    OperationRow,
    OwnerKey,
    Repeat,
)
from storage.residents import ResidentKey, Residents
from storage.shard import Shard
from storage.store import Store
from storage.view import OwnerView
from storage.waiting import made_of, reason_of

__all__ = ["COORDINATOR_PARTS", "RemoteShard", "RemoteStore"]

COORDINATOR_PARTS = frozenset({Part.RECORDS, Part.EDGES})
"""What the steps that run beside the coordinator read of an owner."""

_WRITES = 64
"""Writes of one coordinator under way at once."""
_RECORDS = 64
"""Most retrieval records sent in one call."""
_RECORD_PATIENCE_S = 0.25
"""Longest time that a record is kept back so that it can share a call."""
_PAUSE_S = 0.006
"""Time between the records of a call, so that the one request that meets them does not wait for all of them."""


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

    def record(self, operation: Operation) -> Future[OperationRow]:
        """Send a record to the group's writer; the future resolves when it is durable."""
        return self._pool.submit(self._record, operation)

    def _record(self, operation: Operation) -> OperationRow:
        row: OperationRow = self._call("record_now", operation)
        return row

    def _append(self, admission: Admission, patient: bool) -> Appended:
        appended: Appended = self._call("append", admission, patient)
        return appended

    def _call(self, method: str, *arguments: Any) -> Any:
        group = partial(self._handles.group_of_shard, self.number)
        return self._handles.call("writer", group, method, *arguments)


class RemoteStore(OwnerVerbs):
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
        # Beside records: an event to set when all before it are sent, and the end.
        self._records: queue.Queue[Operation | LateOperation | threading.Event | None] = queue.Queue(
            handles.deployment.cluster.queue
        )
        self._hurry = threading.Event()  # set when records should not be kept back
        self._losses = Losses()
        self._failing = False  # whether the records that were sent last were lost
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
    def residents(self) -> Residents[ResidentKey]:
        """Owners this process keeps in memory."""
        return self._reader.residents

    @property
    def mismatched_encoder(self) -> str | None:
        """Identity of the encoder that made the stored vectors, where it is not the configured one."""
        return self._reader.mismatched_encoder

    def writer(self, owner: OwnerKey) -> RemoteShard:
        """Return the shard that takes this owner's writes."""
        self._check_open()
        number = self.catalog.shard_of(owner)
        found = self._shards.get(number)
        if found is None:
            found = self._shards.setdefault(number, RemoteShard(number, self.handles, self._pool))
        return found

    def submit_operation(self, owner: OwnerKey, operation: Operation | LateOperation, *, wait: bool = False) -> bool:
        """Queue a record about an owner; return whether it can be relied on; see ``Store.submit_operation``.

        The bytes of a late record are made in the sender's thread. True without ``wait`` means: queued,
        behind records that the log last took.
        """
        check_owner(owner, operation)
        if wait:
            self.writer(owner).record(_sent(operation)).result()
            return True
        try:
            self._check_open()
            late = isinstance(operation, LateOperation) and self._records.qsize() >= LATE_RECORDS
            self._records.put_nowait(made_of(operation) if late else operation)
            if self._records.qsize() >= _RECORDS:
                self._hurry.set()
        except queue.Full:
            self._losses.add(1, "too many wait to be sent")
            return False
        except Exception as error:
            self._losses.add(1, reason_of(error))
            return False
        return not self._failing

    def settle(self, owner: OwnerKey) -> None:
        """Return when every record that this coordinator queued before is in the log, or lost."""
        if not self._closed:
            reached = threading.Event()
            self._records.put(reached)
            self._hurry.set()
            reached.wait()

    def shard_of(self, owner: OwnerKey) -> Shard | None:
        """Return the owner's shard, for reading; ``None`` where it was never written."""
        return self._reader.shard_of(owner)

    def empty_view(self) -> OwnerView:
        """Return the view of an owner for whom nothing was ever stored."""
        return self._reader.empty_view()

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
        self._hurry.set()
        self._sender.join()
        try:
            if self._ends:
                self.handles.end()
        finally:
            self._reader.close()

    def _send_records(self) -> None:
        ended = False
        while not ended:
            items = [self._records.get()]
            # A moment's patience: one call for all the retrievals of that moment. The queue is not looked at
            # meanwhile: to wake for every record is to take the interpreter from whoever gives the answer.
            patient = isinstance(items[0], Operation | LateOperation) and not self._hurry.wait(_RECORD_PATIENCE_S)
            self._hurry.clear()
            while len(items) < _RECORDS and not self._records.empty():
                items.append(self._records.get_nowait())
            if not self._records.empty():
                self._hurry.set()  # more than one call takes
            self._send([item for item in items if isinstance(item, Operation | LateOperation)], patient=patient)
            for item in items:
                if isinstance(item, threading.Event):
                    item.set()
            ended = None in items

    def _send(self, batch: Sequence[Operation | LateOperation], *, patient: bool) -> None:
        by_shard: dict[int, list[Operation]] = defaultdict(list)
        for operation in batch:
            try:
                by_shard[self.catalog.shard_of(operation.owner)].append(_sent(operation))
            except Exception as error:
                self._losses.add(1, reason_of(error))
            patient = patient and not self._hurry.wait(_PAUSE_S)
        for shard, records in by_shard.items():
            group = partial(self.handles.group_of_shard, shard)
            try:
                # Those that it took and could not commit, the writer counts itself.
                self._failing = self.handles.call("writer", group, "record", records) < len(records)
                self._losses.end()
            except Exception as error:
                self._failing = True
                self._losses.add(len(records), reason_of(error))

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(path=str(self.path))

    def state(self) -> dict[str, Any]:
        """Return records waiting and lost, recoveries, groups and answers of compiled graphs, for health."""
        return {
            "records_waiting": self._records.qsize(),
            "records_lost": self._losses.count,
            "recoveries": self.handles.recoveries,
            "groups": self.handles.layout.groups,
            "layout": self.handles.layout.version,
            "graph_answers": self._executor.executions,
        }


def _sent(operation: Operation | LateOperation) -> Operation:
    """Return an operation that may be sent again when the answer is lost: the log then has it already."""
    return replace(made_of(operation), repeat=Repeat.SAME)


def _fixed(group: int) -> Callable[[], int]:
    return lambda: group
