"""Text of every kind comes back unchanged and is found; what no index can hold is refused."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prme_ray import Memory
from prme_ray.model.errors import InvalidText
from tests.memory.tools import FEW_SHARDS, OWNER, WordEncoder

TEXTS = {
    "emoji": "Party 🎉 with 👩‍👩‍👧‍👦 and 🏳️‍🌈",
    "cjk": "彼女は東京に住んでいる。",
    "rtl": "أحمد يحب القهوة \u202bمع الحليب\u202c",
    "decomposed": "Za\u0308hne und A\u030angstro\u0308m",
    "separators": "one\u2028two\u2029three\x85four\r\nfive\tsix\x1b[0m",
    "noncharacters": "\ufeff\ufffe\uffff\U0010ffff word",
    "blank": " \n\t\u3000",
    "empty": "",
    "markup": "<|endoftext|> [m1] ## Facts\n- forged",
    "backslashes": "\\u0000 \\ud800 %00",
    "one long word": "é" * 100_000,
    "many words": "word " * 20_000,
    "many names": "Anna Berta Carla. " * 5_000,
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_comes_back_unchanged_before_and_after_reopening(memory, opened, name):
    text = TEXTS[name]
    stored = memory.store(text, owner=OWNER)
    memory.retrieve(text[:1000], owner=OWNER)
    assert memory.health().healthy
    memory.close()
    memory = opened()
    assert memory.get(stored.node_id, owner=OWNER).content == text
    assert memory.get_event(stored.event_id, owner=OWNER).content == text
    assert memory.health().healthy
    if text.strip():
        found = memory.retrieve(text[:1000], owner=OWNER).results.find(stored.node_id)
        assert found is not None
        assert found.content == text


@pytest.mark.parametrize(("bad", "what"), [("a\x00b", "NUL"), ("a\ud800", "surrogate"), ("\udfff", "surrogate")])
def test_text_no_index_can_hold_is_refused_and_its_neighbours_are_stored(memory, bad, what):
    with pytest.raises(InvalidText, match=f"content of item 1 has a .*{what}") as caught:
        memory.store_many(["a cat", bad, "a dog"], owner=OWNER)
    assert [refusal.item for refusal in caught.value.rejected] == [1]
    assert [c.content for c in memory.retrieve("cat", owner=OWNER, limit=1).results] == ["a cat"]
    assert len(memory.retrieve("cat dog", owner=OWNER).results) == 2


def test_blank_text_is_kept_but_no_channel_finds_it(memory):
    stored = memory.store(" \n", owner=OWNER)
    assert memory.get(stored.node_id, owner=OWNER).content == " \n"
    assert memory.retrieve("anything", owner=OWNER).metadata.outcome == "no_candidate"


def test_a_memory_larger_than_the_budget_is_left_out_of_the_context(memory):
    long = memory.store(TEXTS["many words"], owner=OWNER)
    short = memory.store("a word", owner=OWNER)
    answer = memory.retrieve("word", owner=OWNER)
    assert {candidate.node_id for candidate in answer.results} == {long.node_id, short.node_id}
    assert answer.bundle.excluded == {long.node_id: "budget"}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60), max_size=5
    )
)
def test_any_accepted_text_comes_back_unchanged(texts, shared_memory):
    stored = shared_memory.store_many(texts, owner=OWNER)
    assert [shared_memory.get(item.node_id, owner=OWNER).content for item in stored] == texts
    assert [shared_memory.get_event(item.event_id, owner=OWNER).content for item in stored] == texts


@pytest.fixture(scope="module")
def shared_memory(tmp_path_factory):
    with Memory.open(tmp_path_factory.mktemp("text") / "store", settings=FEW_SHARDS, encoder=WordEncoder()) as memory:
        yield memory
