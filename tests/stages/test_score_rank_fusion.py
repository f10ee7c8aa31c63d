import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.enums import EpistemicType, Intent, NodeType
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.settings import ScoringSettings
from prme_ray.model.tables import SCORED, records
from stages.score import score
from tests.stages.scoring_pool import PLAIN_FUSION, PRODUCT, REF, ask, candidate, name, pool, row, scores

FIRST, SECOND = 1.0, 61 / 62


def approx(expected):
    return pytest.approx(expected, abs=1e-10)


def test_reciprocal_ranks_written_out():
    found = ask(
        [
            candidate(1, 0.9, 0.2),
            candidate(2, 0.8, 0.9),
            candidate(3, 0.7),
            candidate(4, None, 0.9),
            candidate(5, graph=1.0),
        ]
    )
    half = 61 / 2
    assert scores(found) == approx(
        {
            2: (1 / 62 + 1 / 61) * half,
            1: (1 / 61 + 1 / 63) * half,
            4: (1 / 61) * half,
            3: (1 / 63) * half,
            5: 0.0,
        }
    )
    assert list(scores(found)) == [2, 1, 4, 3, 5]
    off_channel = row(found, 5)
    assert off_channel["semantic_rank"] is off_channel["lexical_rank"] is None
    assert (row(found, 1)["semantic_rank"], row(found, 1)["lexical_rank"]) == (1, 3)


def test_a_zero_from_the_lexical_channel_still_has_a_rank():
    assert scores(ask([candidate(1, None, 1.0), candidate(2, None, 0.0), candidate(3)])) == approx(
        {1: 0.5, 2: 61 / 62 / 2, 3: 0.0}
    )


def test_equal_scores_go_by_path_count_then_by_id():
    found = ask([candidate(3, 0.5, 0.5), candidate(2, 0.5, 0.5), candidate(1, 0.5, 0.5, path_count=1)])
    assert list(scores(found)) == [2, 3, 1]


def test_the_tie_break_puts_the_newest_first_below_the_rounding_grid():
    pair = [candidate(1, 0.9, 0.5, age=5), candidate(2, 0.5, 0.9, age=1)]
    assert list(scores(ask(pair))) == [1, 2]
    broken = ask(pair, scoring=PRODUCT)
    assert scores(broken) == {2: 0.9919354839, 1: 0.991935483895}
    assert (row(broken, 2)["tie_break"], row(broken, 1)["tie_break"]) == (0.0, 0.5)


def test_weights_are_relative_to_the_best_on_a_channel():
    note, fact = candidate(1, 0.9, 0.9, epistemic_type="inferred"), candidate(2, 0.5, 0.5, epistemic_type="observed")
    fact["node"]["node_type"] = "fact"
    assert scores(ask([note, fact])) == approx({2: SECOND, 1: 0.7 / 1.15})
    graph_only = candidate(3, graph=1.0, epistemic_type="observed")
    assert scores(ask([note, graph_only])) == approx({1: 1.0, 3: 0.0})


def test_recency_counts_only_on_current_state_questions():
    pair = [candidate(1, 0.9, 0.9, age=30), candidate(2, 0.5, 0.5, age=1)]
    assert list(scores(ask(pair, scoring=PRODUCT))) == [1, 2]
    current = ask(pair, "What is my current job?", scoring=PRODUCT)
    assert current.current_state and current.applied["recency_lambda"] == 0.05
    assert scores(current) == approx({2: SECOND, 1: 0.8469140576})
    assert row(current, 1)["trace_recency"] == pytest.approx(0.2345702881)


def test_the_newest_update_is_raised_and_the_step_is_recorded():
    pair = [candidate(1, 0.9, 0.9, age=30), candidate(2, 0.5, 0.5, age=1, content="I moved to Oslo")]
    found = ask(pair, "Where do I live now?", scoring=PRODUCT)
    assert scores(found)[2] == approx(1.3 * SECOND)
    (step,) = row(found, 2)["adjustments"]
    assert (step["source_node_id"], step["coefficient"], step["neural_score"]) == (name(2), pytest.approx(1.3), None)
    assert row(found, 2)["base_score"] * step["coefficient"] == row(found, 2)["composite_score"]
    assert row(found, 1)["adjustments"] == []


def test_a_weak_match_gets_no_update_boost():
    found = ask([candidate(1, 0.2, 0.1, content="now uses vim")], "what do I use now", scoring=PRODUCT)
    assert (scores(found), row(found, 1)["adjustments"]) == ({1: 1.0}, [])


def test_temporal_questions_prefer_memories_in_the_window():
    window = {"time_from": REF - timedelta(days=10), "time_to": REF - timedelta(days=5)}
    found = ask(
        [
            candidate(1, 0.8, 0.8, age=7),
            candidate(2, 0.9, 0.9, age=40, content="on 8 May 2023"),
            candidate(3, 0.7, 0.7),
        ],
        intent=Intent.TEMPORAL,
        **window,
    )
    assert scores(found) == approx({2: 0.9978508794, 1: SECOND, 3: 0.9594984366})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"multipliers": {"semantic": 2.0}}, "set scoring.fusion='weighted'"),
        ({"epistemic_weights": {EpistemicType.ASSERTED: -0.1}}, "epistemic_weights=-0.1"),
        (
            {"scoring": ScoringSettings().model_copy(update={"node_type_boost": {NodeType.NOTE: -1.0}})},
            "node_type_boost=-1.0",
        ),
        ({"scoring": PLAIN_FUSION.model_copy(update={"rrf_k": None})}, "1 to 10000"),
    ],
)
def test_what_rank_fusion_refuses(change, message):
    with pytest.raises(InvalidRequest, match=message):
        ask([candidate(1, 0.5)], **change)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(bad):
    with pytest.raises(InvalidRequest, match="finite channel scores"):
        ask([candidate(1, 0.5), candidate(2, 0.5, bad)])


def test_neutral_multipliers_are_allowed():
    assert scores(ask([candidate(1, 0.5, 0.5)], multipliers={"semantic": 1.0})) == {1: 1.0}


@pytest.mark.parametrize("query", ["favourite food", "where do I live now"])
def test_an_empty_pool(query):
    found = ask([], query, scoring=PRODUCT)
    assert (found.table.num_rows, found.table.schema) == (0, SCORED)


def test_a_pool_on_no_channel_scores_zero():
    found = ask([candidate(2, graph=1.0), candidate(1)], "where do I live now", scoring=PRODUCT)
    assert scores(found) == {2: 0.0, 1: 0.0}


@given(seed=st.integers(0, 2**32))
def test_the_order_of_the_input_does_not_matter(seed):
    draw = random.Random(seed)
    some = [
        candidate(
            number,
            draw.choice((None, 0.0, 0.5, 0.9)),
            draw.choice((None, 0.0, 0.5, 1.0)),
            age=draw.choice((0, 1, 30)),
            content=draw.choice(("plain", "now uses vim", "on 8 May 2023")),
        )
        for number in range(draw.randrange(8))
    ]
    shuffled = draw.sample(some, len(some))
    first, second = (ask(items, "where do I live now", scoring=PRODUCT).table for items in (some, shuffled))
    assert records(first) == records(second)


def test_no_analysis_means_no_question_specific_term():
    table = pool(candidate(1, 0.9, 0.9, content="now uses vim"))
    found = score(table, analysis=None, scoring=PRODUCT, reference_time=REF)
    assert not found.current_state
    assert (row(found, 1)["temporal_factor"], row(found, 1)["recency_factor"]) == (1.0, None)
