"""RFC §11 and §13: one request, one answer, byte for byte; a hundred times, in one process and in fresh ones."""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from prme_ray import Memory
from tests.memory.tools import FEW_SHARDS, OWNER, Clock, Ids

REQUEST = "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
REPEATS = 100
CHILD = r"""
import sys
from prme_ray import Memory
from tests.properties.test_determinism import QUESTIONS, ask

with Memory.open(sys.argv[1], read_only=True) as memory:
    sys.stdout.buffer.write(b"\n".join(ask(memory, question) for question in QUESTIONS))
"""
ZONES = ["UTC", "Asia/Kolkata", "America/St_Johns"]
QUESTIONS = [
    "How many times did Anna go to the lake last summer, and where does she live now?",
    "lake 🎉 猫",
    "What happened yesterday at 23:30, and on 1 July?",
    "",
]


def ask(memory, question=QUESTIONS[0]):
    """Return the whole answer as bytes. A process that only reads keeps no record, which is not part of the answer."""
    answer = memory.retrieve(
        question,
        owner=OWNER,
        scope="personal",
        request_id=REQUEST,
        reference_time="2026-06-01T00:00:00Z",
    ).to_dict(timings=False)
    del answer["metadata"]["receipt_persisted"]
    return json.dumps(answer, ensure_ascii=False).encode()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with ties at every cut, vectors of the built-in encoder, and its folder."""
    folder = tmp_path_factory.mktemp("determinism") / "store"
    with Memory.open(folder, settings=FEW_SHARDS, clock=Clock(), new_id=Ids()) as memory:
        texts = [f"Anna went to the lake with friend {number % 7}" for number in range(60)]
        memory.store_many(texts, owner=OWNER, session_id="s", event_time="2025-07-01T00:00:00Z")
        memory.store("Anna moved and now lives in Rome", owner=OWNER, session_id="t")
        memory.store_many(texts[:10], owner=OWNER, scope="project")
        entity = memory.store_node("Anna", owner=OWNER, node_type="entity")
        pinned = memory.store_node("Anna prefers trains", owner=OWNER, node_type="preference", pinned=True)
        memory.store_edge(entity.node_id, pinned.node_id, "has_fact", owner=OWNER)
        yield memory, folder


def fresh(folder, number):
    """Return the answers of a process of its own, under another hash seed and time zone each time."""
    zone = ZONES[number % len(ZONES)]
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)],
        env=os.environ | {"PYTHONHASHSEED": str(number), "TZ": zone},
        capture_output=True,
        check=True,
        timeout=120,
    )
    return child.stdout


def test_the_request_is_worth_repeating(store):
    memory, _ = store
    answer = json.loads(ask(memory))
    assert len(answer["results"]) > 50
    assert answer["cross_scope_hints"]
    assert answer["bundle"]["context"]
    assert {path for path, count in answer["metadata"]["candidates_generated"].items() if count} >= {
        "GRAPH",
        "LEXICAL",
        "PINNED",
        "VECTOR",
    }
    assert answer["metadata"]["aggregation_coverage"] is not None


def test_a_hundred_times_in_one_process(store):
    memory, _ = store
    assert len({hashlib.sha256(ask(memory)).digest() for _ in range(REPEATS)}) == 1


def check_fresh_processes(store, count):
    memory, folder = store
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = set(pool.map(lambda number: fresh(folder, number), range(count)))
    assert found == {b"\n".join(ask(memory, question) for question in QUESTIONS)}


def test_five_times_in_fresh_processes(store):
    check_fresh_processes(store, 5)


@pytest.mark.slow
def test_a_hundred_times_in_fresh_processes(store):
    check_fresh_processes(store, REPEATS)
