"""A past retrieval comes out the same again, or the outcome says what stands in the way."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from prme_ray import Memory
from tests.memory.test_receipts import REQUESTS, filled
from tests.memory.tools import FEW_SHARDS, OWNER, WordEncoder


class Overlap:
    """Scores by shared words."""

    name = "overlap"

    def __init__(self, version="1"):
        self.version = version

    def score(self, query, texts):
        asked = set(query.lower().split())
        return [len(asked & set(text.lower().split())) / (1 + len(asked)) for text in texts]


def reword(query, count):
    return ["Oscar in the garden", "rain in Lisbon"][:count]


ON = {"rerank": {"enabled": True}, "reformulation": {"enabled": True}}
VARIANTS = [
    {},
    {"scoring": {"fusion": "weighted"}},
    {"packing": {"context_format": "auditable", "session_context_packing": "adjacent", "episode_context_top_k": 2}},
    {"packing": {"evidence_augmentation_top_k": 4}, "disabled_channels": ["GRAPH"]},
    ON,
]


def asked(memory):
    """Ask everything, writing between the questions; return the ids."""
    ids = []
    for number, (query, options) in enumerate(REQUESTS):
        ids.append(memory.retrieve(query, owner=OWNER, **options).metadata.request_id)
        memory.store_node(f"Dana has cat number {number} now.", owner=OWNER, node_type="fact", pinned=number % 2 == 0)
        one = memory.store(f"Oscar {number} in Lisbon", owner=OWNER, session_id="s1")
        other = memory.store(f"Oscar {number} in the garden", owner=OWNER, session_id="s1")
        memory.store_edge(one.node_id, other.node_id, "relates_to", owner=OWNER, confidence=0.9)
    return ids


def sole(found, reason):
    assert (found.reproduced, [one.code for one in found.reasons]) == (False, [reason])
    return found


@pytest.mark.parametrize("settings", VARIANTS)
def test_after_further_writes_and_a_restart_under_other_settings_everything_is_the_same(opened, settings):
    helpers = {"cross_encoder": Overlap(), "reformulate": reword} if settings is ON else {}
    memory = opened(settings=settings, **helpers)
    filled(memory)
    ids = asked(memory)
    for request_id in ids:
        found = memory.reproduce(request_id, owner=OWNER)
        assert found.reproduced, found
    contexts = [memory.reproduce(request_id, owner=OWNER).context for request_id in ids]
    memory.close()
    changed = {"packing": {"token_budget": 300, "context_format": "compact"}, "query_intent_order": "temporal_first"}
    if settings is ON:
        changed |= {"rerank": ON["rerank"]}
    memory = opened(settings=changed, **({"cross_encoder": Overlap()} if settings is ON else {}))
    assert [memory.reproduce(request_id, owner=OWNER).context for request_id in ids] == contexts
    assert all(memory.reproduce(request_id, owner=OWNER).reproduced for request_id in ids)


def test_in_another_process_by_the_command(opened, folder, tmp_path):
    memory = Memory.open(folder, settings=FEW_SHARDS)
    filled(memory, count=12)
    ids = asked(memory)
    report = tmp_path / "report.jsonl"
    command = [sys.executable, "-m", "jobs.reproduce", str(folder), "--owner", OWNER, "--json", str(report)]
    # The writer is still open: the command reads beside it.
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2]
    )
    memory.close()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{len(ids)} of {len(ids)} retrievals came out the same, byte for byte\n"
    told = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    assert [one["request_id"] for one in told] == ids


def test_another_encoder_does_not_matter_where_the_question_s_vector_is_on_record(opened):
    memory = opened()
    filled(memory)
    ids = asked(memory)
    memory.close()
    memory = opened(encoder=WordEncoder(version="2"))
    assert memory.health().mismatched_encoder is not None
    for request_id in ids:
        found = memory.reproduce(request_id, owner=OWNER)
        assert found.reproduced, found


def test_another_encoder_matters_where_the_question_had_other_wordings(opened):
    memory = opened(settings={"reformulation": ON["reformulation"]}, reformulate=reword)
    filled(memory)
    request_id = memory.retrieve("cat", owner=OWNER).metadata.request_id
    memory.close()
    sole(opened(encoder=WordEncoder(version="2")).reproduce(request_id, owner=OWNER), "encoder_changed")


@pytest.mark.parametrize("now", [None, Overlap("2")])
def test_another_cross_encoder_is_named(opened, now):
    memory = opened(settings={"rerank": ON["rerank"]}, cross_encoder=Overlap())
    filled(memory)
    request_id = memory.retrieve("cat", owner=OWNER).metadata.request_id
    memory.close()
    memory = opened(settings={} if now is None else {"rerank": ON["rerank"]}, cross_encoder=now)
    found = sole(memory.reproduce(request_id, owner=OWNER), "reranker_changed")
    assert "overlap@1" in found.reasons[0].detail


def test_a_request_that_failed_has_nothing_to_reproduce(opened):
    memory = opened(settings={"embedding_mismatch_policy": "reject"})
    filled(memory, count=3)
    memory.close()
    other = opened(settings={"embedding_mismatch_policy": "reject"}, encoder=WordEncoder(version="2"))
    with pytest.raises(Exception, match="reembed"):
        other.retrieve("cat", owner=OWNER, request_id="0d1e2f30-0000-4000-8000-000000000004")
    sole(other.reproduce("0d1e2f30-0000-4000-8000-000000000004", owner=OWNER), "request_failed")


def test_settings_that_this_version_does_not_know_are_named(opened, folder):
    memory = opened()
    filled(memory, count=3)
    memory.retrieve("cat", owner=OWNER, request_id="0d1e2f30-0000-4000-8000-000000000005")
    memory.close()
    (payload,) = _rows(folder, "SELECT payload FROM operations")[0]
    _rewrite(folder, payload, lambda head: head | {"settings": head["settings"].replace('"scoring"', '"scorings"')})
    found = sole(opened().reproduce("0d1e2f30-0000-4000-8000-000000000005", owner=OWNER), "settings_changed")
    assert "scorings" in found.reasons[0].detail


def test_a_generation_of_vectors_that_is_gone_is_named(opened, folder):
    memory = opened()
    filled(memory, count=3)
    request_id = memory.retrieve("cat", owner=OWNER).metadata.request_id
    memory.store("later", owner=OWNER)
    memory.close()
    _sql(folder, "UPDATE generations SET generation = 2", "UPDATE vectors SET generation = 2")
    reader = opened(read_only=True)
    sole(reader.reproduce(request_id, owner=OWNER), "snapshot_expired")


def test_a_memory_that_has_another_text_now_is_named(opened, folder):
    memory = opened()
    filled(memory, count=3)
    request_id = memory.retrieve("cat", owner=OWNER).metadata.request_id
    memory.close()
    _rewrite(
        folder, _rows(folder, "SELECT payload FROM operations")[0][0], lambda head: head | {"contents_sha256": "0"}
    )
    sole(opened().reproduce(request_id, owner=OWNER), "content_erased")


def _logs(folder):
    return [path for path in folder.rglob("log.sqlite") if path.is_file()]


def _sql(folder, *statements):
    for path in _logs(folder):
        with sqlite3.connect(path) as database:
            for statement in statements:
                database.execute(statement)


def _rows(folder, query):
    return [row for path in _logs(folder) for row in sqlite3.connect(path).execute(query).fetchall()]


def _rewrite(folder, payload, change):
    """Put another head into a record."""
    from prme_ray.records.encode import compressed
    from prme_ray.records.record import decode_record

    record = decode_record(payload)
    changed = compressed(change(record.head), record.columns)
    for path in _logs(folder):
        with sqlite3.connect(path) as database:
            database.execute("UPDATE operations SET payload = ? WHERE payload = ?", (changed, payload))
