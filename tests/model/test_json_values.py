"""Numbers and JSON values of callers."""

import enum
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.errors import InvalidRequest, InvalidText
from prme_ray.model.json_values import JSON_DEPTH, is_number, json_object


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, True),
        (1.0, True),
        (-0.1, False),
        (1.1, False),
        (True, False),
        ("1", False),
        (math.nan, False),
        (10**400, False),
    ],
)
def test_a_number_is_finite_in_its_range_and_no_bool(value, expected):
    assert is_number(value, 0, 1) is expected


def test_without_an_upper_bound_a_number_is_still_finite():
    assert is_number(1e308, 0)
    assert not is_number(math.inf, 0)
    assert not is_number(10**400, 0)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_json_values_are_copied_and_survive_json(value):
    copied = json_object(value, "metadata")
    assert copied == value == json.loads(json.dumps(copied, ensure_ascii=False))
    assert copied is not value


def test_subclasses_become_plain():
    class Colour(enum.StrEnum):
        RED = "red"

    copied = json_object({Colour.RED: Colour.RED, "pair": (1, 2)}, "metadata")
    assert copied == {"red": "red", "pair": [1, 2]}
    assert {type(text) for text in (*copied, copied["red"])} == {str}


@pytest.mark.parametrize("value", [{"a": {1}}, {"a": math.inf}, {"a": 2**1024}, {"a": b"x"}, [1], "text"])
def test_what_is_no_json_is_refused(value):
    with pytest.raises(InvalidRequest, match="metadata"):
        json_object(value, "metadata")


@pytest.mark.parametrize("value", [{"a": "\x00"}, {"\ud800": 1}, {"a": [{"b": "\ud800"}]}, {1: 2}, {"a": {None: 1}}])
def test_text_and_keys_obey_the_rules_of_text(value):
    with pytest.raises(InvalidText, match="item 3"):
        json_object(value, "metadata", 3)


def test_nesting_is_bounded():
    value = {}
    for _ in range(JSON_DEPTH):
        value = {"a": value}
    assert json_object(value, "metadata") == value
    with pytest.raises(InvalidRequest, match=str(JSON_DEPTH)):
        json_object({"a": value}, "metadata")
