"""Retrievals over a store that keeps changing come out the same later, wherever they are run again."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

import pytest

from prme_ray import Memory
from tests.cluster.corpus import OWNERS, fill, questions

RETRIEVALS = 300
FEW = 16
Asked = list[tuple[str, str]]


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Asked]:
    """Return a store in which every retrieval was followed by writes, and who asked under which id."""
    path = tmp_path_factory.mktemp("changing") / "store"
    chance = random.Random(23)
    asked: Asked = []
    settings = {"storage": {"projection_idle_s": 0.2, "projection_batch_rows": 32, "compact_after_fragments": 4}}
    with Memory.open(path, settings=settings) as memory:
        fill(memory, memories=16)
        for query, options in questions(RETRIEVALS, seed=9):
            answer = memory.retrieve(query, **options)
            if options["owner"] != "nobody":
                asked.append((options["owner"], answer.metadata.request_id))
            _change(memory, options["owner"], chance)
    return path, asked


def _change(memory: Memory, owner: str, chance: random.Random) -> None:
    """Write something that would change the answer just given."""
    kind = chance.randrange(4)
    text = f"Dana: number {chance.randrange(10_000)}, I have a cat called Oscar and a house in Lisbon now."
    if kind == 0:
        memory.store_node(text, owner=owner, node_type="fact", pinned=True)
    elif kind == 1:
        one, other = (memory.store(f"{text} {place}", owner=owner, session_id="s1") for place in "ab")
        memory.store_edge(one.node_id, other.node_id, "relates_to", owner=owner, confidence=0.8)
    elif kind == 2:
        memory.store_many([f"{text} {place}" for place in range(3)], owner=owner)
    else:
        memory.store(text, owner=owner, event_time="2026-05-30T10:00:00Z")


def _same(memory: Memory, asked: Asked) -> None:
    for owner, request_id in asked:
        found = memory.reproduce(request_id, owner=owner)
        assert found.reproduced, found.model_dump(exclude={"context"})


def test_all_are_reproduced_in_process_after_a_restart(changing: tuple[Path, Asked]) -> None:
    path, asked = changing
    with Memory.open(path, read_only=True) as memory:
        _same(memory, asked)
        for owner in OWNERS:
            assert memory.verify_chain(owner=owner).whole


def test_some_are_reproduced_on_ray(ray_here: None, changing: tuple[Path, Asked]) -> None:
    path, asked = changing
    _on_ray(path, random.Random(4).sample(asked, FEW), "ray", 1)


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "groups"), [("ray", 1), ("ray", 4), ("compiled", 1), ("compiled", 4)])
def test_all_are_reproduced_on_ray(ray_here: None, changing: tuple[Path, Asked], executor: str, groups: int) -> None:
    path, asked = changing
    _on_ray(path, asked, executor, groups)


def _on_ray(path: Path, asked: Asked, executor: str, groups: int) -> None:
    settings: dict[str, Any] = {"cluster": {"groups": groups, "compiled_idle_s": 600}}
    with Memory.open(path, executor=executor, settings=settings, keep=True) as memory:
        _same(memory, asked)
        owner, query = OWNERS[0], "What does Caroline have?"
        before = memory.retrieve(query, owner=owner, request_id=str(uuid.uuid4()))
        memory.store("Caroline: I have a canoe.", owner=owner)
        again = memory.retrieve(
            query, owner=owner, as_of=before.metadata.snapshot, reference_time=before.metadata.reference_time
        )
        assert again.bundle.context == before.bundle.context
        start = memory.retrieve(query, owner=owner, as_of=0)
        assert (start.metadata.outcome, start.metadata.backend_failures) == ("empty_owner", {})
        assert memory.reproduce(start.metadata.request_id, owner=owner).reproduced
        assert memory.reproduce(before.metadata.request_id, owner=owner).reproduced
