from datetime import UTC, datetime

import pytest

from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import Intent
from stages.guidance import context_type, coverage_notices, guidance_text

NOW = datetime(2024, 5, 4, 10, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("How many weeks ago did I move?", "temporal"),
        ("How long did the trip take?", "temporal"),
        ("Which shop did I visit most recently?", "temporal"),
        ("In what order did I see them, last one included?", "temporal"),
        ("How many times did I run?", "aggregation"),
        ("How much did I spend in total before May?", "aggregation"),
        ("Where do I work now?", "knowledge_update"),
        ("Do I own a bike?", "knowledge_update"),
        ("Where did I live after the recent move?", "knowledge_update"),
        ("When did I move?", "temporal"),
        ("Who is my dentist?", "default"),
        ("My thesis on nowadays' accounts", "default"),
        ("", "default"),
    ],
)
def test_context_types(query: str, expected: str) -> None:
    assert context_type(query, intent=Intent.SEMANTIC, is_aggregation=False) == expected


def test_the_analysis_can_decide_too() -> None:
    assert context_type("my runs", intent=Intent.SEMANTIC, is_aggregation=True) == "aggregation"
    assert context_type("yesterday", intent=Intent.TEMPORAL, is_aggregation=False) == "temporal"


def guidance(query: str, mode: str = "all", context_format: str = "reader") -> str | None:
    analysis = QueryAnalysis(query, Intent.SEMANTIC)
    return guidance_text(query, analysis=analysis, mode=mode, context_format=context_format, reference_time=NOW)


def test_temporal_guidance_names_the_question_time_and_where_dates_stand() -> None:
    text = guidance("When did I move?", mode="temporal")
    assert text is not None
    assert text.splitlines()[0] == "Question time: 2024-05-04T10:30:00Z"
    assert "brackets" in text
    assert "event_time" in (guidance("When did I move?", context_format="compact") or "")


@pytest.mark.parametrize("query", ["Where do I work now?", "Can you recommend a film?", "What should I cook?"])
def test_the_mode_decides_what_is_guided(query: str) -> None:
    assert guidance(query) is not None
    assert guidance(query, mode="temporal") is None
    assert guidance(query, mode="off") is None


def test_no_guidance_for_plain_questions_and_none_holds_the_question() -> None:
    assert guidance("Who is my dentist?") is None
    assert "xyzzy" not in (guidance("When was xyzzy?") or "")


def test_notices_stand_in_order_and_on_one_line_each() -> None:
    both = coverage_notices(is_aggregation=True, knowledge_at=NOW)
    assert [text.split(":")[0] for text in both] == ["Coverage", "History"]
    assert coverage_notices(is_aggregation=False, knowledge_at=None) == ()
    assert all("\n" not in text for text in both)
