import pytest

from prme_ray.model.enums import Intent
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.settings import ScoringSettings
from stages.query_wording import with_wording
from stages.weight_shifts import is_neutral, shifted_weights
from tests.stages.scoring_pool import WEIGHTED

ORDER = ("w_semantic", "w_lexical", "w_graph", "w_recency", "w_salience", "w_confidence", "recency_lambda")


def weights(query, *, scoring=WEIGHTED, current=False, pool_has_update=False, multipliers=None):
    found = shifted_weights(
        scoring,
        analysis=with_wording(query, intent=Intent.FACTUAL),
        current=current,
        pool_has_update=pool_has_update,
        multipliers=multipliers,
    )
    assert tuple(found) == ORDER
    assert sum(found[name] for name in ORDER[:-1]) == pytest.approx(1.0)
    return [round(found[name], 6) for name in ORDER]


def weighted(**changed):
    return ScoringSettings.model_validate({**WEIGHTED.model_dump(), **changed})


def test_an_ordinary_question_keeps_the_configured_weights():
    assert weights("favourite food") == [0.25, 0.2, 0.2, 0.1, 0.1, 0.15, 0.02]


def test_a_question_that_names_its_answers_class_drops_the_lexical_weight():
    assert weights("what city does he like") == [0.45, 0.0, 0.2, 0.1, 0.1, 0.15, 0.02]
    assert weights("what city does he like", pool_has_update=True)[:2] == [0.25, 0.2]


def test_a_current_state_question_moves_weight_to_recency():
    assert weights("where do I live now", current=True) == [0.166667, 0.133333, 0.2, 0.25, 0.1, 0.15, 0.05]


def test_a_recent_episode_moves_less_and_keeps_the_decay():
    assert weights("the other day") == [0.194444, 0.155556, 0.2, 0.2, 0.1, 0.15, 0.02]


def test_enough_recency_changes_nothing():
    heavy = weighted(w_recency=0.30, w_confidence=0.0, w_salience=0.05)
    assert weights("now", scoring=heavy, current=True) == [0.25, 0.2, 0.2, 0.3, 0.05, 0.0, 0.02]


def test_no_more_moves_than_the_channels_have():
    thin = weighted(w_semantic=0.05, w_lexical=0.0, w_graph=0.6)
    assert weights("now", scoring=thin, current=True) == [0.0, 0.0, 0.6, 0.15, 0.1, 0.15, 0.05]


def test_learned_multipliers_come_last_and_keep_the_sum():
    assert weights("favourite food", multipliers={"semantic": 2.0}) == [0.4, 0.16, 0.16, 0.08, 0.08, 0.12, 0.02]
    assert is_neutral({"graph": 1.0}) and is_neutral(None) and not is_neutral({"graph": 1.5})


@pytest.mark.parametrize(
    ("multipliers", "message"),
    [
        ({"paths": 1.0}, "names among"),
        ({"graph": 0.2}, "0.25 to 4"),
        ({"graph": 4.1}, "0.25 to 4"),
        ({"graph": float("nan")}, "0.25 to 4"),
    ],
)
def test_bad_multipliers_are_refused(multipliers, message):
    with pytest.raises(InvalidRequest, match=message):
        weights("x", multipliers=multipliers)


def test_multipliers_need_weights_that_are_not_negative():
    with pytest.raises(InvalidRequest, match="w_graph is negative"):
        weights("x", scoring=weighted(w_graph=-0.1, w_semantic=0.55), multipliers={"graph": 2.0})
