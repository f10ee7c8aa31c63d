"""Actors over a log in PostgreSQL: readers and writers need not share files."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from prme_ray import Memory
from tests.cluster.corpus import NOW
from tests.cluster.load import under_load

_names = itertools.count()


@pytest.fixture
def storage(postgres: Any) -> dict[str, Any]:
    return {"database_url": postgres.make_database(f"cluster{next(_names)}")}


def test_actors_write_to_the_database_and_a_killed_writer_comes_back(
    ray_here: None, tmp_path: Path, storage: dict[str, Any]
) -> None:
    import ray

    with Memory.open(tmp_path / "store", executor="ray", settings={"storage": storage}) as memory:
        memory.store_many([f"Caroline: I have a cat called Oscar{number}." for number in range(60)], owner="owner-1")
        with under_load(memory, writers=1) as load:
            writer = memory._store.handles.get("writer", lambda: 0)
            os.kill(ray.get(writer.ready.remote())["pid"], signal.SIGKILL)
            load.progress()
        assert load.wrong == []
        assert load.missing() == []
        assert memory.health().healthy
        wanted = memory.retrieve("Oscar7", owner="owner-1", reference_time=NOW).bundle.context
    # Another machine: nothing but the database.
    with Memory.open(tmp_path / "elsewhere", settings={"storage": storage}) as memory:
        assert memory.retrieve("Oscar7", owner="owner-1", reference_time=NOW).bundle.context == wanted
