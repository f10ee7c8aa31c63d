"""One request, one answer: in one process, in fresh ones, whatever their hash seed and time zone."""

import hashlib
import json
import os
import subprocess
import sys

from prme_ray import Memory
from tests.memory.tools import FEW_SHARDS, OWNER, Clock, Ids, WordEncoder

REQUEST = "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
CHILD = """
import sys
from prme_ray import Memory
from tests.memory.test_determinism import ask
from tests.memory.tools import Clock, WordEncoder

with Memory.open(sys.argv[1], encoder=WordEncoder(), clock=Clock(), read_only=True) as memory:
    print(ask(memory))
"""
QUERIES = ["How many cats does Caroline have now?", "cat 🎉 猫", "What happened yesterday at 23:30, and on 1 May?", ""]


def ask(memory):
    """Return a digest of the answers as JSON text, order of keys included."""
    found = [
        memory.retrieve(
            query, owner=OWNER, request_id=REQUEST, scope="personal", reference_time="2026-06-01T00:00:00Z"
        ).to_dict(timings=False)
        for query in QUERIES
    ]
    for answer in found:
        del answer["metadata"]["receipt_persisted"]  # a reader keeps no record
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def test_the_same_request_has_the_same_answer_everywhere(folder):
    with Memory.open(folder, settings=FEW_SHARDS, encoder=WordEncoder(), clock=Clock(), new_id=Ids()) as memory:
        # Many equal texts: ties at every cut.
        items = [f"Caroline has cat {number % 7}" for number in range(150)]
        memory.store_many(items, owner=OWNER, session_id="s", event_time="2026-05-01T00:00:00Z")
        memory.store_many(items[:20], owner=OWNER, scope="project")
        here = {ask(memory) for _ in range(20)}
        assert len(here) == 1
    for seed, zone in (("0", "UTC"), ("1", "Asia/Kolkata"), ("4242", "America/St_Johns")):
        child = subprocess.run(
            [sys.executable, "-c", CHILD, str(folder)],
            env=os.environ | {"PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert {child.stdout.strip()} == here
