"""Receipts: what is read is what writing at once would have given; replay, chain, paging, strictness."""

import hashlib
import json
import random
import sqlite3
from datetime import timedelta

import pytest

from prme_ray import Memory, Settings
from prme_ray.model.errors import (
    AmbiguousRecord,
    InvalidRequest,
    InvalidSettings,
    NotFound,
    ReadOnlyStore,
    ReceiptRejected,
)
from prme_ray.model.receipts import canonical_json, checksum_of, read_receipt
from stages.replay import replay
from tests.memory.receipt_by_hand import receipt_by_hand
from tests.memory.tools import FEW_SHARDS, OWNER, START, Clock, WordEncoder

WORDS = ["cat", "Oscar", "Lisbon", "garden", "violin", "now", "bakery", "rain", "猫"]


def filled(memory, *, owner=OWNER, count=60, seed=3):
    chance = random.Random(seed)
    items = [
        {
            "content": f"Dana: {' '.join(chance.choices(WORDS, k=4))} number {place}",
            "session_id": f"s{place // 6}",
            "scope": chance.choice(["personal", "project"]),
        }
        for place in range(count)
    ]
    stored = memory.store_many(items, owner=owner)
    memory.store_node("Dana moved to Lisbon now.", owner=owner, node_type="fact", pinned=True)
    return stored


REQUESTS = [
    ("where is the cat Oscar", {}),
    ("what does Dana have now", {"limit": 7}),
    ("How many cats are in the garden?", {"scope": "project", "min_score": 0.2}),
    ("rain", {"retrieval_mode": "audit", "token_budget": 300, "min_fidelity": "full"}),
    ("violin", {"retrieval_mode": "explicit", "time_from": "2020-01-01T00:00:00Z", "max_per_evidence": 1}),
    ("", {}),
    ("nothing of this kind", {"exclude_node_types": ["note"], "source_types": []}),
]


@pytest.mark.parametrize("scoring", [{}, {"fusion": "weighted"}])
def test_a_receipt_read_is_the_receipt_written_at_once(opened, scoring):
    memory = opened(settings={"scoring": scoring})
    filled(memory)
    settings = Settings.parse(FEW_SHARDS | {"scoring": scoring})
    for query, options in REQUESTS:
        answer = memory.retrieve(query, owner=OWNER, **options)
        found = memory.get_retrieval(answer.metadata.request_id, owner=OWNER)
        read = json.loads(found.receipt)
        if scoring:
            # The weighted formula shifts its weights by the question: those stand in the lineages.
            shifted = [lineage["weights"] for lineage in read["score_provenance"].values()]
            assert all(weights == shifted[0] for weights in shifted)
            assert [sum(weights[f"w_{name}"] for name in ("semantic", "lexical", "graph", "recency", "salience",
                                                          "confidence")) for weights in shifted[:1]] == (
                pytest.approx([1.0] * len(shifted[:1]))
            )  # fmt: skip
            continue
        asked = {"owner": OWNER, "query": query, "policy": read["ranking_policy"]} | options
        written = receipt_by_hand(answer, asked=asked, settings=settings, execution=read["execution"])
        assert found.receipt == written
        assert found.receipt_checksum == hashlib.sha256(written.encode()).hexdigest()


@pytest.mark.parametrize(
    "settings", [{}, {"scoring": {"fusion": "weighted"}}, {"packing": {"context_format": "compact"}}]
)
def test_replay_gives_the_scores_and_the_order_of_the_answer(opened, settings):
    memory = opened(settings=settings)
    filled(memory)
    for query, options in REQUESTS:
        answer = memory.retrieve(query, owner=OWNER, **options)
        replayed = memory.replay(answer.metadata.request_id, owner=OWNER)
        assert replayed.ranking == answer.results.ids
        assert replayed.scores == {item.node_id: item.score for item in answer.results}


