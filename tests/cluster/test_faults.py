"""Every kind of actor is killed under load: nothing acknowledged is lost, and service comes back by itself."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from prme_ray import Memory
from tests.cluster.corpus import make
from tests.cluster.load import under_load

_KINDS = ["vector", "lexical", "graph", "writer", "embedder"]
_BACK_S = 120
_ALL_ASKED = {"cluster": {"graph_actor_from": 0}}
"""Owners as small as these would not need the graph actor."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("faults") / "store")


def kill(actor: Any) -> float:
    """Kill an actor's process, wait until it answers from another one, return the seconds that took."""
    import ray

    old = ray.get(actor.ready.remote())["pid"]
    os.kill(old, signal.SIGKILL)
    started = time.monotonic()
    while ray.get(actor.ready.remote(), timeout=_BACK_S)["pid"] == old:
        assert time.monotonic() < started + _BACK_S
        time.sleep(0.02)
    return time.monotonic() - started


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_actors_killed_under_load(ray_here: None, store: Path, rounds: int) -> None:
    with Memory.open(store, executor="ray", settings=_ALL_ASKED) as memory:
        handles = memory._store.handles
        with under_load(memory) as load:
            for kind in _KINDS * rounds:
                seconds = kill(handles.embedder(0) if kind == "embedder" else handles.get(kind, lambda: 0))
                print(f"{kind} killed: back after {seconds:.1f} s")
                load.progress()
        assert load.wrong == []
        assert load.missing() == []
        assert memory.health().healthy
        print(f"{len(load.acknowledged)} stored, {load.answered} answered, {len(load.refused)} to be retried")


@pytest.mark.slow
def test_a_compiled_graph_is_rebuilt_when_an_actor_of_it_dies(ray_here: None, store: Path) -> None:
    with Memory.open(store, executor="compiled", settings={"cluster": {"compiled_idle_s": 600}}) as memory:
        handles, graphs = memory._store.handles, memory._retriever._executor
        with under_load(memory, writers=1) as load:
            for kind in ("vector", "embedder"):
                _until_graphs_answer(graphs)
                kill(handles.embedder(0) if kind == "embedder" else handles.get(kind, lambda: 0))
                load.progress()
            _until_graphs_answer(graphs)
        assert load.wrong == []
        assert load.missing() == []


def _until_graphs_answer(graphs: Any) -> None:
    answered, deadline = graphs.executions, time.monotonic() + _BACK_S
    while graphs.executions == answered:
        assert time.monotonic() < deadline, "no compiled graph answers"
        time.sleep(0.05)


@pytest.mark.slow
def test_the_directory_may_die_too(ray_here: None, store: Path) -> None:
    import ray

    with Memory.open(store, executor="ray", settings=_ALL_ASKED) as memory:
        handles = memory._store.handles
        ray.kill(ray.get_actor(f"{handles.deployment.name}/directory", "prme-ray"), no_restart=False)
        assert len(memory.retrieve("Oscar", owner="owner-1").results) > 0
        # A channel that is gone for good is started again by a directory that remembers nothing.
        ray.kill(handles.get("graph", lambda: 0), no_restart=True)
        assert len(memory.retrieve("Oscar", owner="owner-1").results) > 0
        assert memory.health().coordinator["recoveries"] >= 1


@pytest.mark.slow
def test_growing_moves_no_data_and_loses_no_request(ray_here: None, store: Path) -> None:
    with Memory.open(store, executor="ray", settings={"cluster": {"groups": 1}}) as memory:
        files = {path for path in store.rglob("*.lance") if path.is_dir()}
        with under_load(memory) as load:
            for groups in (2, 4):
                with Memory.open(store, executor="ray", settings={"cluster": {"groups": groups}}, keep=True):
                    load.progress()
            assert memory._store.handles.layout.groups == 4
        assert load.wrong == []
        assert load.missing() == []
        assert {path for path in store.rglob("*.lance") if path.is_dir()} >= files
        assert memory.health().healthy
