import math
from datetime import timedelta

import pytest

from stages.affinity import temporal_affinity
from tests.stages.scoring_pool import REF, candidate, pool

DATED = {"content": "met on 8 May 2023"}


def affinity(time_from=None, time_to=None, **node):
    return float(temporal_affinity(pool(candidate(1, **node)), time_from=time_from, time_to=time_to)[0])


def test_without_a_window_only_dates_in_the_text_count():
    assert affinity() == 0.0
    assert affinity(**DATED) == pytest.approx(0.3 + 0.7 * 0.5)


def test_the_window_includes_its_ends():
    assert affinity(REF - timedelta(days=10), REF - timedelta(days=5), age=10) == pytest.approx(0.7)
    assert affinity(REF - timedelta(days=10), REF - timedelta(days=5), age=5) == pytest.approx(0.7)
    assert affinity(REF - timedelta(days=10), REF - timedelta(days=5), age=7, **DATED) == pytest.approx(1.0)


def test_outside_it_falls_with_the_days_to_the_nearest_edge():
    window = (REF - timedelta(days=10), REF - timedelta(days=5))
    assert affinity(*window, age=40) == pytest.approx(0.7 * math.exp(-0.02 * 30))
    assert affinity(*window, age=0) == pytest.approx(0.7 * math.exp(-0.02 * 5))


def test_an_open_end_never_ends():
    assert affinity(time_from=REF - timedelta(days=5), age=1) == pytest.approx(0.7)
    assert affinity(time_to=REF - timedelta(days=5), age=900) == pytest.approx(0.7)
    assert affinity(time_to=REF - timedelta(days=5), age=4) == pytest.approx(0.7 * math.exp(-0.02))


def test_the_stated_time_is_what_counts():
    window = (REF - timedelta(days=1), REF)
    assert affinity(*window, age=100, event_time="2026-03-01T00:00:00Z") == pytest.approx(0.7)
