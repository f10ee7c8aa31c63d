"""Alternate wordings find what the question's own words do not."""

import pytest

from prme_ray.model.errors import InvalidSettings
from tests.memory.tools import OWNER, WordEncoder, same_request

WORDS_ONLY = {"disabled_channels": ["VECTOR"]}
TEXTS = ["Oscar is a black cat.", "A cat sleeps all day.", "Rain in Lisbon.", "The feline show was long."]
OTHERS = {"the feline": ["black cat", "THE  FELINE", "", "rain"]}


def reformulate(query, count):
    return OTHERS.get(query, [])


class Fragile(WordEncoder):
    """Cannot embed one word."""

    def embed(self, texts):
        if "rain" in texts:
            raise ConnectionError("rain")
        return super().embed(texts)


def on(**changes):
    return {"reformulation": {"enabled": True, **changes}}


@pytest.fixture
def ask(opened, folder):
    """Answer "the feline" over the four memories with these settings."""

    def answer(settings, *, query="the feline", reformulate=reformulate, encoder=WordEncoder, **options):
        if not folder.exists():
            with opened() as memory:
                memory.store_many(TEXTS, owner=OWNER)
                memory.store("A cat in the project.", owner=OWNER, scope="project")
        with opened(settings=settings, reformulate=reformulate, encoder=encoder()) as memory:
            return memory.retrieve(query, owner=OWNER, **options)

    return answer


def contents(answer):
    return {candidate.content for candidate in answer.results}


def test_what_only_an_alternate_finds_is_added_and_counted(ask):
    plain = ask(WORDS_ONLY, scope="personal")
    assert contents(plain) == {TEXTS[3]}
    assert plain.metadata.alternate_queries == []
    answer = ask(WORDS_ONLY | on(), scope="personal")
    assert contents(answer) == set(TEXTS), "the project's cat is out of scope"
    assert answer.metadata.alternate_queries == ["black cat", "rain"]
    assert answer.metadata.candidates_generated == {
        "GRAPH": 0,
        "VECTOR": 0,
        "LEXICAL": 1,
        "PINNED": 0,
        "REFORMULATION": 3,
    }


def test_the_count_is_a_limit(ask):
    assert contents(ask(WORDS_ONLY | on(count=1), scope="personal")) == set(TEXTS[:2]) | {TEXTS[3]}


def test_the_largest_signals_are_taken_when_asked_for(ask):
    plain, largest = ask({}), ask(on(merge="max_signals"))
    before = {item.content: item for item in plain.results}
    cat = next(item for item in largest.results if item.content == TEXTS[0])
    assert cat.semantic_score > before[cat.content].semantic_score
    assert (cat.lexical_score, before[cat.content].lexical_score) == (1.0, 0.0)
    assert set(cat.paths) == {"VECTOR", "LEXICAL"}
    assert ask(on()).results.ids == plain.results.ids, "new_only adds nothing where the question found all"


def test_a_search_that_fails_adds_nothing_or_fails_the_request(ask):
    answer = ask(on(), encoder=Fragile)
    assert (answer.metadata.backend_failures, contents(answer)) == ({}, {*TEXTS, "A cat in the project."})
    with pytest.raises(ConnectionError, match="rain"):
        ask(on(merge="max_signals"), encoder=Fragile)


def test_a_channel_that_is_off_or_cannot_answer_is_not_asked_for_alternates(ask):
    encoder = Fragile(version="2")  # the stored vectors are of another version: no vector search at all
    answer = ask(on(merge="max_signals"), encoder=lambda: encoder)
    assert answer.metadata.backend_failures == {"VECTOR": "embedding_mismatch"}
    assert encoder.texts == []
    assert ask(WORDS_ONLY | on(merge="max_signals"), encoder=Fragile).results


def test_a_rewriter_that_fails_leaves_the_question(ask):
    def broken(query, count):
        raise TimeoutError

    one, other = (ask(on(), reformulate=how) for how in (broken, lambda *_: []))
    assert same_request(one) == same_request(other)


@pytest.mark.parametrize("merge", ["new_only", "max_signals"])
def test_copied_memories_give_the_same_answer_as_the_owner_s_table(ask, merge, monkeypatch):
    settings = on(merge=merge) | {"packing": {"vector_k": 1}}
    whole = ask(settings)
    assert whole.metadata.candidates_generated["REFORMULATION"] > 0
    monkeypatch.setattr("storage.view._COPY_FROM", 0)
    assert same_request(ask(settings)) == same_request(whole)


def test_names_of_an_alternate_are_followed_in_the_graph(opened):
    memory = opened(
        settings={"disabled_channels": ["VECTOR", "LEXICAL"]} | on(), reformulate=lambda *_: ["pets of Ana"]
    )
    memory.store("Yesterday Ana bought bread.", owner=OWNER)
    assert [item.paths for item in memory.retrieve("who bought it", owner=OWNER).results] == [["GRAPH"]]


def test_the_record_of_the_request_holds_the_alternates(opened):
    memory = opened(settings=on(), reformulate=reformulate)
    memory.store(TEXTS[0], owner=OWNER)
    answer = memory.retrieve("the feline", owner=OWNER)
    memory.close()
    found = opened().get_retrieval(answer.metadata.request_id, owner=OWNER)
    assert found.record["alternate_queries"] == ["black cat", "rain"]


@pytest.mark.parametrize(
    ("settings", "lent", "argument"), [(on(), None, "reformulation.enabled"), ({}, "rewrite", "reformulate")]
)
def test_an_option_without_its_callable_is_refused(opened, settings, lent, argument):
    with pytest.raises(InvalidSettings) as caught:
        opened(settings=settings, reformulate=lent)
    assert caught.value.argument == argument
