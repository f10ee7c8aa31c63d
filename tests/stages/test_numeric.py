import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stages.numeric import competition_ranks, exp, round_score

numbers = st.lists(
    st.one_of(
        st.floats(-3, 3),
        st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15),
        # Exactly or nearly halfway between two results.
        st.integers(-(10**11), 10**11).map(lambda whole: (whole + 0.5) / 1e10),
    ),
    max_size=20,
)


@given(numbers)
def test_rounding_is_the_scalar_rounding_bit_for_bit(values):
    ours = round_score(np.array(values, dtype=np.float64))
    assert ours.tobytes() == np.array([round(value, 10) for value in values], dtype=np.float64).tobytes()


@given(st.lists(st.floats(-700, 1), max_size=20))
def test_exp_is_the_scalar_exp(values):
    assert exp(np.array(values, dtype=np.float64)).tolist() == [math.exp(value) for value in values]


@given(st.lists(st.integers(-3, 3), max_size=12))
def test_a_rank_is_one_more_than_the_number_of_larger_values(values):
    expected = [1 + sum(other > value for other in values) for value in values]
    assert competition_ranks(np.array(values, dtype=np.int64)).tolist() == expected
    assert competition_ranks(np.array(values, dtype=np.float64)).tolist() == expected


def test_equal_values_share_the_better_rank():
    assert competition_ranks(np.array([0.9, 0.5, 0.5, 0.1])).tolist() == [1, 2, 2, 4]
