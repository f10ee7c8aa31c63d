import numpy as np
import pytest

from prme_ray.model.enums import Intent
from stages.current_update import boost_newest_updates, is_current_state
from stages.query_wording import with_wording

DEFAULTS = {"multiplier": 1.3, "relevance_floor": 0.35, "cap_at_relevance": True}


def boost(base, *, times, updates, relevance, **changed):
    found = boost_newest_updates(
        np.array(base),
        times=np.array(times),
        update_wording=np.array(updates),
        relevance=np.array(relevance),
        **{**DEFAULTS, **changed},
    )
    return found.scores.tolist(), found.rows.tolist(), found.coefficients.tolist()


@pytest.mark.parametrize(
    ("query", "without_update", "with_update"),
    [
        ("where do I live now", True, True),
        ("who is my dentist", False, True),
        ("who is my current dentist", False, True),
        ("favourite food", False, False),
    ],
)
def test_the_implicit_shape_needs_update_wording_in_the_pool(query, without_update, with_update):
    analysis = with_wording(query, intent=Intent.FACTUAL)
    assert is_current_state(analysis, pool_has_update=False) is without_update
    assert is_current_state(analysis, pool_has_update=True) is with_update
    assert is_current_state(None, pool_has_update=True) is False


def test_only_the_newest_memories_worded_as_updates_are_raised():
    scores, rows, coefficients = boost(
        [0.5, 0.4, 0.4, 0.0],
        times=[9, 9, 8, 9],
        updates=[False, True, True, True],
        relevance=[1.0, 1.0, 1.0, 1.0],
    )
    assert scores == pytest.approx([0.5, 0.52, 0.4, 0.0])
    assert (rows, coefficients) == ([1], pytest.approx([1.3]))


def test_all_of_several_newest_are_raised():
    assert boost([1.0, 0.5], times=[3, 3], updates=[True, True], relevance=[1.0, 1.0])[1] == [0, 1]


@pytest.mark.parametrize("capped", [True, False])
def test_below_the_floor_the_formulas_differ(capped):
    found = boost([0.2], times=[1], updates=[True], relevance=[0.3], multiplier=2.0, cap_at_relevance=capped)
    assert found == (([pytest.approx(0.3)], [0], [pytest.approx(1.5)]) if capped else ([0.2], [], []))


def test_the_cap_never_lowers_a_score():
    assert boost([0.4], times=[1], updates=[True], relevance=[0.3]) == ([0.4], [], [])


def test_multiplier_one_and_an_empty_pool_do_nothing():
    assert boost([0.4], times=[1], updates=[True], relevance=[0.9], multiplier=1.0) == ([0.4], [], [])
    empty = np.empty(0)
    found = boost_newest_updates(
        empty, times=empty.astype(np.int64), update_wording=empty.astype(bool), relevance=empty, **DEFAULTS
    )
    assert len(found.scores) == len(found.rows) == 0
