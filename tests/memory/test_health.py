"""Health agrees after writes of every kind, and owners that come and go in memory change no answer."""

from datetime import timedelta

import pytest

from tests.memory.tools import OWNER, Clock, Ids, same_request


def write_everything(memory, owner):
    stored = memory.store_many(
        [f"Caroline saw cat number {number} in Lisbon" for number in range(30)], owner=owner, session_id="s1"
    )
    memory.store("", owner=owner)
    memory.store("Oscar is a cat.", owner=owner, speaker="Caroline", retrieval_content="Oscar, a cat")
    node = memory.store_node("Dana likes tea.", owner=owner, node_type="preference", pinned=True)
    memory.store_node("an old fact", owner=owner, node_type="fact", lifecycle_state="superseded")
    memory.store_node("Caroline", owner=owner, node_type="entity")
    memory.store_edge(stored[0].node_id, node.node_id, "supports", owner=owner)


def agree(memory):
    health = memory.health()
    assert [shard.disagreements for shard in health.shards if shard.disagreements] == []
    assert health.healthy
    return health


def test_counts_agree_through_writing_flushing_reopening_and_reading(memory, opened):
    agree(memory)
    for owner in ("one", "two", "three"):
        write_everything(memory, owner)
        agree(memory)
        memory.retrieve("cat", owner=owner)
    health = agree(memory)
    assert sum(shard.log["event"] for shard in health.shards) == 3 * 32
    assert sum(shard.resident["owners"] for shard in health.shards) == 3
    memory.flush()
    health = agree(memory)
    assert all(shard.projected["tables"]["node"] == shard.log["node"] for shard in health.shards)
    reader = opened(read_only=True)
    reader.retrieve("cat", owner="one")
    agree(reader)
    memory.store("one more", owner="one")
    reader.retrieve("cat", owner="one")
    agree(reader)
    memory.close()
    memory = opened()
    memory.retrieve("cat", owner="two")
    health = agree(memory)
    assert health.to_dict()["healthy"]


def test_a_missing_row_is_noticed(memory):
    write_everything(memory, OWNER)
    memory.flush()
    (shard,) = (shard for shard in memory._store.existing_shards() if shard.log.last_seq())
    shard.nodes._table.delete("seq = 2")
    health = memory.health()
    assert not health.healthy
    assert any("node" in problem for shard in health.shards for problem in shard.disagreements)


@pytest.mark.parametrize("budget", [1, 60_000])
def test_a_small_memory_budget_changes_no_answer(opened, tmp_path, budget):
    owners = [f"owner {number}" for number in range(4)]

    def answers(path, **storage):
        settings = {"storage": {"virtual_shards": 2, **storage}}
        memory = opened(path, settings=settings, clock=Clock(step=timedelta(0)), new_id=Ids("same"))
        found = []
        for owner in owners:
            write_everything(memory, owner)
        for _ in range(2):
            found.extend(
                same_request(memory.retrieve(query, owner=owner, reference_time="2026-06-01T00:00:00Z"))
                for owner in owners
                for query in ("Where did Caroline see cat number 7?", "How many cats?")
            )
            memory.store("another cat", owner=owners[0])
        evictions = agree(memory).evictions
        memory.close()
        return found, evictions

    large, none = answers(tmp_path / "large")
    small, some = answers(tmp_path / "small", resident_bytes=budget)
    assert (none, some > len(owners)) == (0, True)
    assert small == large
