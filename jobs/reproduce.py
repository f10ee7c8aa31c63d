"""Runs past retrievals of an owner again, in this process, and says which came out the same.

``python -m jobs.reproduce STORE --owner OWNER [--request ID] [--executor ray]``. Inline it reads beside
the process that writes the store; on Ray it needs the store for itself. Exit status 0: all of them did.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from prme_ray import Memory, load_settings
from prme_ray.defaults import DEFAULT_TENANT
from prme_ray.model.errors import AmbiguousRecord, NotFound, PrmeRayError
from prme_ray.model.retrievals import Reproduction
from prme_ray.opening import EXECUTORS

__all__ = ["main"]

_PAGE = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Reproduce, print a line for each that came out otherwise and a summary, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m jobs.reproduce", description="Run past retrievals again.")
    parser.add_argument("store", type=Path, help="folder of the store")
    parser.add_argument("--owner", required=True)
    parser.add_argument("--tenant", default=DEFAULT_TENANT)
    parser.add_argument("--request", action="append", help="id of one request; may be repeated; all when left out")
    parser.add_argument("--executor", choices=EXECUTORS, default="inline")
    parser.add_argument("--json", type=Path, help="file for one JSON line a retrieval")
    parser.add_argument("--settings", type=Path, help="TOML or JSON file of settings; PRME_ variables win over it")
    options = parser.parse_args(arguments)
    try:
        counts = _run(options)
    except (PrmeRayError, OSError, ValueError) as error:
        print(f"not done: {error}", file=sys.stderr)
        return 2
    print(f"{counts['same']} of {sum(counts.values())} retrievals came out the same, byte for byte")
    return 0 if counts["otherwise"] == 0 else 1


def _run(options: argparse.Namespace) -> dict[str, int]:
    settings = load_settings(file=options.settings)
    reads = options.executor == "inline"
    if not options.store.is_dir():
        raise FileNotFoundError(f"{options.store} is no folder")
    with Memory.open(options.store, settings=settings, executor=options.executor, read_only=reads) as memory:
        wanted = options.request or list(_answered(memory, options.owner, options.tenant))
        lines: list[str] = []
        counts = {"same": 0, "otherwise": 0}
        for request_id in tqdm(wanted, unit=" retrievals", file=sys.stderr, disable=None, leave=False):
            try:
                found = memory.reproduce(request_id, owner=options.owner, tenant=options.tenant)
            except (AmbiguousRecord, NotFound) as error:
                counts["otherwise"] += 1
                tqdm.write(f"{request_id}: {error}", file=sys.stdout)
                continue
            counts["same" if found.reproduced else "otherwise"] += 1
            lines.append(found.model_dump_json(exclude={"context"}))
            if not found.reproduced:
                tqdm.write(f"{request_id}: {_told(found)}", file=sys.stdout)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return counts


def _answered(memory: Memory, owner: str, tenant: str) -> Iterator[str]:
    """Yield the ids of the owner's requests that were answered, each once, oldest first."""
    cursor: str | None = None
    seen: set[str] = set()
    while True:
        page = memory.list_retrievals(owner=owner, tenant=tenant, cursor=cursor, limit=_PAGE)
        for item in page.retrievals:
            if item.error is None and item.request_id not in seen:
                seen.add(item.request_id)
                yield item.request_id
        cursor = page.next_cursor
        if cursor is None:
            return


def _told(found: Reproduction) -> str:
    parts = [f"{reason.code} ({reason.detail})" for reason in found.reasons]
    parts += [
        f"{item.what}: {json.dumps(item.recorded)} is now {json.dumps(item.reproduced)}" for item in found.differences
    ]
    return "; ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
