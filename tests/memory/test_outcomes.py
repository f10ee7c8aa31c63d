"""The four ways an answer can be empty are told apart, and what was left out is counted by reason."""

from tests.memory.tools import OWNER


def test_unknown_owner(memory):
    answer = memory.retrieve("cat", owner="nobody")
    assert (answer.metadata.outcome, len(answer.results), answer.bundle.context) == ("unknown_owner", 0, "")


def test_a_question_about_an_unknown_owner_is_on_record_and_makes_them_no_more_known(memory, opened):
    asked = [memory.retrieve("cat", owner="nobody") for _ in range(2)]
    memory.close()
    memory = opened()
    asked.append(memory.retrieve("cat", owner="nobody"))
    assert {(answer.metadata.outcome, answer.metadata.receipt_persisted) for answer in asked} == {
        ("unknown_owner", True)
    }
    memory.store("a cat", owner="nobody")
    assert memory.retrieve("cat", owner="nobody").metadata.outcome == "results"
    memory.close()
    memory = opened()
    listed = [item.request_id for item in memory.list_retrievals(owner="nobody").retrievals]
    assert (listed[:3], len(listed)) == ([answer.metadata.request_id for answer in asked], 4)
    records = [memory.get_retrieval(name, owner="nobody").record for name in listed[:3]]
    assert [(record["candidates_after_filter"], record["scores"]) for record in records] == [(0, {})] * 3


def test_empty_owner(memory):
    retired = memory.store_node("an old cat", owner=OWNER, node_type="fact", lifecycle_state="archived")
    answer = memory.retrieve("cat", owner=OWNER)
    assert (answer.metadata.outcome, answer.metadata.candidates_filtered) == ("empty_owner", 0)
    audit = memory.retrieve("cat", owner=OWNER, retrieval_mode="audit")
    assert (audit.metadata.outcome, audit.results.ids) == ("results", [retired.node_id])


def test_no_candidate(memory):
    memory.store("a cat", owner=OWNER, scope="project")
    answer = memory.retrieve("cat", owner=OWNER, scope="agent")
    assert (answer.metadata.outcome, answer.metadata.candidates_filtered) == ("no_candidate", 0)


def test_all_filtered(memory):
    memory.store("a cat perhaps", owner=OWNER, epistemic_type="hypothetical")
    memory.store("a cat maybe", owner=OWNER, epistemic_type="hypothetical")
    memory.store("a cat", owner=OWNER, epistemic_type="conditional", metadata={"condition": "if we move"})
    answer = memory.retrieve("cat", owner=OWNER)
    assert answer.metadata.outcome == "all_filtered"
    assert answer.metadata.exclusion_counts == {
        "epistemic_filtered:hypothetical": 2,
        "condition_filtered:unknown": 1,
    }
    assert answer.metadata.candidates_filtered == len(answer.excluded) == 3


def test_all_filtered_by_the_callers_own_floor(memory):
    memory.store("a cat", owner=OWNER)
    answer = memory.retrieve("dog", owner=OWNER, min_score=0.99)
    assert answer.metadata.outcome == "all_filtered"
    assert answer.metadata.exclusion_counts == {"below_threshold": 1}
