"""Columns of JSON: rows made of them are what orjson writes of the rows themselves."""

import json
import math

import numpy as np
import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.http.pieces import choices, counts, ids, interleave, letters, numbers, raw, strings, together

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


@given(st.lists(st.integers(0, 2_000), min_size=1, max_size=20))
def test_counts(values):
    columns = np.array(values, np.int32)
    made = rows_of(raw([b'{"a":'] * len(values)), counts(columns), b'"b":', counts(columns, b"null,"), b'"c":1},')
    assert made == [{"a": value, "b": value or None, "c": 1} for value in values]


def test_a_column_of_one_value_is_one_piece():
    found = numbers({"a": np.array([0.5, 0.5]), "b": np.broadcast_to(2.0, 2), "c": np.array([0.0, -0.0])})
    assert (found["a"], found["b"]) == (b"0.5,", b"2.0,")
    assert found["c"].to_pylist() == [b"0.0,", b"-0.0,"]


def test_ids_strings_and_choices():
    names = ["aa-1", None, "aa-2"]
    reasons = pa.array(["x,y", "]", "x,y"])
    columns = [raw([b'{"id":'] * 3), ids(names), b'"why":', strings(reasons, b"},")]
    assert rows_of(*columns) == [
        {"id": "aa-1", "why": "x,y"},
        {"id": None, "why": "]"},
        {"id": "aa-2", "why": "x,y"},
    ]
    assert strings(pa.array(["same", "same"])) == b'"same",'
    assert strings(pa.array([None, "one"])).to_pylist() == [b"null,", b'"one",']
    assert rows_of(b'{"id":"', letters(pa.array(["aa-1", "aa-2"])), b'"},') == [{"id": "aa-1"}, {"id": "aa-2"}]
    assert choices(raw([b"no", b"yes"]), np.array([1, 0], np.int8)).to_pylist() == [b"yes", b"no"]
