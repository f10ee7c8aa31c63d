"""The one declared flow gives the same bytes wherever it runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from prme_ray import Memory
from prme_ray.pipeline import tail_steps
from tests.cluster.corpus import NOW, OWNERS, answers, make, questions

QUESTIONS = 70
FEW = 6
_COMPILE_S = 60


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("agree") / "store")


@pytest.fixture(scope="module")
def expected(store: Path) -> dict[int, list[bytes]]:
    with Memory.open(store) as memory:
        return {seed: answers(memory, QUESTIONS if seed in (1, 2, 4) else FEW, seed=seed) for seed in (1, 2, 4, 5)}


def _open(store: Path, executor: str, **cluster: Any) -> Memory:
    return Memory.open(store, executor=executor, settings={"cluster": cluster}, keep=True)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_every_executor_gives_the_bytes_of_inline(
    ray_here: None, store: Path, expected: dict[int, list[bytes]], groups: int
) -> None:
    # Graphs of owners as small as these are searched by the coordinator, unless told otherwise.
    away = {"graph_actor_from": 0} if groups > 1 else {}
    with _open(store, "ray", groups=groups, **away) as memory:
        assert answers(memory, QUESTIONS, seed=groups) == expected[groups]
        assert memory.health().healthy
        _same_receipts(memory, groups)
        asked = memory.retrieve("Was this asked before?", owner="owner-1").metadata.timings_ms
        assert {"lexical.away", "vector.away", "embedding.away"} <= asked.keys()
        assert ("graph.away" in asked) == bool(away)
    with _open(store, "compiled", groups=groups, compiled_idle_s=600) as memory:
        graphs = memory._retriever._executor
        _warm(memory, graphs)
        before = graphs.executions
        assert answers(memory, QUESTIONS, seed=groups) == expected[groups]
        # Two groups at a time have a graph; unknown owners have nothing to ask one.
        assert graphs.executions - before >= QUESTIONS // (2 if groups <= 2 else 4)
        _same_receipts(memory, groups)


def _same_receipts(memory: Memory, seed: int) -> None:
    """Read receipts of requests that were asked inline too: two different records of one request are refused."""
    for _, options in questions(QUESTIONS, seed=seed):
        if options["owner"] != "nobody":
            assert memory.get_retrieval(options["request_id"], owner=options["owner"]).receipt is not None


def _warm(memory: Memory, graphs: Any) -> None:
    """Ask until as many groups have a graph as may."""
    deadline = time.monotonic() + _COMPILE_S
    most = min(2, memory._store.handles.layout.groups)
    while sum(graph.compiled is not None for graph in graphs._graphs.values()) < most:
        assert time.monotonic() < deadline, "a compiled graph was never built"
        for owner in OWNERS:
            memory.retrieve("Oscar", owner=owner, reference_time=NOW)


def test_graphs_are_taken_down_when_idle(ray_here: None, store: Path) -> None:
    with _open(store, "compiled", groups=4, compiled_idle_s=1) as memory:
        graphs = memory._retriever._executor
        while not graphs.executions:
            memory.retrieve("Oscar", owner="owner-1", reference_time=NOW)
        deadline = time.monotonic() + _COMPILE_S
        while any(graph.compiled for graph in graphs._graphs.values()):
            assert time.monotonic() < deadline, "a compiled graph was never taken down"
            time.sleep(0.1)
        assert memory.retrieve("Oscar", owner="owner-1", reference_time=NOW).results


@pytest.mark.parametrize("how", ["actor", pytest.param("task", marks=pytest.mark.slow)])
def test_any_pure_step_runs_elsewhere(ray_here: None, store: Path, expected: dict[int, list[bytes]], how: str) -> None:
    steps = list(tail_steps()) if how == "task" else ["scored", "packed"]
    # Here questions are embedded by the pool, elsewhere beside the vectors.
    placed = {"stages": dict.fromkeys(steps, how), "question_embedding": "pool"}
    with _open(store, "ray", groups=1, **placed) as memory:
        assert answers(memory, FEW, seed=5) == expected[5]
        timings = memory.retrieve("Oscar", owner="owner-1", reference_time=NOW).metadata.timings_ms
        assert {f"{step}.away" for step in steps} <= timings.keys()


def test_a_connected_program_sees_what_the_store_sees(
    ray_here: None, store: Path, expected: dict[int, list[bytes]]
) -> None:
    with _open(store, "ray", groups=1) as memory:
        name = memory._store.handles.deployment.name
        with Memory.connect(store=name) as connected:
            assert answers(connected, FEW, seed=5) == expected[5]  # type: ignore[arg-type]
            stored = connected.store("Dana: I live in Rome.", owner="connected")
            assert memory.get(stored.node_id, owner="connected").content == "Dana: I live in Rome."
            assert "Rome" in connected.retrieve("Where does Dana live?", owner="connected").bundle.context
