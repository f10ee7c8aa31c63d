"""Claims lead to the memories they were drawn from: only to those that the request may see."""

import pytest

from tests.memory.tools import OWNER

CLAIM, SOURCE = "Anna gardens", "a long talk about roses, soil and the weather in Leeds"
OPTIONS = ["evidence_projection_top_k", "evidence_augmentation_top_k"]


@pytest.fixture(params=OPTIONS)
def store(request, opened):
    """Store a claim and its source, which no channel finds by itself."""
    narrow = {"vector_k": 1, "lexical_k": 1, "session_context_window": 0}
    memory = opened(settings={"packing": {request.param: 3} | narrow, "link_entities": False})

    def store_both(**source):
        given = {"node_type": "note"} | source
        node_id = memory.store_node(SOURCE, owner=given.pop("owner", OWNER), **given).node_id
        memory.store_node(CLAIM, owner=OWNER, node_type="fact", evidence_refs=[node_id])
        return memory

    return store_both


def found(answer):
    return {candidate.content for candidate in answer.results}


def test_a_claim_brings_its_source(store, request):
    answer = store().retrieve("Anna gardens", owner=OWNER)
    replaced = "projection" in request.node.callspec.params["store"]
    assert found(answer) == ({SOURCE} if replaced else {CLAIM, SOURCE})
    assert answer.results.table.num_rows
    assert [c.paths for c in answer.results if c.content == SOURCE] == [["EVIDENCE_CONTEXT"]]


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ({"lifecycle_state": "archived"}, {}),
        ({"lifecycle_state": "superseded"}, {"retrieval_mode": "explicit"}),
        ({"scope": "project"}, {}),
        ({"scope": "project"}, {"scope": "personal"}),
        ({"epistemic_type": "hypothetical"}, {}),
        ({"event_time": "2020-01-01T00:00:00Z"}, {"event_time_from": "2021-01-01T00:00:00Z"}),
        ({"node_type": "summary"}, {"exclude_node_types": ["summary"]}),
        ({"owner": "somebody else"}, {}),
    ],
)
def test_no_claim_brings_what_the_request_may_not_see(store, source, asked):
    answer = store(**source).retrieve("Anna gardens", owner=OWNER, include_cross_scope=False, **asked)
    assert found(answer) == {CLAIM}
