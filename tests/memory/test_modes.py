"""What each mode shows, what goes first, and how the weighted formula is asked for."""

import pytest

from prme_ray.model.errors import InvalidRequest
from tests.memory.tools import OWNER, START

IF = {"condition": "if it rains"}
DROPPED = {
    "superseded": ({"lifecycle_state": "superseded"}, "lifecycle_filtered:superseded"),
    "archived": ({"lifecycle_state": "archived"}, "lifecycle_filtered:archived"),
    "deprecated": ({"lifecycle_state": "deprecated"}, "lifecycle_filtered:deprecated"),
    "hypothetical": ({"epistemic_type": "hypothetical"}, "epistemic_filtered:hypothetical"),
    "conditional": ({"epistemic_type": "conditional", "metadata": IF}, "condition_filtered:unknown"),
    "unverified": ({"epistemic_type": "unverified", "confidence": 0.3}, "unverified_below_threshold:0.30<=0.30"),
}
RETIRED = {"superseded", "archived", "deprecated"}


@pytest.fixture
def mixed(memory):
    for name, (given, _) in DROPPED.items():
        memory.store_node(f"cat {name}", owner=OWNER, node_type="fact", **given)
    memory.store_node("cat plain", owner=OWNER, node_type="fact", lifecycle_state="stable")
    memory.store_node("cat trusted", owner=OWNER, node_type="fact", epistemic_type="unverified", confidence=0.31)
    return memory


def names(candidates):
    return {candidate.content.removeprefix("cat ") for candidate in candidates}


def test_default_drops_with_a_reason_what_should_not_be_believed(mixed):
    answer = mixed.retrieve("cat", owner=OWNER)
    assert names(answer.results) == {"plain", "trusted"}
    reasons = {
        mixed.get(item.node_id, owner=OWNER).content.removeprefix("cat "): item.reason for item in answer.excluded
    }
    assert reasons == {name: reason for name, (_, reason) in DROPPED.items() if name not in RETIRED}
    assert all(candidate.default_exclusion is None for candidate in answer.results)


def test_explicit_keeps_everything_active(mixed):
    answer = mixed.retrieve("cat", owner=OWNER, retrieval_mode="explicit")
    assert names(answer.results) == {"plain", "trusted", *DROPPED} - RETIRED
    assert len(answer.excluded) == 0


def test_audit_shows_retired_memories_too_and_says_why_default_would_not(mixed):
    answer = mixed.retrieve("cat", owner=OWNER, retrieval_mode="audit")
    assert {candidate.content.removeprefix("cat "): candidate.default_exclusion for candidate in answer.results} == {
        "plain": None,
        "trusted": None,
        **{name: reason for name, (_, reason) in DROPPED.items()},
    }


def test_type_filters_hold_in_every_mode(memory):
    memory.store("cat note", owner=OWNER)
    memory.store("cat tool", owner=OWNER, role="tool", node_type="fact")
    memory.store_node("cat pin", owner=OWNER, node_type="task", pinned=True)
    for mode in ("default", "explicit", "audit"):
        answer = memory.retrieve("cat", owner=OWNER, retrieval_mode=mode, exclude_node_types=["note", "task"])
        assert names(answer.results) == {"tool"}
        assert answer.metadata.exclusion_counts == {"node_type_filtered:note": 1, "node_type_filtered:task": 1}
        answer = memory.retrieve("cat", owner=OWNER, retrieval_mode=mode, source_types={"tool_output"})
        assert names(answer.results) == {"tool"}
        assert answer.metadata.exclusion_counts == {"source_type_filtered:user_stated": 2}
        assert len(memory.retrieve("cat", owner=OWNER, retrieval_mode=mode, source_types=[]).results) == 0


def test_pins_tasks_and_intents_come_up_unasked_and_go_first(memory):
    memory.store_many([f"cat number {number}" for number in range(10)], owner=OWNER)
    first = {
        memory.store_node("Use metric units.", owner=OWNER, node_type="instruction", pinned=True).node_id,
        memory.store_node("Renew the passport.", owner=OWNER, node_type="task").node_id,
        memory.store_node("Learn to sail.", owner=OWNER, node_type="intent").node_id,
        memory.store_node("Dana is vegan.", owner=OWNER, node_type="fact", salience=1.0).node_id,
    }
    done = memory.store_node("An old task.", owner=OWNER, node_type="task", lifecycle_state="archived").node_id
    answer = memory.retrieve("cat", owner=OWNER)
    assert first <= set(answer.results.ids)
    assert done not in answer.results.ids
    assert all("PINNED" in answer.results.find(node_id).paths for node_id in first)
    tight = memory.retrieve("cat", owner=OWNER, token_budget=answer.bundle.tokens_used + 40)
    assert tight.bundle.included_count < answer.bundle.included_count
    assert all(tight.results.find(node_id).in_context for node_id in first)
    assert not tight.bundle.budget_overflow


