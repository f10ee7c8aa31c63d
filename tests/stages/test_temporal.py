import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

from stages.temporal import PARSER_LOCK, dated_signals, may_hold_date, phrase_signals
from tests.stages.scoring_pool import REF


def dated(query, languages=("en",)):
    found = dated_signals(query, reference_time=REF, languages=languages)
    return [(signal.type.value, signal.value, signal.resolved) for signal in found]


def test_importing_the_stage_does_not_import_the_parser():
    code = "import sys, stages.analyze; print('dateparser' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_parser_is_only_asked_about_date_like_questions():
    assert may_hold_date("room 101") and may_hold_date("the past") and may_hold_date("Last Week")
    assert not may_hold_date("may I come") and not may_hold_date("") and not may_hold_date("blast weekly")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what did I do two weeks ago?", [("RELATIVE", "two weeks ago", datetime(2026, 2, 15, 12, tzinfo=UTC))]),
        ("what did I do 3 days ago", [("ABSOLUTE", "3 days ago", datetime(2026, 2, 26, 12, tzinfo=UTC))]),
        ("what happened in May 2023?", [("ABSOLUTE", "in May 2023", datetime(2023, 5, 1, tzinfo=UTC))]),
        ("the second time", []),
        ("", []),
    ],
)
def test_dates_resolve_against_the_reference_time(query, expected):
    assert dated(query) == expected


def test_no_languages_means_detect():
    assert dated("2024-01-05", languages=()) == [("ABSOLUTE", "2024-01-05", datetime(2024, 1, 5, tzinfo=UTC))]


def test_a_parser_failure_means_no_signals(caplog):
    assert dated("in 2023", languages=("no-such-language",)) == []
    assert "no dates taken" in caplog.text
    assert "2023" not in caplog.text


def test_the_parser_waits_for_the_process_wide_lock():
    done = threading.Event()
    worker = threading.Thread(target=lambda: (dated("yesterday"), done.set()))
    with PARSER_LOCK, PARSER_LOCK:
        worker.start()
        assert not done.wait(0.2)
    worker.join(10)
    assert done.is_set()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("spending over the past month", [("DURATION", "over the past month")]),
        ("in Rome for two weeks", [("DURATION", "for two weeks")]),
        ("during the last 3 years", [("DURATION", "during the last 3 years")]),
        ("for a walk", []),
        ("Every Tuesday meeting", [("RECURRING", "Every Tuesday")]),
        ("each week, on Fridays", [("RECURRING", "each week"), ("RECURRING", "on Fridays")]),
        ("every other day for a month", [("DURATION", "for a month"), ("RECURRING", "every other day")]),
        ("every time I ran", []),
        ("every one", []),
    ],
)
def test_durations_and_recurrences_are_named_and_not_resolved(query, expected):
    found = phrase_signals(query)
    assert [(signal.type.value, signal.value) for signal in found] == expected
    assert all(signal.resolved is None for signal in found)
