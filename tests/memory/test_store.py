"""What a store keeps and gives back, and what it infers."""

import hashlib
import warnings

import pytest

from prme_ray import Memory
from prme_ray.model.errors import (
    DuplicateSubject,
    InvalidRequest,
    InvalidSettings,
    NotFound,
    StoreClosed,
    StoreCorrupt,
    StoreLocked,
)
from tests.memory.tools import OWNER, START, WordEncoder

UNKNOWN = "00000000-0000-4000-8000-000000000000"
BINDINGS = {"the blue house": "house-17"}


def test_a_memory_and_its_source_come_back_as_stored(memory):
    stored = memory.store(
        "Oscar is a cat.",
        owner=OWNER,
        session_id="s1",
        event_time="2026-05-01T09:00:00+02:00",
        metadata={"k": [1, None]},
    )
    node = memory.get(stored.node_id, owner=OWNER)
    event = memory.get_event(stored.event_id, owner=OWNER)
    assert node.content == event.content == "Oscar is a cat."
    assert node.evidence_refs == (stored.event_id,)
    assert START < node.created_at == node.valid_from == event.timestamp
    assert node.metadata == event.metadata == {"k": [1, None]}
    assert node.session_id == event.session_id == "s1"
    assert event.content_hash == hashlib.sha256(b"Oscar is a cat.").hexdigest()
    assert (node.salience, node.lifecycle_state, node.scope) == (0.5, "tentative", "personal")


def test_what_is_acknowledged_is_in_the_next_answer(memory):
    for number in range(5):
        stored = memory.store(f"fact number {number}", owner=OWNER)
        answer = memory.retrieve(f"fact number {number}", owner=OWNER)
        assert answer.metadata.snapshot >= stored.sequence
        assert answer.results.find(stored.node_id).paths == ["VECTOR", "LEXICAL"]


def test_an_id_is_found_in_either_case_and_only_by_its_owner(memory):
    stored = memory.store("Oscar is a cat.", owner=OWNER)
    assert memory.get(stored.node_id.upper(), owner=OWNER).id == stored.node_id
    for owner, tenant in (("eve", "default"), (OWNER, "other")):
        with pytest.raises(NotFound, match=f"no memory '{stored.node_id}'"):
            memory.get(stored.node_id, owner=owner, tenant=tenant)
        with pytest.raises(NotFound, match="no event"):
            memory.get_event(stored.event_id, owner=owner, tenant=tenant)
    with pytest.raises(NotFound):
        memory.get_event(stored.node_id, owner=OWNER)
    with pytest.raises(NotFound):
        memory.get("no uuid", owner=OWNER)


@pytest.mark.parametrize("bad", [None, 5, "\ud800", "a\x00b"])
def test_an_id_that_is_no_text_is_refused(memory, bad):
    memory.store("Oscar is a cat.", owner=OWNER)
    with pytest.raises(InvalidRequest, match="node_id"):
        memory.get(bad, owner=OWNER)


def test_names_and_sessions_link_memories_but_are_none(memory):
    memory.store("Caroline: I adopted Oscar.", owner=OWNER, session_id="s1", speaker="Caroline")
    log = memory.health().shards[0].log
    assert log["node"] > 1
    assert len(memory.retrieve("Who is Caroline?", owner=OWNER).results) == 1


@pytest.mark.filterwarnings("ignore:no initial confidence")
@pytest.mark.parametrize(
    ("node_type", "days"),
    [("note", 90), ("task", 90), ("decision", 180), ("event", 365), ("summary", 365), ("fact", None)],
)
def test_expiry_left_out_depends_on_the_type_and_none_means_never(memory, node_type, days):
    def ttl(**given):
        return memory.get(memory.store("text", owner=OWNER, node_type=node_type, **given).node_id, owner=OWNER).ttl_days

    assert (ttl(), ttl(ttl_days=None), ttl(ttl_days=7)) == (days, None, 7)