def test_a_pin_that_does_not_fit_is_reported(memory):
    pin = memory.store_node("word " * 500, owner=OWNER, node_type="fact", pinned=True)
    memory.store("a small cat", owner=OWNER)
    bundle = memory.retrieve("cat", owner=OWNER, token_budget=300).bundle
    assert (bundle.budget_overflow, bundle.budget_overflow_ids) == (True, [pin.node_id])
    assert bundle.excluded == {pin.node_id: "budget"}
    assert bundle.included_count == 1


def test_pins_yield_to_the_callers_floor_and_limit(memory):
    memory.store("a cat", owner=OWNER)
    memory.store_node("Dana is vegan.", owner=OWNER, node_type="fact", pinned=True)
    assert names(memory.retrieve("a cat", owner=OWNER, min_score=0.9).results) == {"a cat"}
    assert len(memory.retrieve("a cat", owner=OWNER, limit=1).results) == 1


def test_contested_memories_name_their_counterpart_which_is_not_pulled_in(memory):
    def contested(text):
        return memory.store_node(text, owner=OWNER, node_type="fact", lifecycle_state="contested").node_id

    one, other = contested("the cat is black"), contested("zebra")
    memory.store_edge(one, other, "contradicts", owner=OWNER)
    answer = memory.retrieve("the cat is black", owner=OWNER, min_score=0.9)
    assert answer.results.ids == [one]
    assert (answer.results[0].conflict_flag, answer.results[0].contradicts_id) == (True, other)
    assert [(pair.node_id, pair.contradicts_id) for pair in answer.bundle.conflicts] == [(one, other)]
    both = memory.retrieve("cat", owner=OWNER)
    assert {(pair.node_id, pair.contradicts_id) for pair in both.bundle.conflicts} == {(one, other), (other, one)}


def test_a_count_question_says_what_it_does_not_cover(memory):
    memory.store_many([f"I saw cat number {number}" for number in range(40)], owner=OWNER)
    answer = memory.retrieve("How many cats did I see?", owner=OWNER)
    coverage = answer.metadata.aggregation_coverage
    assert (coverage.status, coverage.exhaustive, coverage.candidate_count) == ("semantic_candidates", False, 40)
    assert coverage.limitations == ["semantic_matching"]
    assert answer.bundle.context.startswith(answer.bundle.coverage_notice)
    squeezed = memory.retrieve(
        "How many cats did I see?", owner=OWNER, token_budget=400, limit=30
    ).metadata.aggregation_coverage
    assert squeezed.status == "context_limited"
    assert squeezed.limitations == ["semantic_matching", "result_limit", "token_budget"]
    assert squeezed.context_count < squeezed.selected_count == 30
    assert memory.retrieve("Which cat?", owner=OWNER).metadata.aggregation_coverage is None


def test_weights_of_a_request_choose_the_weighted_formula(memory):
    memory.store("a cat", owner=OWNER)

    def ask(weights=None, **given):
        # Recency is part of the weighted score, so every question is asked at one time.
        return memory.retrieve("cat", owner=OWNER, reference_time=START, weights=weights, **given)

    weighted, fused = ask({"fusion": "weighted"}), ask()
    assert [answer.results[0].lineage.formula_version for answer in (weighted, fused)] == [1, 2]
    assert weighted.results[0].semantic_relevance is None
    assert weighted.metadata.scoring_config_version != fused.metadata.scoring_config_version
    score = weighted.results[0].score
    assert len(ask({"fusion": "weighted"}, min_score=score).results) == 1
    assert ask({"fusion": "weighted"}, min_score=score + 1e-9).metadata.exclusion_counts == {"below_threshold": 1}


def test_multipliers_belong_to_the_weighted_formula(memory):
    memory.store("a cat", owner=OWNER, confidence=0.9)
    weighted = {"fusion": "weighted", "relevance_floor": 0}
    plain = memory.retrieve("cat", owner=OWNER, weights=weighted).results[0].score
    less = (
        memory.retrieve("cat", owner=OWNER, weights=weighted, ranking_multipliers={"confidence": 0.25}).results[0].score
    )
    assert less < plain
    with pytest.raises(InvalidRequest, match="rank fusion"):
        memory.retrieve("cat", owner=OWNER, ranking_multipliers={"confidence": 0.25})
    assert len(memory.retrieve("cat", owner=OWNER, ranking_multipliers={"confidence": 1}).results) == 1
