"""Several writers of one store, each with its own shards."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prme_ray.model.errors import ServiceUnavailable, StoreLocked
from prme_ray.model.settings import StorageSettings
from storage.records import OwnerKey
from storage.shard import EncoderIdentity
from storage.store import Store


def _store(path: Path, rest: int) -> Store:
    return Store(
        path,
        settings=StorageSettings(virtual_shards=4),
        encoder=EncoderIdentity("an encoder", "model", 3),
        clock=lambda: datetime.now(UTC),
        new_id=lambda: str(uuid.uuid4()),
        shards=lambda shard: shard % 2 == rest,
    )


def test_writers_share_a_store_and_never_a_shard(tmp_path: Path) -> None:
    even, odd = _store(tmp_path, 0), _store(tmp_path, 1)
    try:
        for number in range(20):
            owner = OwnerKey("tenant", f"owner-{number}")
            mine, other = (even, odd) if even.catalog.shard_of(owner) % 2 == 0 else (odd, even)
            assert mine.writer(owner).number == mine.catalog.shard_of(owner)
            # Opening it would fence the writer that has it.
            with pytest.raises(ServiceUnavailable, match="another process writes it"):
                other.writer(owner)
        with pytest.raises(StoreLocked):
            _store(tmp_path, 0)
    finally:
        even.close()
        odd.close()
