"""A cross-encoder of the caller's orders the best candidates, and every answer says so."""

import pytest

from prme_ray.model.errors import EncoderRejected, InvalidSettings
from tests.memory.tools import OWNER, same_request

TEXTS = ["Tea is hot tea.", "Ana drinks tea.", "Ana likes rain in Lisbon.", "A cat sleeps.", "Coffee at noon."]
QUESTION = "what tea does Ana drink"
ON = {"rerank": {"enabled": True}}
ENVELOPE = {"rerank": {"enabled": True, "policy": "score_envelope", "prior_weight": 0.0, "top_k": 3}}


class WordOverlap:
    """A real cross-encoder, small and deterministic: the share of the pair's words that both have."""

    name, version = "overlap", "2"

    def __init__(self):
        self.asked = []

    def score(self, query, texts):
        self.asked.append((query, list(texts)))
        return [self.of(query, text) for text in texts]

    @staticmethod
    def of(query, text):
        one, other = ({word.strip(".?") for word in words.lower().split()} for words in (query, text))
        return len(one & other) / len(one | other)


class Broken(WordOverlap):
    def score(self, query, texts):
        raise ConnectionError("the model is gone")


class OutOfRange(WordOverlap):
    def score(self, query, texts):
        return [1.5] * len(texts)


@pytest.fixture
def ask(opened, folder):
    """Answer the question with these settings and this cross-encoder, over the same five memories."""

    def answer(settings=None, cross_encoder=None, query=QUESTION):
        if not folder.exists():
            with opened() as memory:
                memory.store_many(TEXTS, owner=OWNER)
        with opened(settings=settings, cross_encoder=cross_encoder) as memory:
            return memory.retrieve(query, owner=OWNER)

    return answer


def test_one_that_is_lent_and_not_switched_on_is_never_asked(ask):
    lent = WordOverlap()
    assert same_request(ask(cross_encoder=lent)) == same_request(ask())
    assert lent.asked == []
    assert ask().metadata.reranker is None


def test_legacy_blends_and_records_both_scores(ask):
    own = {candidate.content: candidate.score for candidate in ask().results}
    model = WordOverlap()
    answer = ask(ON, model)
    assert [query for query, _ in model.asked] == [QUESTION]
    assert sorted(model.asked[0][1]) == sorted(TEXTS)
    assert answer.metadata.reranker == "overlap@2"
    for candidate in answer.results:
        neural = WordOverlap.of(QUESTION, candidate.content)
        assert candidate.reranker_score == neural
        assert candidate.score == pytest.approx(0.7 * neural + 0.3 * own[candidate.content], abs=1e-12)
        (step,) = candidate.lineage.adjustments
        assert (step.kind, step.coefficient, step.neural_score) == ("neural_blend", 0.3, neural)
    keys = [(-candidate.score, candidate.node_id) for candidate in answer.results]
    assert keys == sorted(keys)


def test_an_envelope_changes_the_order_of_the_prefix_and_no_score(ask):
    before, after = ask(), ask(ENVELOPE, WordOverlap())
    assert [candidate.score for candidate in after.results] == [candidate.score for candidate in before.results]
    wanted = sorted(before.results[:3], key=lambda item: (-WordOverlap.of(QUESTION, item.content), item.node_id))
    assert after.results.ids == [item.node_id for item in wanted] + before.results.ids[3:]
    assert [item.reranker_score is not None for item in after.results] == [True] * 3 + [False] * 2


def test_the_record_of_the_request_names_the_model(opened):
    memory = opened(settings=ON, cross_encoder=WordOverlap())
    memory.store(TEXTS[0], owner=OWNER)
    answer = memory.retrieve(QUESTION, owner=OWNER)
    memory.close()
    record = opened().get_retrieval(answer.metadata.request_id, owner=OWNER).record
    assert record["reranker"] == "overlap@2"
    assert record["scores"] == {candidate.node_id: candidate.score for candidate in answer.results}


@pytest.mark.parametrize(("model", "error"), [(Broken, ConnectionError), (OutOfRange, EncoderRejected)])
def test_a_model_that_fails_fails_the_retrieval(ask, model, error):
    with pytest.raises(error):
        ask(ON, model())


def test_a_retrieval_that_failed_is_on_record_without_what_the_error_says(opened):
    memory = opened(settings=ON, cross_encoder=Broken())
    memory.store(TEXTS[0], owner=OWNER)
    with pytest.raises(ConnectionError):
        memory.retrieve(QUESTION, owner=OWNER, request_id="0d1e2f30-0000-4000-8000-000000000001")
    memory.close()
    found = opened().get_retrieval("0d1e2f30-0000-4000-8000-000000000001", owner=OWNER)
    record = found.record
    assert (found.receipt, found.snapshot) == (None, None)
    assert (record["request_id"], record["error"]) == ("0d1e2f30-0000-4000-8000-000000000001", "ConnectionError")
    assert (record["query"], record["objects_included_in_bundle"]) == (QUESTION, 0)


def test_nothing_to_order_asks_nobody(ask):
    model = WordOverlap()
    assert ask({"rerank": {"enabled": True, "top_k": 0}}, model).results.ids == ask().results.ids
    assert model.asked == []


@pytest.mark.parametrize(
    ("settings", "lent", "argument"),
    [
        (ON, None, "rerank.enabled"),
        (ON, "overlap", "cross_encoder"),
        ({}, object(), "cross_encoder"),
        ({}, type("Nameless", (WordOverlap,), {"name": " "})(), "cross_encoder"),
    ],
)
def test_an_option_without_its_model_is_refused_and_leaves_nothing_open(opened, settings, lent, argument):
    with pytest.raises(InvalidSettings) as caught:
        opened(settings=settings, cross_encoder=lent)
    assert caught.value.argument == argument
    opened()
