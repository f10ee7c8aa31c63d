"""A writer to be killed: appends for ever and prints what has been acknowledged.

Usage: python -m tests.storage.log_writer_child STORE NAME [URL]: in a file, or in a PostgreSQL database
under the prefix ``killed``. Each write is an event, a node with its
vector and an edge, named ``NAME-thread-number`` plus ``e``, ``n`` and ``x``.
"""

from __future__ import annotations

import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

from storage.commit import GroupCommit
from storage.lock import ShardLocks
from storage.postgres_log import postgres_log
from storage.postgres_server import PostgresServer
from storage.records import Entry, EntryKind, Operation, OwnerKey
from storage.sql_log import SqlLog, sqlite_log
from tests.storage.log_cases import ANNA, BEN, DIMENSION, admission, event, node, vector

_THREADS = 3


def open_log(store: Path, url: str | None, *, read_only: bool) -> SqlLog:
    if url is None:
        return sqlite_log(store / "log.sqlite", read_only=read_only)
    return postgres_log(PostgresServer(url), prefix="killed", shard=0, read_only=read_only)


def main(store: Path, name: str, url: str | None = None) -> None:
    locks = ShardLocks.acquire(store, [0], now=datetime.now(UTC))
    log = open_log(store, url, read_only=False)
    epoch = log.begin_epoch()
    generation = log.register_generation("id-1", "mini", DIMENSION, created_at=0, epoch=epoch)
    committer = GroupCommit(log, epoch=epoch, clock=lambda: datetime.now(UTC), on_commit=lambda appended: None)
    assert locks.held

    def work(owner: OwnerKey, thread: int) -> None:
        number = 0
        while True:
            subject = f"{name}-{thread}-{number}"
            committer.submit_operation(Operation(owner, "RETRIEVAL_REQUEST", subject, b"{}"))
            committer.submit(
                admission(
                    event(subject + "e", '{"content": "' + "x" * 300 + '"}'),
                    node(subject + "n", vector(thread, number)),
                    Entry(EntryKind.EDGE, subject + "x", "{}"),
                    owner=owner,
                    generation=generation,
                )
            ).result()
            os.write(sys.stdout.fileno(), f"{subject}\n".encode())  # one write: lines of threads do not mix
            number += 1

    threads = [threading.Thread(target=work, args=(owner, n)) for n, owner in enumerate([ANNA, BEN, ANNA][:_THREADS])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
