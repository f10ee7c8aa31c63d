"""A repeated write stores nothing and gives the first ids; another request with its key is refused."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from prme_ray import Memory
from prme_ray.http.app import create_app
from prme_ray.model.errors import DuplicateSubject, IdempotencyConflict, InvalidRequest
from tests.memory.tools import FEW_SHARDS, OWNER, WordEncoder

KEY = "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
OTHER_KEY = "6f1d8e7b-d38e-420a-bde5-0343aa5915c5"
TIMES = {"event_time": "2026-05-04T10:00:00Z"}


def total(memory):
    return sum(sum(shard.log.values()) for shard in memory.health().shards)


def events(memory):
    return sum(shard.log["event"] for shard in memory.health().shards)


def ends(memory):
    return [memory.store(text, owner=OWNER).node_id for text in ("one end", "other end")]


WRITES = {
    "/v1/store": [{"content": "Oscar is a cat", "session_id": "s1", **TIMES}, {"content": "Oscar is a dog"}],
    "/v1/store/batch": [{"items": ["a", {"content": "b"}]}, {"items": ["a", {"content": "b"}, "c"]}],
    "/v1/nodes": [{"content": "a fact", "node_type": "fact"}, {"content": "a fact", "node_type": "task"}],
    "/v1/edges": [{"edge_type": "supports"}, {"edge_type": "contradicts"}],
}


def body(memory, path, which):
    found = {**WRITES[path][which], "owner": OWNER}
    if path == "/v1/edges":
        found |= dict(zip(("source_id", "target_id"), memory.ends, strict=True))
    return found


@pytest.fixture
def memory(memory):
    memory.ends = ends(memory)
    return memory


@pytest.mark.parametrize("path", WRITES)
def test_a_repeat_gives_the_same_and_another_body_is_refused(http, memory, path):
    def post(which, key=KEY):
        return http.post(path, json=body(memory, path, which), headers={"Idempotency-Key": key})

    first = post(0)
    stored = total(memory)
    assert (first.status_code, post(0).json()) == (200, first.json())
    refused = post(1)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "IDEMPOTENCY_CONFLICT")
    assert total(memory) == stored
    assert post(1, OTHER_KEY).status_code == 200
    assert total(memory) > stored


@pytest.mark.parametrize("path", WRITES)
def test_many_at_once_store_once(http, memory, path):
    before = events(memory)
    sent = body(memory, path, 0)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: http.post(path, json=sent, headers={"Idempotency-Key": KEY}), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    # Every keyed write has one event, whatever else it brings.
    assert events(memory) - before == len(sent.get("items", ["one"]))


def test_of_two_requests_at_once_with_one_key_one_wins(http, memory):
    def post(which):
        sent = body(memory, "/v1/store", which % 2)
        return http.post("/v1/store", json=sent, headers={"Idempotency-Key": KEY})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [409] * 4
    assert len({answer.text for answer in answers if answer.status_code == 200}) == 1


def test_a_key_holds_after_a_restart_and_under_other_settings(tmp_path, served):
    answers = []
    for confidence in (0.8, 0.3):
        settings = {**FEW_SHARDS, "confidence_overrides": {"asserted:user_stated": confidence}}
        with Memory.open(tmp_path / "again", settings=settings, encoder=WordEncoder()) as memory:
            sent = {"content": "Oscar is a cat", "owner": OWNER}
            answers.append(served(memory).post("/v1/store", json=sent, headers={"Idempotency-Key": KEY}))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


def test_a_key_is_its_owner_s_and_not_of_one_route(memory):
    first = memory.store("x", owner=OWNER, idempotency_key=KEY)
    others = [
        memory.store("x", owner="eve", idempotency_key=KEY),
        memory.store("x", owner=OWNER, tenant="acme", idempotency_key=KEY),
    ]
    assert len({first.node_id, *(other.node_id for other in others)}) == 3
    with pytest.raises(IdempotencyConflict):
        memory.store_node("x", owner=OWNER, node_type="note", idempotency_key=KEY)
    with pytest.raises(IdempotencyConflict):
        memory.store_many(["x"], owner=OWNER, idempotency_key=KEY)


def test_a_refused_request_leaves_its_key_free(memory):
    with pytest.raises(InvalidRequest):
        memory.store("x", owner=OWNER, confidence=2, idempotency_key=KEY)
    memory.store("x", owner=OWNER, confidence=0.2, idempotency_key=KEY)
    with pytest.raises(IdempotencyConflict):
        memory.store("x", owner=OWNER, confidence=0.3, idempotency_key=KEY)


def test_an_id_of_the_caller_s_own_is_still_refused_when_taken(memory):
    taken = memory.store("x", owner=OWNER).node_id
    with pytest.raises(DuplicateSubject):
        memory.store_node("y", owner=OWNER, node_type="fact", node_id=taken, idempotency_key=KEY)
    own = {"owner": OWNER, "node_type": "fact", "node_id": OTHER_KEY, "idempotency_key": KEY}
    assert memory.store_node("y", **own) == memory.store_node("y", **own)
    with pytest.raises(IdempotencyConflict):
        memory.store_node("y", **{**own, "node_id": KEY})


def test_a_changed_list_stores_none_of_its_items(memory):
    memory.store_many(["a", "b"], owner=OWNER, idempotency_key=KEY)
    stored = total(memory)
    for items in (["a"], ["a", "c"], ["c", "b"], ["a", "b", "c"], ["b", "a"]):
        with pytest.raises(IdempotencyConflict):
            memory.store_many(items, owner=OWNER, idempotency_key=KEY)
    with pytest.raises(IdempotencyConflict):
        memory.store_many(["a", "b"], owner=OWNER, scope="agent", idempotency_key=KEY)
    assert total(memory) == stored
    with pytest.raises(InvalidRequest, match="items"):
        memory.store_many(iter(["a"]), owner=OWNER, idempotency_key=OTHER_KEY)


def test_a_list_that_was_stored_in_part_is_completed(memory):
    class Stops(Exception):
        """The process of the first attempt ended here."""

    class Failing(WordEncoder):
        def embed(self, texts):
            if "c" in texts:
                raise Stops
            return super().embed(texts)

    path = memory.health().path + "-part"
    items = ["a", "b", "c", "d"]
    with Memory.open(path, settings=FEW_SHARDS, encoder=Failing()) as first, pytest.raises(Stops):
        first.store_many(items, owner=OWNER, idempotency_key=KEY)
    with Memory.open(path, settings=FEW_SHARDS, encoder=WordEncoder()) as second:
        stored = second.store_many(items, owner=OWNER, idempotency_key=KEY)
        assert [second.get(item.node_id, owner=OWNER).content for item in stored] == items
        assert second.store_many(items, owner=OWNER, idempotency_key=KEY) == stored
        assert len(second.retrieve("a b c d", owner=OWNER).results) == 4


def test_the_python_call_and_the_service_agree_on_keys(memory, served):
    app = create_app(memory)
    assert app.state.service.memory is memory
    sent = {"content": "x", "owner": OWNER}
    over_http = served().post("/v1/store", json=sent, headers={"Idempotency-Key": KEY.upper()}).json()
    assert memory.store("x", owner=OWNER, idempotency_key=KEY).node_id == over_http["node_id"]