@pytest.mark.parametrize(
    ("given", "confidence", "epistemic", "source"),
    [
        ({}, 0.80, "asserted", "user_stated"),
        ({"role": "assistant"}, 0.55, "inferred", "system_inferred"),
        ({"role": "tool"}, 0.70, "asserted", "tool_output"),
        ({"node_type": "event"}, 0.90, "observed", "user_stated"),
        ({"node_type": "summary", "source_type": "external_document"}, 0.50, "inferred", "external_document"),
        ({"epistemic_type": "unverified", "source_type": "tool_output"}, 0.30, "unverified", "tool_output"),
        ({"node_type": "instruction", "source_type": "external_document"}, 0.75, "observed", "external_document"),
        ({"node_type": "instruction", "role": "assistant"}, 0.70, "inferred", "system_inferred"),
        ({"node_type": "instruction", "confidence": 0.1}, 0.10, "observed", "user_stated"),
    ],
)
def test_confidence_follows_from_how_a_memory_is_known(memory, given, confidence, epistemic, source):
    node = memory.get(memory.store("text", owner=OWNER, **given).node_id, owner=OWNER)
    assert (node.confidence, node.confidence_base) == (confidence, confidence)
    assert (node.epistemic_type, node.source_type) == (epistemic, source)


def test_a_combination_without_confidence_counts_a_half_and_warns_unless_configured(opened):
    known = {"epistemic_type": "hypothetical", "source_type": "user_demonstrated"}
    memory = opened()
    with pytest.warns(UserWarning, match="hypothetical:user_demonstrated"):
        stored = memory.store("text", owner=OWNER, **known)
    assert memory.get(stored.node_id, owner=OWNER).confidence == 0.5
    memory.close()
    memory = opened(settings={"confidence_overrides": {"hypothetical:user_demonstrated": 0.2}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stored = memory.store("text 2", owner=OWNER, **known)
    assert memory.get(stored.node_id, owner=OWNER).confidence == 0.2


def test_a_conditional_memory_starts_unknown_and_shows_once_true(memory):
    unknown = memory.store(
        "take an umbrella", owner=OWNER, epistemic_type="conditional", metadata={"condition": "if it rains"}
    )
    assert memory.get(unknown.node_id, owner=OWNER).metadata["condition_state"] == "unknown"
    answer = memory.retrieve("umbrella", owner=OWNER)
    assert [(item.node_id, item.reason) for item in answer.excluded] == [
        (unknown.node_id, "condition_filtered:unknown")
    ]


def test_a_speaker_is_trimmed_kept_and_shown(memory):
    stored = memory.store("I adopted a cat.", owner=OWNER, speaker="  Caroline ")
    answer = memory.retrieve("cat", owner=OWNER)
    assert answer.results.find(stored.node_id).speaker == "Caroline"
    assert answer.results[0].metadata is None
    assert "Caroline" in answer.bundle.context


def test_other_text_is_searched_and_packed_while_the_source_stays(memory):
    stored = memory.store("We met at the blue house.", owner=OWNER, retrieval_content="Meeting: the blue house, Lisbon")
    assert memory.get(stored.node_id, owner=OWNER).content == "Meeting: the blue house, Lisbon"
    assert memory.get_event(stored.event_id, owner=OWNER).content == "We met at the blue house."
    assert "Lisbon" in memory.retrieve("Lisbon", owner=OWNER).bundle.context


def test_bindings_of_packed_memories_come_with_the_bundle(memory):
    memory.store("We met at the blue house.", owner=OWNER, value_bindings=BINDINGS)
    memory.store("We met at the red house.", owner=OWNER, value_bindings={"red": "17"})
    answer = memory.retrieve("blue", owner=OWNER, limit=1)
    assert answer.bundle.value_bindings == BINDINGS
    assert answer.results[0].metadata is None
    assert memory.retrieve("blue", owner=OWNER, token_budget=0).bundle.value_bindings == {}


def test_a_node_keeps_its_id_evidence_and_pin(memory):
    event = memory.store("source", owner=OWNER).event_id
    stored = memory.store_node(
        "Dana likes tea.",
        owner=OWNER,
        node_type="preference",
        node_id=UNKNOWN.upper(),
        evidence_refs=[event],
        pinned=True,
        lifecycle_state="stable",
    )
    node = memory.get(UNKNOWN, owner=OWNER)
    assert (stored.node_id, stored.event_id) == (UNKNOWN, None)
    assert (node.evidence_refs, node.pinned, node.lifecycle_state) == ((event,), True, "stable")
    with pytest.raises(DuplicateSubject):
        memory.store_node("again", owner=OWNER, node_type="fact", node_id=UNKNOWN)
    assert memory.get(UNKNOWN, owner=OWNER).content == "Dana likes tea."


def test_two_owners_may_have_the_same_id(memory):
    for owner in ("one", "two"):
        memory.store_node(f"of {owner}", owner=owner, node_type="fact", node_id=UNKNOWN)
    assert memory.get(UNKNOWN, owner="two").content == "of two"


def test_an_edge_needs_two_memories_of_the_owner(memory):
    mine = memory.store("mine", owner=OWNER).node_id
    also = memory.store("also mine", owner=OWNER).node_id
    theirs = memory.store("theirs", owner="eve").node_id
    assert memory.store_edge(mine.upper(), also, "supports", owner=OWNER)
    for source, target in ((mine, theirs), (theirs, mine), (UNKNOWN, mine)):
        with pytest.raises(NotFound):
            memory.store_edge(source, target, "supports", owner=OWNER)
    assert memory.health().healthy


def test_a_closed_memory_refuses_everything_and_closes_twice(memory, folder):
    stored = memory.store("text", owner=OWNER)
    memory.close()
    memory.close()
    for call in (
        lambda: memory.store("text", owner=OWNER),
        lambda: memory.store_many([], owner=OWNER),
        lambda: memory.store_node("text", owner=OWNER, node_type="fact"),
        lambda: memory.store_edge(stored.node_id, stored.node_id, "supports", owner=OWNER),
        lambda: memory.retrieve("text", owner=OWNER),
        lambda: memory.get(stored.node_id, owner=OWNER),
        lambda: memory.get_event(stored.event_id, owner=OWNER),
        memory.health,
        memory.flush,
    ):
        with pytest.raises(StoreClosed, match=str(folder)):
            call()


def test_a_with_block_closes_and_frees_the_lock_whatever_happens(folder, opened):
    with pytest.raises(KeyError), Memory.open(folder, encoder=WordEncoder()) as memory:
        stored = memory.store("text", owner=OWNER)
        with pytest.raises(StoreLocked):
            Memory.open(folder, encoder=WordEncoder())
        raise KeyError
    assert opened().get(stored.node_id, owner=OWNER).content == "text"


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"scorin": {}}, "scorin"),
        ({"packing": {"vector_kk": 1}}, "packing.vector_kk"),
        ({"packing": {"graph_max_hops": 4}}, "packing.graph_max_hops"),
        ({"scoring": {"w_semantic": float("nan")}}, "scoring.w_semantic"),
        (5, "settings"),
    ],
)
def test_wrong_settings_are_named_before_anything_is_made(folder, settings, argument):
    with pytest.raises(InvalidSettings) as caught:
        Memory.open(folder, settings=settings, encoder=WordEncoder())
    assert caught.value.argument == argument
    assert not folder.exists()


def test_a_folder_of_something_else_is_left_alone(folder):
    folder.mkdir()
    (folder / "holiday.jpg").write_bytes(b"picture")
    with pytest.raises(StoreCorrupt, match=r"holiday\.jpg"):
        Memory.open(folder, encoder=WordEncoder())
    assert [path.name for path in folder.iterdir()] == ["holiday.jpg"]
