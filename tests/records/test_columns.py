"""Columns come back bit for bit, whatever is in them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.errors import StoreCorrupt
from prme_ray.records.columns import pack_columns, unpack_columns

_TYPES = ("<f8", "<f4", "<i4", "<i2", "<u2", "|u1", "<u8")


@st.composite
def tables(draw):
    columns = {}
    for place, dtype in enumerate(draw(st.lists(st.sampled_from(_TYPES), max_size=5))):
        size = np.dtype(dtype).itemsize
        data = draw(st.binary(max_size=6 * size))
        columns[f"c{place}"] = np.frombuffer(data[: len(data) // size * size], dtype)
    return columns


@given(tables())
def test_columns_come_back_bit_for_bit(columns):
    back = unpack_columns(*pack_columns(columns, beside={}))
    assert {name: (values.dtype, values.tobytes()) for name, values in back.items()} == {
        name: (values.dtype, values.tobytes()) for name, values in columns.items()
    }


@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1))
def test_a_column_beside_another_comes_back_too(pairs):
    one, other = (np.array(values) for values in zip(*pairs, strict=True))
    back = unpack_columns(*pack_columns({"one": one, "other": other}, beside={"other": "one"}))
    assert back["other"].tobytes() == other.tobytes()


def test_what_mostly_repeats_another_is_mostly_zero():
    scores = np.linspace(0.1, 0.9, 50)
    nearly = scores.copy()
    nearly[7] = 0.2
    specs, data = pack_columns({"scores": scores, "nearly": nearly}, beside={"nearly": "scores", "gone": "scores"})
    assert [under for *_, under in specs] == [None, "scores"]
    assert np.count_nonzero(np.frombuffer(data[-400:], np.uint8)) <= 8


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b""])
def test_other_bytes_than_the_columns_take_are_refused(change):
    specs, data = pack_columns({"a": np.arange(3.0), "b": np.arange(4)}, beside={})
    with pytest.raises(StoreCorrupt):
        unpack_columns(specs, change(data))
