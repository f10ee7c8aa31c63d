"""The store: a catalog, its shards, and the lock that makes this process their only writer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from prme_ray.model.errors import (
    LogEmpty,
    ReadOnlyStore,
    ServiceUnavailable,
    StoreClosed,
)
from prme_ray.model.settings import StorageSettings
from storage.lock import ShardLocks
from storage.log import Log
from storage.logs import open_logs
from storage.owner_state import OwnerState
from storage.owner_verbs import OwnerVerbs, check_owner
from storage.parts import ALL_PARTS, Part
from storage.past import PastStates
from storage.records import LateOperation, Operation, OwnerKey
from storage.residents import ResidentKey, Residents
from storage.shard import EncoderIdentity, Shard
from storage.table_place import TablePlace
from storage.view import OwnerView

__all__ = ["Store"]

_PAST_SHARE = 4
"""Part of ``resident_bytes`` that past states may take beside it: a quarter."""


class Store(OwnerVerbs):
    """Every owner's memories under one folder.

    Args:
        path: Folder of the store; created when missing and not ``read_only``.
        settings: Storage settings; ``virtual_shards`` only counts when the store is created.
        encoder: Identity of the configured encoder.
        clock: Returns the current UTC time.
        new_id: Returns a fresh UUID as text.
        read_only: Open beside a writer; writes raise :class:`ReadOnlyStore`.
        shards: Whether a shard is this process's, where others have the rest; all are when ``None``.
        parts: What is kept of the owners in memory.

    Raises:
        StoreLocked: another writer holds the store.
        StoreFormatTooNew: the store was written by a newer version.
        StoreCorrupt: the folder is no store, or its files contradict each other.
    """

    def __init__(
        self,
        path: Path,
        *,
        settings: StorageSettings,
        encoder: EncoderIdentity,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
        read_only: bool = False,
        shards: Callable[[int], bool] | None = None,
        parts: frozenset[Part] = ALL_PARTS,
    ) -> None:
        self.read_only = read_only
        self.parts = parts
        self._settings = settings
        self._encoder = encoder
        self._clock = clock
        self.catalog, self._logs = open_logs(
            path, settings=settings, store_id=new_id(), created_at=clock(), read_only=read_only
        )
        self.path = self.catalog.path
        self._own = [number for number in self.catalog.shards if shards is None or shards(number)]
        self._locks: ShardLocks | None = None
        self.residents = Residents[ResidentKey](settings.resident_bytes)
        self.past = PastStates(settings.resident_bytes // _PAST_SHARE)
        self._shards: dict[int, Shard] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._agreed: set[int] = set()
        self._mismatch: str | None = None
        try:
            if not read_only:
                self._locks = ShardLocks.acquire(self.path, self._own, now=clock())
            self._mismatch = self._find_mismatch()
        except BaseException:
            self.close()
            raise

    # -- shards ---------------------------------------------------------------------------------

    def shard_of(self, owner: OwnerKey) -> Shard | None:
        """Return the owner's shard; ``None`` when a reader finds that it was never written."""
        return self.shard(self.catalog.shard_of(owner))

    def shard(self, number: int) -> Shard | None:
        """Return a shard, opening it on first use."""
        found = self._shards.get(number)
        if found is not None:
            return found
        if number not in self._own:
            # Opening it would fence the process that has it.
            raise ServiceUnavailable(what=f"shard {number}", detail="another process writes it")
        with self._lock:
            if self._closed:
                raise StoreClosed(path=str(self.path))
            if number not in self._shards:
                log = self._log(number)
                if log is None:
                    return None
                self._shards[number] = Shard(
                    self.catalog.shard_path(number),
                    tables=self._tables_of(number),
                    number=number,
                    log=log,
                    settings=self._settings,
                    encoder=self._encoder,
                    residents=self.residents,
                    past=self.past,
                    clock=self._clock,
                    writable=not self.read_only,
                    parts=self.parts,
                )
            return self._shards[number]

    def _tables_of(self, number: int) -> TablePlace:
        if self._settings.tables_uri is None:
            return TablePlace.of(self.catalog.shard_path(number))
        return TablePlace.of(self._settings.tables_uri).below(self.catalog.store_id, f"{number:03d}")

    def _log(self, number: int) -> Log | None:
        if not self.read_only:
            return self._logs.open(number, read_only=False)
        if not self._logs.exists(number):
            return None
        try:
            return self._logs.open(number, read_only=True)
        except LogEmpty:
            return None  # its writer is just making it: nothing is in it yet

    def existing_shards(self) -> Iterator[Shard]:
        """Yield every shard that has a log, in number order."""
        for number in sorted(set(self._own).intersection(self._logs.existing())):
            found = self.shard(number)
            if found is not None:
                yield found

    def _find_mismatch(self) -> str | None:
        for shard in self.existing_shards():
            if shard.number in self._agreed:
                continue
            stored = shard.stored_encoder()
            if stored is not None and stored != self._encoder.identity:
                return stored
            if stored is not None:
                self._agreed.add(shard.number)
        return None

    @property
    def mismatched_encoder(self) -> str | None:
        """Identity of the encoder that made the stored vectors, where it is not the configured one."""
        if self.read_only and self._mismatch is None and not self._agreed:
            # The writer beside a reader may meanwhile have stored the first vectors; one shard of this
            # encoder settles it, since a store never mixes two.
            self._mismatch = self._find_mismatch()
        return self._mismatch

    # -- writing --------------------------------------------------------------------------------

    def writer(self, owner: OwnerKey) -> Shard:
        """Return the shard that takes this owner's writes.

        Raises:
            ReadOnlyStore: the store was opened for reading.
        """
        if self.read_only:
            raise ReadOnlyStore(path=str(self.path))
        shard = self.shard_of(owner)
        if shard is None:
            raise StoreClosed(path=str(self.path))
        return shard

    def submit_operation(self, owner: OwnerKey, operation: Operation | LateOperation, *, wait: bool = False) -> bool:
        """Queue a record about an owner; return whether it can be relied on.

        The bytes of a :class:`LateOperation` are made in the committer's thread. True without ``wait``
        means: queued, behind a log that last took what it was given; see :class:`GroupCommit`.

        Args:
            owner: Whom it is about.
            operation: The record.
            wait: Return when it is durable.

        Raises:
            InvalidRequest: the record is about somebody else.
            Exception: with ``wait``, what making or writing it raised.
        """
        check_owner(owner, operation)
        if self.read_only:
            return False
        return self.writer(owner).submit_operation(operation, wait=wait)

    def settle(self, owner: OwnerKey) -> None:
        """Return when every record about an owner that this process queued before is in the log, or lost."""
        shard = self._shards.get(self.catalog.shard_of(owner))
        if shard is not None:  # nothing was queued where none was opened
            shard.settle()

    # -- reading --------------------------------------------------------------------------------

    def empty_view(self) -> OwnerView:
        """Return the view of an owner for whom nothing was ever stored."""
        return OwnerState(0, dimension=self._encoder.dimension, parts=self.parts).view()

    # -- care -----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write everything committed to the LanceDB tables now."""
        for shard in list(self._shards.values()):
            shard.flush()

    def close(self) -> None:
        """Drain the write queues, flush, and release the locks. Closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            shards = list(self._shards.values())
        with ExitStack() as closing:
            # Run last to first: every shard is closed and the locks are freed whatever one of them raises.
            closing.callback(self._logs.close)
            if self._locks is not None:
                closing.callback(self._locks.release)
            closing.callback(self.residents.clear)
            closing.callback(self.past.clear)
            for shard in shards:
                closing.callback(shard.close)
