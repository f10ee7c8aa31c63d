"""The only writer of one shard group: a named actor, an OS lock a shard and an epoch in each log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from actors.spec import StoreSpec
from actors.whereabouts import whereabouts
from prme_ray.model.errors import StoreClosed, StoreLocked
from storage.records import Admission, Appended, Operation, OperationRow
from storage.store import Store

__all__ = ["WriterActor"]

_RETRY_S = 0.1


class WriterActor:
    """Commits admissions. A call that is repeated after a crash finds what it had committed.

    Args:
        spec: The store.
        group: Number of the shard group.
        groups: How many there are; shard ``s`` belongs to group ``s % groups``.
        patience_s: How long to wait for a predecessor that is still letting go of its locks.
    """

    def __init__(self, spec: StoreSpec, group: int, groups: int, patience_s: float) -> None:
        self._spec = spec
        self._group, self._groups = group, groups
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._retired = False

    def loaded(self) -> dict[str, Any]:
        """Return which process this is; the shards may still be another writer's."""
        return whereabouts()

    def ready(self) -> dict[str, Any]:
        """Open the store if need be and return which process this is.

        Raises:
            StoreLocked: another process writes a shard of this group.
        """
        self._open()
        return {**whereabouts(), "group": self._group}

    def generation(self, shard: int) -> int:
        """Return the encoder generation of new vectors in a shard, registering the first."""
        found = self._open().shard(shard)
        if found is None:
            raise StoreClosed(path=self._spec.path)
        return found.writing_generation()

    def append(self, admission: Admission, patient: bool = False) -> Appended:
        """Return when the admission is durable and every reader finds it; errors as ``Shard.submit``."""
        return self._open().writer(admission.owner).submit(admission, patient=patient).result()

    def record(self, operations: Sequence[Operation]) -> int:
        """Write records and return how many are durable; the committer says why others are not."""
        store = self._open()
        waiting = [store.writer(operation.owner).record(operation) for operation in operations]
        return sum(one.exception() is None for one in waiting)

    def record_now(self, operation: Operation) -> OperationRow:
        """Return a record as it is in the log; errors as ``Shard.record``."""
        return self._open().writer(operation.owner).record(operation).result()

    def flush(self) -> None:
        """Bring the tables up to the log."""
        self._open().flush()

    def look(self, at: Callable[[Store], Any]) -> Any:
        """Return what a function finds in the store, for health."""
        return at(self._open())

    def retire(self) -> None:
        """Commit what waits and let go of the shards for good."""
        with self._lock:
            self._retired = True
            store, self._store = self._store, None
        if store is not None:
            store.close()

    def _open(self) -> Store:
        store = self._store
        if store is not None:
            return store
        with self._lock:
            if self._retired:
                raise StoreClosed(path=self._spec.path)
            if self._store is None:
                self._store = self._locked_store()
            return self._store

    def _locked_store(self) -> Store:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return self._spec.writer(lambda shard: shard % self._groups == self._group)
            except StoreLocked:
                # The process before this one may be dying: its locks go with it.
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)
