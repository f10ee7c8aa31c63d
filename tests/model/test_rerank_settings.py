"""What the options of cross-encoder and alternate queries may say."""

import pytest

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings import Settings


@pytest.mark.parametrize(
    ("data", "argument"),
    [
        ({"rerank": {"policy": "best"}}, "rerank.policy"),
        ({"rerank": {"top_k": -1}}, "rerank.top_k"),
        ({"rerank": {"top_k": 2.0}}, "rerank.top_k"),
        ({"rerank": {"top_k": True}}, "rerank.top_k"),
        ({"rerank": {"prior_weight": 1.1}}, "rerank.prior_weight"),
        ({"rerank": {"prior_weight": True}}, "rerank.prior_weight"),
        ({"rerank": {"enabled": True, "prior_weight": 0.2}}, "rerank.prior_weight"),
        ({"reformulation": {"count": 0}}, "reformulation.count"),
        ({"reformulation": {"count": 6}}, "reformulation.count"),
        ({"reformulation": {"merge": "all"}}, "reformulation.merge"),
    ],
)
def test_a_wrong_option_is_refused_and_named(data, argument):
    with pytest.raises(InvalidSettings) as caught:
        Settings.parse(data)
    assert caught.value.argument == argument


@pytest.mark.parametrize("policy", ["score_envelope", "anchored_score_envelope"])
def test_any_weight_goes_with_an_envelope(policy):
    assert Settings(rerank={"enabled": True, "policy": policy, "prior_weight": 0}).rerank.prior_weight == 0.0


def test_both_zeros_are_one_setting():
    one, other = ({"policy": "score_envelope", "prior_weight": zero} for zero in (0.0, -0.0))
    assert Settings(rerank=one).fingerprint() == Settings(rerank=other).fingerprint()


@pytest.mark.parametrize("changed", [{"rerank": {"top_k": 5}}, {"reformulation": {"count": 3}}], ids=str)
def test_the_fingerprint_follows(changed):
    assert Settings(**changed).fingerprint() != Settings().fingerprint()
