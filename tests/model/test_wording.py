"""What counts as a date and as an update."""

import pytest

from prme_ray.model.wording import has_date, has_update_wording


@pytest.mark.parametrize(
    "text",
    ["in May", "on 3 June", "June 3, 2026", "2026-06-03", "2026/6/3", "3/6/26", "back in 1999", "SEPT? no, Sep 4"],
)
def test_dates_are_seen(text):
    assert has_date(text)


@pytest.mark.parametrize("text", ["", "tomorrow", "room 214", "code 1899", "mayor", "12:30", "€3,450"])
def test_other_numbers_and_words_are_no_dates(text):
    assert not has_date(text)


@pytest.mark.parametrize(
    "text",
    [
        "She moved to Ghent",
        "We SWITCHED TO tea",
        "he no longer runs",
        "the new dentist is kind",
        "I updated the list",
        "the lesson changed and is now on Thursday",
    ],
)
def test_updates_are_seen(text):
    assert has_update_wording(text)


@pytest.mark.parametrize("text", ["", "She lives in Ghent", "it changed. Now we know", "an outdated map"])
def test_other_statements_are_no_updates(text):
    assert not has_update_wording(text)
