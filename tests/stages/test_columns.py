"""Shared column helpers."""

import pyarrow as pa

from stages.columns import by_score, positions


def test_equal_scores_stand_by_id():
    assert by_score([0.5, 0.9, 0.5, 0.9], pa.array(["b", "d", "a", "c"])).tolist() == [3, 1, 2, 0]


def test_positions_are_first_places_or_minus_one():
    assert positions(pa.array(["c", "x", "a"]), pa.array(["a", "b", "c", "c"])).tolist() == [2, -1, 0]
    assert positions(pa.array([], pa.string()), pa.array(["a"])).tolist() == []
