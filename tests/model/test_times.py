"""Instants keep every microsecond and never borrow the zone of the process."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.errors import InvalidRequest
from prme_ray.model.times import DAY_US, NO_TIME, from_micros, instant, iso, micros

AWARE = st.datetimes(
    min_value=datetime(2, 1, 1),
    max_value=datetime(9998, 12, 31),
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


@pytest.mark.parametrize(
    "given_value",
    [
        "2026-05-04T10:00:00Z",
        "2026-05-04T12:00:00+02:00",
        datetime(2026, 5, 4, 15, 30, tzinfo=timezone(timedelta(hours=5.5))),
    ],
)
def test_one_instant_in_three_spellings(given_value):
    found = instant(given_value, "at")
    assert found == datetime(2026, 5, 4, 10, tzinfo=UTC)
    assert found.tzinfo is UTC


def test_nothing_stays_nothing():
    assert instant(None, "at") is None


@pytest.mark.parametrize("value", ["2026-05-04T10:00:00", "2026-05-04", "tomorrow", "", datetime(2026, 5, 4), 5, b"x"])
def test_a_time_without_an_offset_is_refused_and_named(value):
    with pytest.raises(InvalidRequest, match=r"^event_time=") as caught:
        instant(value, "event_time")
    assert caught.value.given == value


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00"])
def test_an_instant_outside_the_calendar_is_refused(value):
    with pytest.raises(InvalidRequest, match="a year from 1 to 9999"):
        instant(value, "at")


def test_micros_counts_from_the_epoch():
    assert micros(datetime(1970, 1, 2, tzinfo=UTC)) == DAY_US
    assert micros(datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)) == -1
    assert micros(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)) == 253402300799999999


@given(AWARE)
def test_micros_and_text_keep_every_microsecond(value):
    assert from_micros(micros(value)) == value
    assert micros(value) > NO_TIME
    assert instant(iso(value), "at") == value


def test_iso_is_short_where_it_can_be():
    assert iso(datetime(2026, 5, 4, 12, tzinfo=timezone(timedelta(hours=2)))) == "2026-05-04T10:00:00Z"
    assert iso(datetime(2026, 5, 4, 10, 0, 0, 5, tzinfo=UTC)) == "2026-05-04T10:00:00.000005Z"
