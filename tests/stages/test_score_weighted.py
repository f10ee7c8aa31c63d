from datetime import timedelta

import pytest

from prme_ray.model.enums import Intent
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.settings import ScoringSettings
from prme_ray.model.tables import SCORED
from tests.stages.scoring_pool import REF, WEIGHTED, ask, candidate, days_ago, row, scores


def weigh(*candidates, query="favourite food", scoring=WEIGHTED, **arguments):
    return ask(list(candidates), query, scoring=scoring, **arguments)


def approx(expected):
    return pytest.approx(expected, abs=1e-10)


def changed(**settings):
    return ScoringSettings.model_validate({**WEIGHTED.model_dump(), **settings})


def test_the_sum_written_out():
    found = weigh(candidate(1, 0.8, 0.5, graph=0.7, age=10))
    recency, salience, confidence = 0.8187307531, 0.4093653765, 0.4524187090
    total = 0.25 * 0.8 + 0.20 * 0.5 + 0.20 * 0.7 + 0.10 * recency + 0.10 * salience + 0.15 * confidence
    assert scores(found) == {1: approx(0.9 * total)}
    traced = row(found, 1)
    assert [traced[f"trace_{part}"] for part in ("recency", "salience", "confidence")] == approx(
        [recency, salience, confidence]
    )
    assert (traced["formula_version"], traced["semantic_rank"], traced["epistemic_factor"]) == (1, None, None)


def test_the_node_type_multiplies_the_whole():
    assert scores(weigh(candidate(1, 0.8, 0.5, graph=0.7, age=10, node_type="fact")))[1] == approx(0.652745954)


def test_below_the_relevance_floor_the_score_is_capped_at_the_relevance():
    strong = {
        "node_type": "fact",
        "epistemic_type": "observed",
        "pinned": True,
        "salience_base": 1.0,
        "confidence_base": 1.0,
    }
    assert scores(weigh(candidate(1, 0.30, 0.05, graph=1.0, **strong)))[1] == approx(0.73025)
    assert scores(weigh(candidate(1, 0.25, 0.05, graph=1.0, **strong)))[1] == approx(0.3)
    assert scores(weigh(candidate(1, graph=1.0, **strong)))[1] == 0.0
    assert scores(weigh(candidate(1, graph=1.0, **strong), scoring=changed(relevance_floor=0.0)))[1] > 0.5


def test_temporal_questions_add_affinity_before_the_node_type():
    base = candidate(1, 0.8, 0.5, graph=0.7, age=10, content="met on 8 May 2023")
    assert scores(weigh(base, intent=Intent.TEMPORAL))[1] == approx(0.6651051774)
    plain = candidate(1, 0.8, 0.5, graph=0.7, age=10)
    window = {"time_from": REF - timedelta(days=5), "time_to": REF}
    assert scores(weigh(plain, intent=Intent.TEMPORAL, **window))[1] == approx(0.6626131063)


def test_recency_can_be_measured_from_when_a_memory_was_stated():
    memory = candidate(1, 0.5, 0.5, event_time=days_ago(100))
    assert row(weigh(memory), 1)["trace_recency"] == 1.0
    stated = weigh(memory, scoring=changed(recency_time="event_time"))
    assert row(stated, 1)["trace_recency"] == approx(0.1353352832)
    assert scores(stated)[1] == approx(0.3271801755)


def test_a_current_state_question_measures_from_the_newest_and_raises_it():
    found = weigh(
        candidate(1, 0.9, 0.9, age=30),
        candidate(2, 0.5, 0.5, age=1, content="I moved to Oslo"),
        query="Where do I live now?",
    )
    assert row(found, 2)["trace_recency"] == 1.0
    assert scores(found)[2] == approx(row(found, 2)["base_score"] * 1.3)
    assert found.applied["w_recency"] == pytest.approx(0.25)
    assert found.applied["recency_lambda"] == 0.05


def test_an_update_below_the_floor_is_raised_to_its_relevance_at_most():
    found = weigh(candidate(1, 0.2, 0.1, content="now uses vim"), query="what do I use now")
    (step,) = row(found, 1)["adjustments"]
    assert scores(found)[1] == approx(min(0.3, row(found, 1)["base_score"] * 1.3))
    assert 1.0 < step["coefficient"] <= 1.3


def test_negative_cosine_lowers_the_score_and_infinity_is_refused():
    assert scores(weigh(candidate(1, -0.5, 0.2)))[1] == approx(-0.3)
    with pytest.raises(InvalidRequest, match="finite channel scores"):
        weigh(candidate(1, float("inf")))


@pytest.mark.parametrize("query", ["favourite food", "where do I live now"])
def test_an_empty_pool(query):
    found = weigh(query=query)
    assert (found.table.num_rows, found.table.schema) == (0, SCORED)
