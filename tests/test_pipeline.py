"""The flow over backends that fail, and the check of its declaration."""

import pytest

from prme_ray.pipeline import FLOW, Each, Step, check_flow
from tests.conformance.check_pipeline import answer
from tests.stages.pool import uid

HERE, THERE = uid(1), uid(2)


def given(vector_failure=None, **args):
    """Return a request of one memory inside the scope and one outside; both channels find both."""
    hits = [(HERE, "personal"), (THERE, "project")]
    return {
        "query": "cat",
        "user_id": "dana",
        "reference_time": "2026-05-04T10:00:00Z",
        "intent_order": "entity_first",
        "nodes": [{"id": name, "content": f"cat {scope}", "scope": scope} for name, scope in hits],
        "edges": [],
        "vector": [{"node_id": name, "similarity": 0.5, "scope": scope} for name, scope in hits],
        "vector_failure": vector_failure,
        "lexical": {"cat": [{"node_id": name, "bm25": 2.0, "scope": scope} for name, scope in hits]},
        "weights": {},
        "packing": {},
        "args": {"mode": "default", **args},
    }


@pytest.mark.parametrize(
    ("failure", "paths"),
    [(None, ["VECTOR", "LEXICAL"]), ("backend_error", ["LEXICAL"]), ("embedding_mismatch", ["LEXICAL"])],
)
def test_a_failed_vector_search_fails_neither_results_nor_hints(failure, paths):
    found, _ = answer(given(failure, scope="personal"))
    assert found.metadata.backend_failures == ({} if failure is None else {"VECTOR": failure})
    assert [(item.node_id, item.paths) for item in found.results] == [(HERE, paths)]
    assert [(item.node_id, item.paths) for item in found.cross_scope_hints] == [(THERE, paths)]


def test_states_are_reported_before_types():
    case = given(exclude_node_types=["event"])
    case["nodes"][0]["node_type"] = "event"
    case["nodes"][1]["epistemic_type"] = "hypothetical"
    assert [(item.node_id, item.reason) for item in answer(case)[0].excluded] == [
        (THERE, "epistemic_filtered:hypothetical"),
        (HERE, "node_type_filtered:event"),
    ]


def test_a_step_needs_what_an_earlier_step_makes_and_a_name_of_its_own():
    with pytest.raises(ValueError, match="'packed' needs 'tea'"):
        check_flow((Step("packed", dict, ("tea",)),))
    with pytest.raises(ValueError, match="two steps are named 'analysis'"):
        check_flow((*FLOW, FLOW[0]))


ITEM = Step("double", dict, ("item",))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": "tea"}, "'all' needs 'tea'"),
        ({"item": "request"}, "item of 'all' is named 'request'"),
        ({"steps": (Step("double", dict, ("cup",)),)}, "'double' needs 'cup'"),
        ({"steps": (ITEM, ITEM)}, "two steps are named 'double'"),
        ({"result": "triple"}, "result of 'all' is 'triple'"),
        ({"name": "request"}, "two steps are named 'request'"),
    ],
)
def test_a_flow_for_every_item_is_checked_too(changes, message):
    each = {"name": "all", "items": "request", "item": "item", "steps": (ITEM,), "result": "double"}
    check_flow((Each(**each),))
    with pytest.raises(ValueError, match=message):
        check_flow((Each(**each | changes),))


def test_what_the_flow_of_an_item_makes_is_its_own():
    each = Each("all", items="request", item="item", steps=(ITEM,), result="double")
    with pytest.raises(ValueError, match="'after' needs 'double'"):
        check_flow((each, Step("after", dict, ("double",))))