def leaves(value, path=()):
    """Yield the way to every single value of a JSON object."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from leaves(inner, (*path, key))


def put(value, path, new):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def altered(value, chance):
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + chance.choice([1, -1, 0.25])
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    return {} if value else None


def test_three_hundred_tampered_receipts_are_refused(memory):
    filled(memory)
    chance = random.Random(11)
    texts = []
    for query, options in REQUESTS[:5]:
        answer = memory.retrieve(query, owner=OWNER, **options)
        texts.append(memory.get_retrieval(answer.metadata.request_id, owner=OWNER).receipt)
    refused = 0
    while refused < 300:
        text = chance.choice(texts)
        checksum, receipt = checksum_of(text), json.loads(text)
        path = chance.choice([path for path in leaves(receipt) if path[0] != "execution" or chance.random() < 0.2])
        put(receipt, path, altered(_at(receipt, path), chance))
        changed = json.dumps(receipt, ensure_ascii=False, separators=(",", ":"))
        assert changed != text
        with pytest.raises(ReceiptRejected):
            read_receipt(changed, checksum=checksum, request_id=json.loads(text)["request_id"], owner=OWNER)
        refused += 1


def _at(value, path):
    for key in path:
        value = value[key]
    return value


def test_a_score_that_does_not_follow_is_refused_even_with_a_checksum_of_its_own(memory):
    filled(memory)
    answer = memory.retrieve("cat", owner=OWNER)
    text = memory.get_retrieval(answer.metadata.request_id, owner=OWNER).receipt
    receipt = json.loads(text)
    receipt["candidates"][1]["score"] += 0.001
    changed = canonical_json(receipt)
    with pytest.raises(ReceiptRejected):
        replay(read_receipt(changed, checksum=checksum_of(changed), request_id=answer.metadata.request_id, owner=OWNER))


def test_other_owners_and_unknown_requests_are_not_found(memory):
    filled(memory)
    request_id = memory.retrieve("cat", owner=OWNER).metadata.request_id
    for owner, wanted in (("other", request_id), (OWNER, "0d1e2f30-0000-4000-8000-000000000001")):
        for verb in (memory.get_retrieval, memory.replay, memory.reproduce):
            with pytest.raises(NotFound):
                verb(wanted, owner=owner)
    with pytest.raises(InvalidRequest, match="UUID"):
        memory.get_retrieval("no id", owner=OWNER)


def test_pages_are_complete_and_in_order(memory):
    filled(memory)
    asked = [memory.retrieve(f"cat {number}", owner=OWNER).metadata.request_id for number in range(25)]
    memory.retrieve("cat", owner="other")
    found, cursor = [], None
    while True:
        page = memory.list_retrievals(owner=OWNER, cursor=cursor, limit=10)
        found += page.retrievals
        cursor = page.next_cursor
        if cursor is None:
            break
    assert [item.request_id for item in found] == asked
    assert [item.number for item in found] == list(range(1, 26))
    assert memory.list_retrievals(owner="nobody").retrievals == []
    for wrong in ({"limit": 0}, {"limit": 1001}, {"limit": True}, {"cursor": "x"}, {"cursor": "-1"}):
        with pytest.raises(InvalidRequest):
            memory.list_retrievals(owner=OWNER, **wrong)


def test_one_id_for_two_different_requests_is_ambiguous_for_a_repeated_one_not(memory):
    filled(memory)
    options = {"owner": OWNER, "request_id": "0d1e2f30-0000-4000-8000-000000000002", "reference_time": START}
    memory.retrieve("cat", **options)
    memory.retrieve("cat", **options)
    assert memory.get_retrieval(options["request_id"], owner=OWNER).record["query"] == "cat"
    memory.retrieve("rain", **options)
    with pytest.raises(AmbiguousRecord, match="2 requests"):
        memory.get_retrieval(options["request_id"], owner=OWNER)


def test_the_chain_finds_what_was_done_to_the_log(memory, opened, folder):
    filled(memory)
    asked = [memory.retrieve("cat", owner=OWNER).metadata.request_id for _ in range(4)]
    report = memory.verify_chain(owner=OWNER)
    assert (report.records, report.breaks, report.whole) == (4, [], True)
    assert report.head == memory.get_retrieval(asked[-1], owner=OWNER).snapshot.chain
    links = [memory.get_retrieval(name, owner=OWNER).snapshot for name in asked]
    assert [one.previous for one in links] == ["0" * 64, *(one.chain for one in links[:-1])]
    memory.close()
    (log,) = [path for path in folder.rglob("*.sqlite*") if path.suffix in {".sqlite", ".db"} and _holds(path)]
    with sqlite3.connect(log) as database:
        database.execute("DELETE FROM operations WHERE target = ?", (asked[1],))
    report = opened().verify_chain(owner=OWNER)
    assert not report.whole
    assert report.breaks[0].number == 2


def _holds(path):
    with sqlite3.connect(path) as database:
        names = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        return "operations" in names and database.execute("SELECT count(*) FROM operations").fetchone()[0] > 0


def test_strict_receipts_are_durable_when_the_answer_is_there(folder, opened):
    memory = opened(settings={"strict_receipts": True})
    filled(memory)
    answer = memory.retrieve("cat", owner=OWNER)
    assert answer.metadata.receipt_persisted
    # Another process would see it: this reader shares nothing with the writer but files.
    with Memory.open(folder, settings=FEW_SHARDS, encoder=WordEncoder(), read_only=True) as reader:
        assert reader.get_retrieval(answer.metadata.request_id, owner=OWNER).receipt is not None
        assert not reader.retrieve("cat", owner=OWNER).metadata.receipt_persisted
    strict = FEW_SHARDS | {"strict_receipts": True}
    with (
        Memory.open(folder, settings=strict, encoder=WordEncoder(), read_only=True) as reader,
        pytest.raises(ReadOnlyStore),
    ):
        reader.retrieve("cat", owner=OWNER)
    with pytest.raises(InvalidSettings, match="log_retrievals"):
        Settings.parse({"strict_receipts": True, "log_retrievals": False})


def test_a_question_about_the_past_is_answered_from_the_past(opened):
    clock = Clock(step=timedelta(0))
    memory = opened(clock=clock)
    answers = []
    for number in range(4):
        clock.now = START + timedelta(hours=number)
        filled(memory, count=8, seed=number)
        clock.now += timedelta(minutes=30)
        answers.append(memory.retrieve("cat Oscar now", owner=OWNER, reference_time=START))
    for number, then in enumerate(answers):
        told = {name: value for name, value in then.to_dict(timings=False).items() if name != "metadata"}
        for as_of in (then.metadata.snapshot, START + timedelta(hours=number, minutes=45)):
            again = memory.retrieve("cat Oscar now", owner=OWNER, reference_time=START, as_of=as_of)
            assert {name: value for name, value in again.to_dict(timings=False).items() if name != "metadata"} == told
            assert again.metadata.snapshot == then.metadata.snapshot
            coverage = again.metadata.historical_coverage
            assert (coverage.exact_snapshot, coverage.as_of, coverage.limitations) == (True, then.metadata.snapshot, [])
            assert memory.reproduce(again.metadata.request_id, owner=OWNER).reproduced
    assert not memory.retrieve("cat", owner=OWNER, as_of=START - timedelta(days=1)).results
    newest = answers[-1].metadata.snapshot
    with pytest.raises(InvalidRequest, match=f"as_of={newest + 1} is not allowed: give 0 to {newest}"):
        memory.retrieve("cat", owner=OWNER, as_of=newest + 1)
    for wrong in (-1, True, "yesterday", 1.5):
        with pytest.raises(InvalidRequest):
            memory.retrieve("cat", owner=OWNER, as_of=wrong)


def test_as_of_and_knowledge_at_are_two_things(memory):
    filled(memory)
    cut = memory.retrieve("cat", owner=OWNER, knowledge_at="2030-01-01T00:00:00Z")
    assert (cut.metadata.historical_coverage.exact_snapshot, cut.metadata.historical_coverage.as_of) == (False, None)
    assert "History:" in (cut.bundle.coverage_notice or "")
    both = memory.retrieve("cat", owner=OWNER, knowledge_at="2030-01-01T00:00:00Z", as_of=cut.metadata.snapshot)
    assert both.metadata.historical_coverage.exact_snapshot
    assert both.bundle.coverage_notice is None
