"""A question is plain text: whatever it holds, it is answered."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prme_ray import Memory
from tests.memory.tools import FEW_SHARDS, OWNER, Ids, WordEncoder

TEXTS = [
    "I write C++ AND Rust.",
    "The title: a foo story, unclosed.",
    "Tokyo: 彼女は東京に住んでいる。",
    "猫が好きです。",
    "Party 🎉 on Friday.",
    "Nothing here.",
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    path = tmp_path_factory.mktemp("queries") / "store"
    with Memory.open(path, settings=FEW_SHARDS, encoder=WordEncoder(), new_id=Ids()) as memory:
        memory.store_many(TEXTS, owner=OWNER)
        memory.store_node("Dana is vegan.", owner=OWNER, node_type="fact", pinned=True)
        yield memory


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("C++ AND (", TEXTS[0]),
        ('"unclosed', TEXTS[1]),
        ("title:", TEXTS[1]),
        ("-foo", TEXTS[1]),
        ("content:foo^5 OR lifecycle_state:[* TO *]", TEXTS[1]),
        ("'; DROP TABLE entries; -- foo", TEXTS[1]),
        ("foo~2 \\", TEXTS[1]),
    ],
)
def test_operators_are_words(memory, query, found):
    answer = memory.retrieve(query, owner=OWNER)
    assert answer.metadata.backend_failures == {}
    lexical = [c.content for c in answer.results if "LEXICAL" in c.paths]
    assert found in lexical
    assert "Nothing here." not in lexical


@pytest.mark.parametrize("query", ["", " ", "\n\u2028\u3000"])
def test_a_question_without_a_word_still_shows_pins(memory, query):
    answer = memory.retrieve(query, owner=OWNER)
    assert [c.content for c in answer.results] == ["Dana is vegan."]
    assert "Dana is vegan." in answer.bundle.context
    assert answer.metadata.backend_failures == {}


@pytest.mark.parametrize("query", ["*", "🎉🎉", "?!", "the of and", "%", "\\"])
def test_a_question_without_content_words_is_ranked_by_what_is_left(memory, query):
    answer = memory.retrieve(query, owner=OWNER)
    # The vector channel ranks anything that is not blank, so every memory is a candidate.
    assert len(answer.results) == len(TEXTS) + 1
    assert answer.metadata.backend_failures == {}


def test_ten_thousand_words_are_one_question(memory):
    words = ["".join(chr(97 + int(digit)) for digit in str(number)) for number in range(10_000)]
    answer = memory.retrieve(" ".join([*words, "foo"]), owner=OWNER)
    assert answer.metadata.backend_failures == {}
    assert TEXTS[1] in [c.content for c in answer.results if "LEXICAL" in c.paths]


@pytest.mark.parametrize(
    "query",
    ["99999999999 years ago", "in 999999999 days", "on 2024-13-45 or 30 February", "31.12.9999 tomorrow", "last year"],
)
@pytest.mark.parametrize("now", ["0001-01-01T00:00:00Z", "2026-05-04T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_dates_that_do_not_exist_do_no_harm(memory, query, now):
    assert memory.retrieve(query, owner=OWNER, reference_time=now).metadata.outcome == "results"


@pytest.mark.parametrize(("query", "found"), [("東京", TEXTS[2]), ("猫", TEXTS[3]), ("住んで", TEXTS[2])])
def test_a_cjk_word_is_found_by_words_alone(tmp_path, query, found):
    alone = FEW_SHARDS | {"disabled_channels": ["VECTOR", "GRAPH", "PINNED"]}
    with Memory.open(tmp_path / "store", settings=alone, encoder=WordEncoder()) as memory:
        memory.store_many(TEXTS, owner=OWNER)
        answer = memory.retrieve(query, owner=OWNER)
        assert [(c.content, c.paths) for c in answer.results] == [(found, ["LEXICAL"])]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=80))
def test_no_question_raises_or_loses_a_channel(memory, query):
    answer = memory.retrieve(query, owner=OWNER)
    assert answer.metadata.backend_failures == {}
    assert "Dana is vegan." in answer.bundle.context
