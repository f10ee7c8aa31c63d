from datetime import UTC, datetime

import pytest

from prme_ray.model.enums import Intent, RetrievalMode, TemporalType
from prme_ray.model.errors import InvalidRequest
from stages.analyze import analyze, keyword_terms
from tests.stages.scoring_pool import REF


def look(query, **arguments):
    return analyze(query, reference_time=REF, **arguments)


@pytest.mark.parametrize(
    ("query", "entity_first", "temporal_first"),
    [
        ("When did Caroline go to the support group?", Intent.ENTITY_LOOKUP, Intent.TEMPORAL),
        ("when did caroline go?", Intent.TEMPORAL, Intent.TEMPORAL),
        ("is Ann related to Ben", Intent.ENTITY_LOOKUP, Intent.ENTITY_LOOKUP),
        ("linked to project x", Intent.RELATIONAL, Intent.RELATIONAL),
        ("just the facts", Intent.FACTUAL, Intent.FACTUAL),
        ("whatever who", Intent.SEMANTIC, Intent.SEMANTIC),
        ("", Intent.SEMANTIC, Intent.SEMANTIC),
    ],
)
def test_the_first_matching_intent_wins(query, entity_first, temporal_first):
    assert look(query).intent is entity_first
    assert look(query, intent_order="temporal_first").intent is temporal_first


def test_an_unknown_order_is_refused():
    with pytest.raises(InvalidRequest, match="entity_first or temporal_first"):
        look("x", intent_order="temporal")


def test_a_name_that_looks_like_a_month_is_no_date_when_time_comes_first():
    kept = look("Who is June dating?")
    assert [signal.value for signal in kept.temporal_signals] == ["June"]
    dropped = look("Who is June dating?", intent_order="temporal_first")
    assert (dropped.temporal_signals, dropped.intent, dropped.time_from) == ((), Intent.ENTITY_LOOKUP, None)
    several_words = look("What happened in June?", intent_order="temporal_first")
    assert [signal.value for signal in several_words.temporal_signals] == ["in June"]


def test_the_window_spans_the_dates_found():
    found = look("between 2024-01-05 and 2024-02-07 what changed")
    assert (found.time_from, found.time_to) == (datetime(2024, 1, 5, tzinfo=UTC), datetime(2024, 2, 7, tzinfo=UTC))


def test_either_bound_of_the_caller_replaces_the_window():
    found = look("last week", time_from=REF)
    assert (found.time_from, found.time_to, found.intent) == (REF, None, Intent.TEMPORAL)


def test_durations_and_recurrences_set_no_window_and_no_intent():
    found = look("the fee each quarter for two quarters")
    assert [signal.type for signal in found.temporal_signals] == [TemporalType.DURATION, TemporalType.RECURRING]
    assert (found.time_from, found.time_to, found.intent) == (None, None, Intent.SEMANTIC)


def test_the_mode_is_passed_through():
    assert look("x", mode=RetrievalMode.EXPLICIT).mode is RetrievalMode.EXPLICIT


def test_keyword_terms_are_five_words_and_their_neighbours():
    assert keyword_terms("How many museums and art galleries did I visit with Emma in winter?") == (
        "museums",
        "art",
        "galleries",
        "visit",
        "emma",
        "museums art",
        "art galleries",
        "galleries visit",
        "visit emma",
    )


def test_keyword_terms_of_short_and_repeated_questions():
    assert keyword_terms("how many of it") == ()
    assert keyword_terms("count CATS") == ("cats",)
    assert keyword_terms("cats cats") == ("cats", "cats cats")
    assert keyword_terms("日本 café") == ()
