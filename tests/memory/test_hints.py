"""Scopes bound the answer; the best of what lies outside is hinted at and never packed."""

import math
from datetime import timedelta

import pytest

from tests.memory.tools import OWNER, START


@pytest.fixture
def scoped(memory):
    memory.store("cat at home", owner=OWNER, scope="personal")
    memory.store("cat at work", owner=OWNER, scope="project")
    memory.store("cat at the club", owner=OWNER, scope="organisation")
    memory.store("dog", owner=OWNER, scope="project", epistemic_type="hypothetical")
    memory.store_node("cat pin", owner=OWNER, node_type="fact", scope="project", pinned=True)
    return memory


def texts(candidates):
    return {candidate.content for candidate in candidates}


def test_only_the_asked_scopes_answer(scoped):
    answer = scoped.retrieve("cat", owner=OWNER, scope="personal")
    assert texts(answer.results) == {"cat at home"}
    assert answer.metadata.scope_filter == ["personal"]
    answer = scoped.retrieve("cat", owner=OWNER, scope=("personal", "organisation"))
    assert texts(answer.results) == {"cat at home", "cat at the club"}
    assert answer.metadata.scope_filter == ["organisation", "personal"]


def test_hints_are_outside_filtered_and_not_packed(scoped):
    answer = scoped.retrieve("cat", owner=OWNER, scope="personal")
    assert texts(answer.cross_scope_hints) == {"cat at work", "cat at the club", "cat pin"}
    scores = [hint.score for hint in answer.cross_scope_hints]
    assert scores == sorted(scores, reverse=True)
    assert not any(hint.in_context for hint in answer.cross_scope_hints)
    assert "work" not in answer.bundle.context


@pytest.mark.parametrize("given", [{}, {"scope": "personal", "include_cross_scope": False}, {"scope": "agent"}])
def test_no_hints_without_scope_without_wish_or_without_candidates(scoped, given):
    assert len(scoped.retrieve("cat", owner=OWNER, **given).cross_scope_hints) == 0


def test_hints_obey_the_floor_the_type_filters_and_their_number(scoped, opened):
    answer = scoped.retrieve("cat at home", owner=OWNER, scope="personal", min_score=0.99)
    assert (len(answer.results), len(answer.cross_scope_hints)) == (1, 0)
    answer = scoped.retrieve("cat", owner=OWNER, scope="personal", exclude_node_types=["fact"])
    assert texts(answer.cross_scope_hints) == {"cat at work", "cat at the club"}
    scoped.close()
    few = opened(settings={"packing": {"cross_scope_top_n": 1}})
    assert len(few.retrieve("cat", owner=OWNER, scope="personal").cross_scope_hints) <= 1


@pytest.mark.parametrize(("weights", "first"), [({}, "cat said"), ({"asserted": 0.2, "inferred": 1.0}, "cat guessed")])
def test_hints_are_weighed_by_the_configured_epistemic_weights(opened, weights, first):
    memory = opened(settings={"epistemic_weights": weights} if weights else {})
    memory.store("cat", owner=OWNER)
    memory.store_node("cat said", owner=OWNER, node_type="note", scope="project", epistemic_type="asserted")
    memory.store_node("cat guessed", owner=OWNER, node_type="note", scope="project", epistemic_type="inferred")
    hints = memory.retrieve("cat", owner=OWNER, scope="personal").cross_scope_hints
    assert hints[0].content == first
    assert len(hints) == 2


def test_hints_and_results_are_dated_by_the_clock_of_the_request(memory):
    memory.store("cat", owner=OWNER)
    memory.store("cat again", owner=OWNER, scope="project")
    later = START + timedelta(days=50)
    answer = memory.retrieve("cat", owner=OWNER, scope="personal", reference_time=later, weights={"fusion": "weighted"})
    (result,), (hint,) = answer.results, answer.cross_scope_hints
    assert result.lineage.trace.recency_factor == pytest.approx(math.exp(-0.02 * 50), abs=1e-4)
    assert hint.lineage.trace.recency_factor == pytest.approx(math.exp(-0.02 * 50), abs=1e-4)


def test_hints_do_not_change_the_results(scoped):
    with_hints = scoped.retrieve("cat", owner=OWNER, scope="personal")
    without = scoped.retrieve("cat", owner=OWNER, scope="personal", include_cross_scope=False)
    assert with_hints.bundle == without.bundle
    assert [c.score for c in with_hints.results] == [c.score for c in without.results]


def test_channels_that_are_off_give_no_hints(opened):
    memory = opened(settings={"disabled_channels": ["VECTOR", "LEXICAL"]})
    memory.store("cat at work", owner=OWNER, scope="project")
    memory.store_node("cat pin", owner=OWNER, node_type="fact", scope="personal", pinned=True)
    answer = memory.retrieve("cat", owner=OWNER, scope="personal")
    assert (texts(answer.results), len(answer.cross_scope_hints)) == ({"cat pin"}, 0)
