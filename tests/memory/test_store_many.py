"""A stream of texts: read as it is stored, in order, and nothing is lost to one bad item."""

import pytest

from prme_ray.model.errors import InvalidItems, InvalidRequest, InvalidText
from tests.memory.tools import OWNER, WordEncoder

IN_FLIGHT = 80  # 64 that wait for their commit, and a few that are embedded


def contents(memory, stored):
    return [memory.get(item.node_id, owner=OWNER).content for item in stored]


def test_receipts_come_in_order_and_all_is_found(memory):
    texts = [f"number {number}" for number in range(200)]
    stored = memory.store_many(iter(texts), owner=OWNER)
    assert contents(memory, stored) == texts
    assert [item.sequence for item in stored] == sorted({item.sequence for item in stored})
    assert {candidate.node_id for candidate in memory.retrieve("number", owner=OWNER).results} == {
        item.node_id for item in stored
    }


def test_no_items_no_receipts(memory):
    assert memory.store_many([], owner=OWNER) == []


def test_an_items_own_arguments_win_over_the_common_ones(memory):
    items = ["a", {"content": "b"}, {"content": "c", "scope": "project", "ttl_days": None}]
    stored = memory.store_many(items, owner=OWNER, scope="agent", ttl_days=5)
    nodes = [memory.get(item.node_id, owner=OWNER) for item in stored]
    assert [(node.scope, node.ttl_days) for node in nodes] == [("agent", 5), ("agent", 5), ("project", None)]


def test_a_long_stream_is_stored_while_it_is_read(opened):
    encoder = WordEncoder()
    memory = opened(encoder=encoder)
    behind = []

    def items():
        for given in range(400):
            committed = sum(shard.log["event"] for shard in memory.health().shards) if given % 50 == 0 else None
            if committed is not None:
                behind.append(given - committed)
            yield f"number {given}"

    assert len(memory.store_many(items(), owner=OWNER)) == 400
    assert len(behind) == 8
    assert max(behind) <= IN_FLIGHT


def test_what_came_before_an_exception_of_the_stream_is_stored(memory):
    def items():
        yield from (f"number {number}" for number in range(30))
        raise LookupError("the source went away")

    with pytest.raises(LookupError, match="went away"):
        memory.store_many(items(), owner=OWNER)
    assert len(memory.retrieve("number", owner=OWNER).results) == 30


def test_refused_items_are_named_and_all_others_stored(memory):
    items = [
        "first",
        "nul \x00",
        "second",
        {"content": "third", "scope": "moon"},
        {"content": "\ud800"},
        {"text": "fourth"},
        {"scope": "agent"},
        {"content": "fifth", "pinned": True},
        {"content": "sixth", "session_id": "s\x00"},
        7,
        "last",
    ]
    with pytest.raises(InvalidItems) as caught:
        memory.store_many(items, owner=OWNER)
    error = caught.value
    assert [(refusal.item, refusal.argument) for refusal in error.rejected] == [
        (1, "content"),
        (3, "scope"),
        (4, "content"),
        (5, "text"),
        (6, "content"),
        (7, "pinned"),
        (8, "session_id"),
        (9, "content"),
    ]
    for refusal in error.rejected:
        if isinstance(refusal, InvalidText):
            assert f"of item {refusal.item} " in str(refusal)
    assert contents(memory, error.stored) == ["first", "second", "last"]
    answer = memory.retrieve("first second last", owner=OWNER)
    assert {item.node_id for item in answer.results} == {item.node_id for item in error.stored}


@pytest.mark.parametrize("items", ["one text", b"bytes", {"content": "one"}, 5, None])
def test_what_is_no_stream_of_items_is_refused(memory, items):
    with pytest.raises(InvalidRequest) as caught:
        memory.store_many(items, owner=OWNER)
    assert caught.value.argument == "items"


def test_an_unknown_common_argument_is_refused_before_the_stream_is_read(memory):
    with pytest.raises(InvalidRequest) as caught:
        memory.store_many(iter(["a"]), owner=OWNER, sesion_id="s")
    assert caught.value.argument == "sesion_id"
    assert memory.retrieve("a", owner=OWNER).metadata.outcome == "unknown_owner"
