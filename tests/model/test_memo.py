"""What is kept of Arrow objects goes with them."""

import gc

import numpy as np
import pyarrow as pa
import pytest

from prme_ray.model import memo
from prme_ray.model.memo import known_of
from prme_ray.model.tables import CHANNEL, built, channel, column, floats, replace, texts


def test_what_is_read_is_kept_with_the_object() -> None:
    table = pa.table({"signal": [0.5, None]})
    assert known_of(table) is known_of(table)
    assert floats(table, "signal") is floats(table, "signal")
    assert floats(table, "signal", null=-1.0).tolist() == [0.5, -1.0]
    assert np.isnan(floats(table, "signal")[1])


def test_nothing_stays_of_an_object_that_is_gone() -> None:
    gc.collect()
    before = len(memo._KNOWN)
    for _ in range(50):
        hits = channel(["a", "b"], [1.0, 0.5])
        assert texts(replace(hits, signal=[0.1, 0.2]), "node_id") == ["a", "b"]
        assert floats(hits, "signal").tolist() == [1.0, 0.5]
    del hits
    assert len(memo._KNOWN) == before


def test_what_is_kept_cannot_be_written_to() -> None:
    signals = np.array([1.0, 0.5])
    table = built(CHANNEL, {"node_id": pa.array(["a", "b"]).dictionary_encode(), "signal": signals})
    for values in (signals, floats(table, "signal"), floats(pa.table({"x": [1.0, None]}), "x")):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 2.0
    assert column(table, "signal").to_pylist() == [1.0, 0.5]
