"""One writer a shard: an OS lock on a file, and a note beside it that says who holds it.

The operating system frees the lock when its process ends, however it ends. The note only feeds the
message of :class:`StoreLocked`; it never decides anything.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from prme_ray.model.errors import StoreLocked
from prme_ray.model.times import iso
from storage.durable import make_folders, write_atomically

__all__ = ["ShardLocks"]

# A new holder writes its note right after taking the lock; a rival that looks in between waits this long.
_NOTE_TRIES = 5
_NOTE_WAIT_S = 0.01


class ShardLocks:
    """The right to write some shards of one store. Make it with :meth:`acquire`; a context manager."""

    def __init__(self, *, path: Path, locks: dict[int, FileLock]) -> None:
        self._path = path
        self._locks = locks
        self._pid = os.getpid()

    @classmethod
    def acquire(cls, path: Path, shards: Iterable[int], *, now: datetime) -> ShardLocks:
        """Lock all of ``shards`` of the store at ``path`` for writing, or none of them. Never waits.

        Shards are taken in ascending order, so of two writers that want the same ones one gets all.

        Args:
            path: The store's folder.
            shards: Shard numbers.
            now: Current UTC time; a refused rival is told since when.

        Raises:
            StoreLocked: a shard has a writer already, in another process or in this one.
            OSError: lock files cannot be made.
        """
        folder = path / "locks"
        make_folders(folder)
        taken: dict[int, FileLock] = {}
        note = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": iso(now)}).encode()
        try:
            for shard in sorted(set(shards)):
                # Not thread-local: the thread that closes a store need not be the one that opened it.
                lock = FileLock(_lock_file(folder, shard), timeout=0, thread_local=False)
                try:
                    lock.acquire()
                except Timeout:
                    raise StoreLocked(path=str(path), **_holder(_note_file(folder, shard))) from None
                taken[shard] = lock
                write_atomically(_note_file(folder, shard), note, durable=False)
        except BaseException:
            _release(folder, taken)
            raise
        return cls(path=path, locks=taken)

    @property
    def held(self) -> bool:
        """Whether this process holds the locks; false after :meth:`release` and in a forked child."""
        return bool(self._locks) and os.getpid() == self._pid

    @property
    def shards(self) -> tuple[int, ...]:
        """Numbers of the shards this process may write."""
        return tuple(self._locks) if self.held else ()

    def release(self) -> None:
        """Free the locks. Repeatable; in a forked child it leaves the parent's locks alone."""
        locks, self._locks = self._locks, {}
        if os.getpid() == self._pid:
            _release(self._path / "locks", locks)

    def __enter__(self) -> ShardLocks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def _release(folder: Path, locks: dict[int, FileLock]) -> None:
    for shard, lock in locks.items():
        _note_file(folder, shard).unlink(missing_ok=True)  # before the lock: afterwards it may be the next holder's
        lock.release()


def _lock_file(folder: Path, shard: int) -> Path:
    return folder / f"{shard:03d}.lock"


def _note_file(folder: Path, shard: int) -> Path:
    return folder / f"{shard:03d}.json"


def _holder(file: Path) -> dict[str, Any]:
    """Return the holder's ``pid``, ``host`` and ``since``, waiting shortly for a note still being written."""
    found: dict[str, Any] = {"pid": "unknown", "host": "an unknown host", "since": "an unknown time"}
    for attempt in range(_NOTE_TRIES):
        if attempt:
            time.sleep(_NOTE_WAIT_S)
        try:
            note = json.loads(file.read_bytes())
            found = {"pid": int(note["pid"]), "host": str(note["host"]), "since": str(note["since"])}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if found["host"] != socket.gethostname() or _alive(found["pid"]):
            break
    return found


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
