"""The encoder writes the bytes of the records, for whatever is asked."""

import threading

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prme_ray import Memory
from prme_ray.http.answer_json import AnswerEncoder
from tests.memory.tools import FEW_SHARDS, WordEncoder

OWNER = "dana"
WORDS = (
    "Oscar",
    "cat",
    "blue",
    "house",
    "Mara",
    "paints",
    "Lisbon",
    "2026-05-04",
    "ünïcode ☃",
    'quote " back\\slash\n',
)
WEIGHTED = {"fusion": "weighted"}


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """Every kind of value an answer can hold."""
    with Memory.open(tmp_path_factory.mktemp("answers") / "s", settings=FEW_SHARDS, encoder=WordEncoder()) as opened:
        stored = [
            opened.store(
                f"Mara: {WORDS[number % 10]} {WORDS[number % 7]} {WORDS[number % 3]} number {number}",
                owner=OWNER,
                session_id=None if number % 5 == 0 else f"s{number // 6}",
                scope=("personal", "project", "agent")[number % 3],
                event_time=None if number % 4 else f"2026-05-04T10:{number % 60:02d}:00.{number % 7:06d}Z",
                speaker="Théo" if number % 6 == 1 else None,
                metadata={"n": [number, None, 1.5e-7, {"k": "ü"}]} if number % 3 == 0 else None,
                epistemic_type="hypothetical" if number % 8 == 7 else None,
            )
            for number in range(60)
        ]
        opened.store("the blue house", owner=OWNER, value_bindings={"the blue house": "house-17"})
        opened.store("nothing but cat " * 90, owner=OWNER)
        opened.store_node("Oscar is a cat", owner=OWNER, node_type="fact", pinned=True, evidence_refs=())
        opened.store_node("Oscar was a dog", owner=OWNER, node_type="fact", lifecycle_state="superseded")
        opened.store_node(
            "two sources", owner=OWNER, node_type="fact", evidence_refs=[stored[0].event_id, stored[1].event_id]
        )
        opened.store_edge(stored[1].node_id, stored[2].node_id, "contradicts", owner=OWNER)
        yield opened


REQUESTS = st.fixed_dictionaries(
    {"query": st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)},
    optional={
        "scope": st.sampled_from(["personal", ["project", "agent"]]),
        "limit": st.integers(0, 8),
        "min_score": st.sampled_from([0.0, 0.2, 0.6]),
        "token_budget": st.sampled_from([0, 60, 200, 4096]),
        "min_fidelity": st.sampled_from(["full", "reference"]),
        "weights": st.just(WEIGHTED),
        "retrieval_mode": st.sampled_from(["explicit", "audit"]),
        "knowledge_at": st.just("2030-01-01T00:00:00Z"),
        "max_per_evidence": st.just(1),
        "source_types": st.sampled_from([[], ["user_stated"]]),
    },
)


def same(encoder, answer):
    assert encoder.encode(answer) == orjson.dumps(answer.to_dict())


@given(REQUESTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_bytes_are_those_of_the_records(memory, request):
    same(AnswerEncoder(), memory.retrieve(request.pop("query"), owner=OWNER, **request))


def test_kept_parts_change_no_byte_and_follow_the_store(memory):
    encoder = AnswerEncoder()
    for number in range(3):
        for query in ("cat", "blue house", "Lisbon"):
            same(encoder, memory.retrieve(query, owner=OWNER))
        memory.store(f"cat of day {number}", owner=OWNER)
        same(encoder, memory.retrieve("cat", owner=OWNER))


def test_kept_parts_stay_below_their_limit(memory):
    encoder = AnswerEncoder(memory_bytes=4000)
    for query in ("cat", "blue", "Oscar"):
        same(encoder, memory.retrieve(query, owner=OWNER))
        assert encoder.kept_bytes <= 4000


def test_threads_share_an_encoder(memory):
    encoder = AnswerEncoder(memory_bytes=20_000)
    answers = [memory.retrieve(query, owner=OWNER) for query in WORDS]
    expected = [orjson.dumps(answer.to_dict()) for answer in answers]
    wrong = []

    def work(start):
        for step in range(30):
            place = (start + step) % len(answers)
            if encoder.encode(answers[place]) != expected[place]:
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_answer_without_memories(memory):
    same(AnswerEncoder(), memory.retrieve("cat", owner="nobody"))


def test_large_integers_of_metadata_are_written_out(memory):
    memory.store("big", owner="big", metadata={"n": 2**200})
    body = AnswerEncoder().encode(memory.retrieve("big", owner="big"))
    assert f'"metadata":{{"n":{2**200}}}'.encode() in body


def test_parts_are_added_as_memories_are_first_answered(memory):
    """Few first, then more than the first buffer holds, then the few again: the kept parts grow and stay right."""
    for number in range(80):
        memory.store(f"otter {number} " + "swims far " * 40, owner="many")
    encoder = AnswerEncoder()
    few = memory.retrieve("otter", owner="many", limit=2)
    same(encoder, few)
    small = encoder.kept_bytes
    same(encoder, memory.retrieve("otter", owner="many"))
    assert encoder.kept_bytes > 20 * small
    same(encoder, few)
