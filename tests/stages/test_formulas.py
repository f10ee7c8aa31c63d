"""Both formulas by numbers that can be checked by hand."""

import numpy as np
import pytest

from stages.formulas import SIGNALS, fused_score, weighted_score

WEIGHTS = dict(zip((f"w_{name}" for name in SIGNALS), (0.25, 0.20, 0.20, 0.10, 0.10, 0.15), strict=True))


def weighted(*signals, temporal=0.0, node_type=1.0, floor=0.35):
    columns = {name: np.array([value]) for name, value in zip(SIGNALS, signals, strict=True)}
    found = weighted_score(
        WEIGHTS,
        columns,
        epistemic=np.array([0.9]),
        temporal=temporal,
        node_type=np.array([node_type]),
        relevance_floor=floor,
    )
    return found.tolist()


def test_the_weighted_sum():
    assert weighted(0.8, 0.5, 0.0, 1.0, 0.5, 0.7) == [0.4995]
    assert weighted(0.8, 0.5, 0.0, 1.0, 0.5, 0.7, node_type=1.15) == [0.574425]
    assert weighted(0.8, 0.5, 0.0, 1.0, 0.5, 0.7, temporal=0.15) == [0.6495]


def test_the_floor_caps_at_the_relevance_and_0_is_no_floor():
    assert weighted(0.1, 0.1, 0.0, 1.0, 0.5, 0.7) == [0.2]
    assert weighted(0.25, 0.1, 0.0, 1.0, 0.5, 0.7) == [0.30375]  # exactly the floor is not below it
    assert weighted(-0.1, 0.0, 0.0, 1.0, 0.5, 0.7, floor=0.0) == [0.207]


@pytest.mark.parametrize(
    ("semantic", "lexical", "score"),
    [
        (1, 1, 1.0),
        (1, 2, 0.9919354839),
        (1, 0, 0.5),
        (10, 10, 0.8714285714),
        (60, 60, 0.5083333333),
        (0, 0, 0.0),
    ],
)
def test_reciprocal_ranks(semantic, lexical, score):
    assert fused_score(60, np.array([semantic]), np.array([lexical]), factors=[], tie_break=None).tolist() == [score]


def test_factors_and_the_tie_break_below_the_rounding_grid():
    ranks = np.array([1, 0])
    found = fused_score(60, ranks, ranks, factors=[np.array([0.9, 1.0]), 0.9], tie_break=np.array([0.5, 0.5]))
    assert found.tolist() == [0.81 - 5e-12, 0.0]


def test_weights_of_their_own_give_each_row_the_same_bits():
    columns = {name: np.random.default_rng(7).random(40) for name in SIGNALS}
    given = {"epistemic": columns["graph"], "node_type": columns["salience"]}
    one = weighted_score(WEIGHTS, columns, temporal=0.1, relevance_floor=0.35, **given)
    many = weighted_score(
        {name: np.full(40, weight) for name, weight in WEIGHTS.items()},
        columns,
        temporal=np.full(40, 0.1),
        relevance_floor=np.full(40, 0.35),
        **given,
    )
    assert one.tolist() == many.tolist()
