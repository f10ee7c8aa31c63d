"""Copies a store's log from files to PostgreSQL or back, and proves the copy row for row.

``python -m jobs.copy_log --from STORE_OR_URL --to STORE_OR_URL``, where a URL is
``postgresql://user@host/database``, with ``#prefix`` behind it where the store's name there is not
"prme". Give a password in PGPASSWORD or a password file, so that it stands in no list of processes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from tqdm import tqdm

from prme_ray.copying import CopiedShard, copy_store
from prme_ray.model.errors import PrmeRayError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy, print a line a shard, and return the exit status: 0 only where both sides hold the same rows.

    Chains of records that were broken in the source are so in the copy: that is said, and no reason to
    keep the records where they are.
    """
    parser = argparse.ArgumentParser(prog="python -m jobs.copy_log", description="Copy the log of a store.")
    parser.add_argument("--from", dest="source", required=True, help="folder of a store, or postgresql://…#prefix")
    parser.add_argument("--to", dest="target", required=True, help="the same, with no store in it")
    options = parser.parse_args(arguments)
    try:
        shards = _copy(options.source, options.target)
    except (PrmeRayError, OSError) as error:
        print(f"not copied: {error}", file=sys.stderr)
        return 1
    rows = sum(table.rows for shard in shards for table in shard.tables.values())
    print(f"done: {len(shards)} shards, {rows} rows, the same on both sides")
    if broken := sum(shard.broken_chains for shard in shards):
        print(f"warning: {broken} owners have records that are not as they were written", file=sys.stderr)
    return 0


def _copy(source: str, target: str) -> list[CopiedShard]:
    with tqdm(unit=" rows", file=sys.stderr, disable=None, leave=False) as bar:

        def tell(shard: CopiedShard) -> None:
            bar.write(_line(shard), file=sys.stdout)

        def count(rows: int) -> None:
            bar.update(rows)

        return copy_store(source, target, now=datetime.now(UTC), copied=tell, progress=count)


def _line(shard: CopiedShard) -> str:
    counts = ", ".join(f"{table.rows} {name}" for name, table in sorted(shard.tables.items()) if name != "meta")
    return f"shard {shard.number}: {counts}; entries SHA-256 {shard.tables['entries'].digest[:16]}…"


if __name__ == "__main__":
    sys.exit(main())
