"""The cross-encoder's steps: what is sent, what comes back, and what that does to the order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.errors import EncoderRejected
from prme_ray.model.request import make_request
from prme_ray.model.settings import Settings
from prme_ray.model.tables import floats, texts
from prme_ray.steps.neural import apply_scores, find_pairs, score_pairs
from stages.score import Scored
from tests.memory.tools import START
from tests.stages.pool import numbers, scored, uid

POLICIES = ["legacy", "score_envelope", "anchored_score_envelope"]
UNIT = st.floats(0, 1, allow_subnormal=False)


class Fixed:
    """Answers with what it was given, whatever it is asked."""

    name, version = "fixed", "1"

    def __init__(self, scores):
        self.scores = scores

    def score(self, query, texts):
        return self.scores


def settings(**changes):
    return Settings(rerank={"enabled": True, **changes})


def pool(*scores):
    best_first = sorted(scores, reverse=True)
    return Scored(
        scored(*({"n": n, "score": s, "content": f"text {n}"} for n, s in enumerate(best_first, 1))), False, {}
    )


def request():
    return make_request("who", request_id=uid(1), tenant="t", owner="o", now=START, settings=Settings())


@pytest.mark.parametrize(("chosen", "sent"), [(settings(top_k=2), 2), (settings(top_k=0), 0), (Settings(), 0)])
def test_the_texts_of_the_prefix_are_sent_and_none_when_off(chosen, sent):
    assert find_pairs(pool(0.9, 0.8, 0.7), chosen) == ["text 1", "text 2", "text 3"][:sent]


def test_nothing_to_score_asks_nobody_and_changes_nothing():
    assert score_pairs(None, [], request()) == ()
    before = pool(0.9, 0.8)
    assert apply_scores(before, (), settings()) is before


@pytest.mark.parametrize("given", [[], [0.5], [0.5, 0.5, 0.5]])
def test_another_number_of_scores_is_refused(given):
    with pytest.raises(EncoderRejected, match="fixed") as caught:
        score_pairs(Fixed(given), ["one", "two"], request())
    assert f"{len(given)} scores for 2 texts" in str(caught.value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -0.1, 1.1, True, None, "1"])
def test_a_score_that_is_no_number_from_0_to_1_is_refused(bad):
    with pytest.raises(EncoderRejected, match="from 0 to 1"):
        apply_scores(pool(0.9, 0.8), [0.5, bad], settings())


@given(st.lists(st.tuples(UNIT, UNIT), min_size=1, max_size=8), st.integers(1, 10), st.sampled_from(POLICIES), UNIT)
def test_every_policy_keeps_the_memories_the_tail_and_its_kind_of_scores(pairs, top_k, policy, weight):
    before = pool(*(own for own, _ in pairs))
    chosen = settings(top_k=top_k, policy=policy, prior_weight=0.3 if policy == "legacy" else weight)
    neural = [score for _, score in pairs][:top_k]
    after = apply_scores(before, neural, chosen).table
    size = len(neural)
    assert sorted(numbers(after)) == numbers(before.table)
    assert numbers(after)[size:] == numbers(before.table)[size:]
    own, found = floats(before.table, "composite_score"), floats(after, "composite_score")
    assert found[size:].tolist() == own[size:].tolist()
    keys = [(-score, node_id) for score, node_id in zip(found.tolist(), texts(after, "node_id"), strict=True)]
    assert keys[:size] == sorted(keys[:size])
    if policy == "legacy":
        first = numbers(after)[0] - 1
        assert found[0] == pytest.approx(0.7 * neural[first] + 0.3 * own[first])
    else:
        assert found.tolist() == own.tolist()
    sent = dict(zip(numbers(before.table), neural, strict=False))
    assert texts(after, "reranker_score") == [sent.get(number) for number in numbers(after)]
