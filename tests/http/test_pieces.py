"""Columns of JSON: rows made of them are what orjson writes of the rows themselves."""

import json
import math

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.http.pieces import choices, ids, interleave, numbers, raw, strings, together

FLOATS = st.floats(width=64) | st.sampled_from([0.0, -0.0, 1.0, math.nan])


def rows_of(*columns):
    """Return the rows that ``together`` and ``interleave`` make of columns."""
    return json.loads(b"[%b]" % together(interleave(*columns)))


@given(st.lists(st.tuples(FLOATS, FLOATS, FLOATS), min_size=1, max_size=20))
def test_numbers_as_orjson_writes_them(rows):
    values = np.array(rows)
    found = numbers({"a": values[:, 0], "b": values[:, 1], "c": values[:, 2]}, closing=("c",))
    anchor = raw([b'{"a":'] * len(rows))
    made = together(interleave(anchor, found["a"], b'"b":', found["b"], b'"c":', found["c"], b","))
    expected = orjson.dumps([dict(zip("abc", row, strict=True)) for row in rows])
    assert b"[%b]" % made == expected


@given(st.lists(st.integers(-1, 40), min_size=1, max_size=20), st.integers(-1, 3))
def test_counts_of_minus_one_count_nothing(values, same):
    columns = {"a": np.array(values), "b": np.broadcast_to(np.int64(same), len(values))}
    found = numbers(columns, closing=("b",), null=-1)
    made = rows_of(raw([b'{"a":'] * len(values)), found["a"], b'"b":', found["b"], b",")
    assert made == [{"a": None if value < 0 else value, "b": None if same < 0 else same} for value in values]


def test_a_column_of_one_value_is_one_piece():
    found = numbers({"a": np.array([0.5, 0.5]), "b": np.broadcast_to(2.0, 2), "c": np.array([0.0, -0.0])})
    assert (found["a"], found["b"]) == (b"0.5,", b"2.0,")
    assert found["c"].to_pylist() == [b"0.0,", b"-0.0,"]


def test_ids_strings_and_choices():
    names = ["aa-1", None, "aa-2"]
    columns = [raw([b'{"id":'] * 3), ids(names), b'"why":', strings(["x,y", "]", "x,y"], b"},")]
    assert rows_of(*columns) == [
        {"id": "aa-1", "why": "x,y"},
        {"id": None, "why": "]"},
        {"id": "aa-2", "why": "x,y"},
    ]
    assert strings(["same", "same"]) == b'"same",'
    assert choices(raw([b"no", b"yes"]), np.array([1, 0], np.int8)).to_pylist() == [b"yes", b"no"]
