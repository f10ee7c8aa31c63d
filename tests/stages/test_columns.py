"""Shared column helpers."""

import pyarrow as pa
import pytest

from stages.columns import batch, by_score, flat, positions


def chunked(*chunks):
    return pa.table({"a": pa.chunked_array([pa.array(chunk, pa.int64()) for chunk in chunks], pa.int64())})


@pytest.mark.parametrize("chunks", [(), ([],), ([1, 2],), ([1], [2])])
def test_a_column_and_a_batch_are_whole_however_they_are_chunked(chunks):
    table = chunked(*chunks)
    values = [value for chunk in chunks for value in chunk]
    assert flat(table, "a").to_pylist() == values
    assert batch(table, ["a"]).to_pydict() == {"a": values}


def test_equal_scores_stand_by_id():
    assert by_score([0.5, 0.9, 0.5, 0.9], pa.array(["b", "d", "a", "c"])).tolist() == [3, 1, 2, 0]


def test_positions_are_first_places_or_minus_one():
    assert positions(pa.array(["c", "x", "a"]), pa.array(["a", "b", "c", "c"])).tolist() == [2, -1, 0]
    assert positions(pa.array([], pa.string()), pa.array(["a"])).tolist() == []
