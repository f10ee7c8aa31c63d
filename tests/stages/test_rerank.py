"""Cross-encoder blending; the figures are digest a section 12, case 44."""

import pytest

from prme_ray.model.errors import EncoderRejected
from prme_ray.model.tables import texts
from stages.rerank import rerank
from tests.conformance.tables import adjustments
from tests.stages.pool import by_number, numbers, scored, uid

OWN = [1.0, 0.9838709677, 0.9682539683, 0.953125]
FOUR = scored(*({"n": n + 1, "score": score} for n, score in enumerate(OWN)))
NEURAL = {uid(1): 0.1, uid(2): 0.9, uid(3): 0.5}


def run(table=FOUR, neural=None, **settings):
    settings = {"policy": "legacy", "prior_weight": 0.3, "top_k": 3, **settings}
    return rerank(table, NEURAL if neural is None else neural, **settings)


def test_legacy_carries_the_blend_and_leaves_the_tail_last():
    table = run()
    assert numbers(table) == [2, 3, 1, 4]
    expected = [0.9251612903, 0.6404761905, 0.37, 0.953125]
    assert texts(table, "composite_score") == pytest.approx(expected, abs=1e-10)
    assert texts(table, "reranker_score") == [0.9, 0.5, 0.1, None]
    rows = by_number(table)
    assert adjustments(rows[4]) == []
    assert adjustments(rows[2]) == [
        {"kind": "neural_blend", "coefficient": 0.3, "source_node_id": uid(2), "neural_score": 0.9}
    ]


def test_an_envelope_deals_the_same_scores_out_anew():
    table = run(policy="score_envelope")
    assert numbers(table) == [2, 3, 1, 4]
    assert texts(table, "composite_score") == OWN
    assert [step["kind"] for step in adjustments(by_number(table)[3])] == ["neural_blend", "neural_rank_assignment"]
    assert adjustments(by_number(table)[3])[1]["coefficient"] == OWN[1]


def test_equal_scores_of_an_envelope_stand_by_id():
    pool = scored({"n": 1, "score": 0.5}, {"n": 2, "score": 0.5})
    table = run(pool, {uid(1): 0.1, uid(2): 0.9}, policy="score_envelope", top_k=2)
    assert numbers(table) == [1, 2]


def pool(**first):
    return scored(
        {"n": 1, "score": 1.0, "paths": ["VECTOR", "LEXICAL"], **first},
        {"n": 2, "score": 0.9},
        {"n": 3, "score": 0.8, "paths": ["VECTOR", "LEXICAL"]},
    )


BEST_LAST = {uid(1): 0.1, uid(2): 0.9, uid(3): 0.5}


@pytest.mark.parametrize(
    ("first", "order"),
    [
        ({}, [1, 2, 3]),
        ({"node_type": "instruction"}, [3, 2, 1]),
        ({"pinned": True}, [3, 2, 1]),
        ({"salience": 1.0}, [3, 2, 1]),
        ({"node_type": "task"}, [3, 2, 1]),
        ({"node_type": "intent", "lifecycle_state": "stable"}, [3, 2, 1]),
        ({"node_type": "task", "lifecycle_state": "contested"}, [1, 2, 3]),
        ({"paths": ["VECTOR"]}, [3, 2, 1]),
    ],
)
def test_an_anchor_is_the_best_ordinary_memory_on_several_paths(first, order):
    table = run(pool(**first), BEST_LAST, policy="anchored_score_envelope", prior_weight=0.0)
    assert numbers(table) == order
    assert texts(table, "composite_score") == [1.0, 0.9, 0.8]


def test_an_anchor_behind_the_prefix_moves_nothing():
    table = run(
        pool(paths=["VECTOR"]), {uid(1): 0.1, uid(2): 0.9}, policy="anchored_score_envelope", prior_weight=0.0, top_k=2
    )
    assert numbers(table) == [2, 1, 3]


@pytest.mark.parametrize("table", [FOUR, scored()])
def test_depth_zero_and_an_empty_list_change_nothing(table):
    assert run(table, {}, top_k=0) is table
    assert run(scored(), {}, top_k=5).num_rows == 0


def test_negative_zero_is_recorded_as_zero():
    assert str(adjustments(by_number(run(prior_weight=-0.0))[1])[0]["coefficient"]) == "0.0"


@pytest.mark.parametrize(
    "neural",
    [
        {},
        {uid(1): 0.1, uid(2): 0.9},
        {**NEURAL, uid(4): 0.2},
        {uid(1): 0.1, uid(2): 0.9, uid(9): 0.5},
        {**NEURAL, uid(3): float("nan")},
        {**NEURAL, uid(3): 1.0000001},
        {**NEURAL, uid(3): -0.1},
        {**NEURAL, uid(3): True},
        {**NEURAL, uid(3): "0.5"},
    ],
)
def test_a_cross_encoder_that_breaks_its_contract_is_refused(neural):
    with pytest.raises(EncoderRejected, match="cross-encoder"):
        run(neural=neural)
