import numpy as np
import pytest

from storage.columns import Columns, Growing


def test_a_frozen_slice_never_changes_and_cannot_be_written():
    array = Growing(np.int64)
    array.append([1, 2])
    before = array.freeze()
    for value in range(500):  # several buffers
        array.append([value])
    assert before.tolist() == [1, 2]
    assert array.freeze()[2:].tolist() == list(range(500))
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 9


def test_rows_have_a_width_and_columns_grow_together():
    matrix = Growing(np.float32, width=3)
    matrix.append(np.ones((2, 3)))
    matrix.append(np.empty((0, 3)))
    assert matrix.freeze().shape == (2, 3)
    columns = Columns({"a": np.int8, "b": np.bool_})
    columns.append(a=[1, 2], b=[True, False])
    assert len(columns) == 2
    assert {name: values.tolist() for name, values in columns.freeze().items()} == {"a": [1, 2], "b": [True, False]}
