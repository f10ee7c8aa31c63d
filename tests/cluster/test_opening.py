"""What an opening that fails leaves in a cluster: nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from prme_ray import Memory
from prme_ray.model.errors import StoreLocked


def test_a_store_that_is_held_leaves_no_actors_behind(ray_here: None, tmp_path: Path) -> None:
    import ray

    def named() -> int:
        return len(ray.util.list_named_actors(all_namespaces=True))

    before = named()
    with Memory.open(tmp_path / "store") as held:
        held.store("Caroline: I adopted a cat called Oscar.", owner="dana")
        with pytest.raises(StoreLocked):
            Memory.open(tmp_path / "store", executor="ray", settings={"cluster": {"timeout_s": 1}})
    assert named() == before
    with Memory.open(tmp_path / "store", executor="ray") as memory:
        assert len(memory.retrieve("cat", owner="dana").results) == 1
