import math

import numpy as np
import pytest

from prme_ray.model.times import DAY_US, micros
from stages.recency import changed_times, days_between, recency, stated_times
from tests.stages.scoring_pool import REF, candidate, days_ago, pool


def test_the_two_clocks():
    table = pool(
        candidate(1, age=30, updated_at=days_ago(2)),
        candidate(2, age=30, updated_at=days_ago(2), event_time=days_ago(90)),
    )
    assert ((micros(REF) - stated_times(table)) // DAY_US).tolist() == [30, 90]
    assert ((micros(REF) - changed_times(table)) // DAY_US).tolist() == [2, 90]


def test_clocks_of_an_empty_pool():
    assert len(stated_times(pool())) == len(changed_times(pool())) == 0


def test_a_future_time_counts_as_now():
    earlier = np.array([0, DAY_US, 3 * DAY_US])
    assert days_between(DAY_US, earlier).tolist() == [1.0, 0.0, 0.0]


def test_recency_halves_and_doubles_up_to_one():
    ages = np.array([0.0, math.log(2), math.log(2), math.log(4)])
    assert recency(ages, decay=1.0).tolist() == pytest.approx([1.0, 0.5, 0.5, 0.25])
    doubled = np.array([True, True, False, True])
    assert recency(ages, decay=1.0, doubled=doubled).tolist() == pytest.approx([1.0, 1.0, 0.5, 0.5])
    assert recency(ages, decay=0.0).tolist() == [1.0] * 4
