"""Channels that policy closes to one scope find nothing in it, however wide the request is."""

import pytest

from prme_ray.model.errors import InvalidSettings
from tests.memory.tools import FEW_SHARDS, OWNER

CLOSED = {"scope_disabled_channels": {"sandbox": ["VECTOR", "PINNED"]}}


@pytest.fixture
def memory(opened):
    memory = opened(settings=CLOSED)
    memory.store("a cat in the garden", owner=OWNER, scope="personal")
    memory.store("a cat in the sandbox", owner=OWNER, scope="sandbox")
    memory.store_node("remember the umbrella", owner=OWNER, node_type="note", scope="sandbox", pinned=True)
    memory.store_node("remember the key", owner=OWNER, node_type="note", scope="personal", pinned=True)
    return memory


def found(answer):
    return {candidate.content: candidate.paths for candidate in answer.results}


def test_a_closed_channel_finds_nothing_in_its_scope_and_all_elsewhere(memory):
    everywhere = {
        "a cat in the garden": ["VECTOR", "LEXICAL"],
        "a cat in the sandbox": ["LEXICAL"],
        "remember the key": ["VECTOR", "PINNED"],
    }
    assert found(memory.retrieve("cat", owner=OWNER)) == everywhere
    assert found(memory.retrieve("cat", owner=OWNER, scope=["sandbox", "personal"])) == everywhere
    alone = memory.retrieve("cat", owner=OWNER, scope="sandbox", include_cross_scope=False)
    assert found(alone) == {"a cat in the sandbox": ["LEXICAL"]}
    # It is off, it has not failed.
    assert alone.metadata.backend_failures == {}


def test_hints_obey_it_too(memory):
    hints = memory.retrieve("cat", owner=OWNER, scope="personal").cross_scope_hints
    assert {candidate.content: candidate.paths for candidate in hints} == {"a cat in the sandbox": ["LEXICAL"]}


def test_closing_everything_leaves_nothing_of_the_scope(opened):
    channels = ["GRAPH", "VECTOR", "LEXICAL", "PINNED"]
    memory = opened(settings={"scope_disabled_channels": {"sandbox": channels}} | FEW_SHARDS)
    memory.store("Anna has a cat", owner=OWNER, scope="sandbox")
    memory.store("Anna has a dog", owner=OWNER, scope="agent")
    assert list(found(memory.retrieve("How many cats does Anna have?", owner=OWNER))) == ["Anna has a dog"]
    assert memory.retrieve("cat", owner=OWNER, scope="sandbox").metadata.outcome == "no_candidate"


@pytest.mark.parametrize("policy", [{"sand": ["VECTOR"]}, {"sandbox": ["vectors"]}])
def test_a_wrong_policy_is_refused(opened, policy):
    with pytest.raises(InvalidSettings, match="scope_disabled_channels"):
        opened(settings={"scope_disabled_channels": policy})
