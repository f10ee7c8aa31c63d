"""Moves a store between files and a database by copying its log, the only truth it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from storage.copy_places import copy_source, copy_target
from storage.log_copy import TableSum, copy_log

__all__ = ["CopiedShard", "copy_store"]


@dataclass(frozen=True, slots=True)
class CopiedShard:
    """A shard that both sides hold alike.

    Attributes:
        number: Its number.
        tables: What each table of its log holds.
        broken_chains: How many owners have records that are not as they were written, here as there.
    """

    number: int
    tables: dict[str, TableSum]
    broken_chains: int


def copy_store(
    source: str,
    target: str,
    *,
    now: datetime,
    copied: Callable[[CopiedShard], None],
    progress: Callable[[int], None] = lambda rows: None,
) -> list[CopiedShard]:
    """Copy the log of every shard and prove that source and copy hold the same rows.

    Tables of LanceDB and text indexes are not copied: they are made from the log at the next open. The
    source's earlier writers are fenced; the store is the same one in both places, so write only one.

    Args:
        source: Folder of a store, or ``postgresql://…/database`` with ``#prefix`` behind it.
        target: The same, without a store.
        now: Current UTC time.
        copied: Told of each shard when it is committed.
        progress: Told after every batch how many rows it had.

    Raises:
        InvalidRequest: no store in ``source``, or something in ``target``.
        StoreLocked, StoreBusy: a writer has one of them open, or a database cannot be reached.
        StoreCorrupt: the source cannot be read, or the copy differs; it then has no catalog and is no store.
        WriteFailed: the target failed.
        InvalidSettings: a URL cannot be read, or the server refuses it.
    """
    done: list[CopiedShard] = []
    with copy_source(source, now=now) as here, copy_target(target, identity=here.identity) as there:
        for number in here.shards():
            original, copy = here.shard(number), there.shard(number)
            try:
                made = copy_log(original, copy, progress=progress)
                shard = CopiedShard(number, made.tables, made.broken_chains)
            finally:
                original.close()
                copy.close()
            copied(shard)
            done.append(shard)
        there.finish()
    return done
