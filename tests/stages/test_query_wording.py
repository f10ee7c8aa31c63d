import pytest

from prme_ray.model.enums import Intent, RetrievalMode
from stages.query_wording import (
    current_state,
    has_answer_class_pattern,
    has_implicit_pattern,
    is_aggregation,
    is_elapsed_time,
    is_recent_episodic,
    with_wording,
)


@pytest.mark.parametrize(
    ("query", "aggregation", "elapsed"),
    [
        ("How many times did I swim?", True, False),
        ("How many days ago did I buy the bike?", False, True),
        ("how many hours did I work on both jobs", True, False),
        ("How many minutes did it last. Then years ago", True, False),
        ("LIST ALL cats", True, False),
        ("account for it", False, False),
        ("", False, False),
        ("combien de fois, Zoë?", False, False),
    ],
)
def test_count_questions_are_not_elapsed_time(query, aggregation, elapsed):
    assert is_aggregation(query) is aggregation
    assert is_elapsed_time(query) is elapsed


def test_elapsed_time_reaches_fifty_characters_and_no_further():
    assert is_elapsed_time("how many days" + " " * 50 + "ago")
    assert not is_elapsed_time("how many days" + " " * 51 + "ago")


@pytest.mark.parametrize(
    ("query", "intent", "expected"),
    [
        ("What is my current job?", Intent.ENTITY_LOOKUP, "explicit"),
        ("Where do I live", Intent.SEMANTIC, "none"),
        ("do I go there", Intent.SEMANTIC, "explicit"),
        ("I am late", Intent.SEMANTIC, "none"),
        ("who is my dentist", Intent.ENTITY_LOOKUP, "implicit"),
        ("who is my dentist", Intent.TEMPORAL, "none"),
        ("who is my current dentist", Intent.TEMPORAL, "implicit"),
        ("what a b c d is", Intent.FACTUAL, "implicit"),
        ("what a b c d e is", Intent.FACTUAL, "none"),
        ("used to live now", Intent.SEMANTIC, "none"),
        ("how long now", Intent.FACTUAL, "none"),
        ("nowhere near", Intent.SEMANTIC, "none"),
    ],
)
def test_current_state_rules_in_order(query, intent, expected):
    assert current_state(query, intent=intent, aggregation=False) == expected


def test_a_count_question_is_never_about_the_present():
    assert with_wording("how many jobs do I have now", intent=Intent.FACTUAL).current_state == "none"
    overridden = with_wording("how many jobs do I have now", intent=Intent.FACTUAL, aggregation=False)
    assert overridden.current_state == "explicit"


def test_answer_class_needs_one_subject():
    assert has_answer_class_pattern("what kind of bike does Priya ride")
    assert not has_answer_class_pattern("what a and b does Priya use")
    assert has_implicit_pattern("what a and b does Priya use")


def test_recent_episode_words():
    assert is_recent_episodic("what did the landlord just told me")
    assert not is_recent_episodic("favourite food")


def test_with_wording_keeps_what_it_is_given():
    found = with_wording("now", intent=Intent.SEMANTIC, mode=RetrievalMode.AUDIT)
    assert (found.query, found.intent, found.mode) == ("now", Intent.SEMANTIC, RetrievalMode.AUDIT)
    assert found.explicit_wording and not found.implicit_pattern
