"""Scores and order derived again from a receipt alone: equal to the last bit, or refused."""

import math

import pytest

from prme_ray.model.errors import ReceiptRejected
from prme_ray.model.receipts import checked
from stages.replay import replay
from tests.model.receipt_cases import FIRST, SECOND, THIRD, VERSIONS, receipt


def refused(made):
    with pytest.raises(ReceiptRejected) as caught:
        replay(checked(made))
    assert (caught.value.failed_at, caught.value.request_id) == ("validation", made["request_id"])
    return caught.value.detail


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_every_version_with_lineage_replays(version):
    made = receipt(version)
    found = replay(checked(made))
    assert list(found.ranking) == [candidate["node_id"] for candidate in made["candidates"]]
    assert found.scores == {candidate["node_id"]: candidate["score"] for candidate in made["candidates"]}


def test_the_numbers_can_be_checked_by_hand():
    assert replay(checked(receipt(12))).scores == {FIRST: 0.574425, THIRD: 0.574425 * 0.85, SECOND: 0.2}
    first = 0.9 - 0.5 * 1e-11
    assert replay(checked(receipt(22))).scores == {FIRST: first, THIRD: first * 0.6, SECOND: 0.4919354839}


def test_version_1_has_nothing_to_replay():
    assert "no lineage" in refused(receipt(1))


@pytest.mark.parametrize("version", [12, 22])
def test_the_next_number_is_another_score(version):
    made = receipt(version)
    made["candidates"][1]["score"] = math.nextafter(made["candidates"][1]["score"], 0.0)
    assert THIRD in refused(made)
    made = receipt(version)
    for holder in (made["candidates"][0], *(made["score_provenance"][name] for name in (FIRST, THIRD))):
        holder["trace"]["composite_score"] = math.nextafter(holder["trace"]["composite_score"], 0.0)
    assert f"the base score of {FIRST}" in refused(made)


def ranked(version, *rows, policy):
    """Return a receipt of these (id, score, path score, reranker score), in this order."""
    made = receipt(version)
    made["ranking_policy"] = policy
    candidate = made["candidates"][0]
    lineage = made["score_provenance"][FIRST]
    made["candidates"], made["score_provenance"] = [], {}
    for node_id, score, path, reranker in rows:
        trace = candidate["trace"] | {"path_score": path}
        step = {"kind": "neural_rank_assignment", "coefficient": score, "neural_score": None, "source_node_id": node_id}
        made["candidates"].append(
            candidate | {"node_id": node_id, "score": score, "trace": trace, "reranker_score": reranker}
        )
        made["score_provenance"][node_id] = lineage | {"base_node_id": node_id, "trace": trace, "adjustments": [step]}
    return made


ROWS = (
    ("score_id", ((FIRST, 0.5, 0.1, None), (SECOND, 0.5, 0.9, None), (THIRD, 0.4, 0.9, 0.9))),
    ("score_path_id", ((SECOND, 0.5, 0.9, None), (FIRST, 0.5, 0.1, None), (THIRD, 0.4, 0.9, None))),
    ("score_path_id", ((FIRST, 0.5, 0.5, None), (SECOND, 0.5, 0.5, None))),
    ("reranked_prefix", ((THIRD, 0.1, 0.0, 0.2), (SECOND, 0.6, 0.9, None), (FIRST, 0.6, 0.1, None))),
    ("reranked_prefix", ((FIRST, 0.2, 0.1, 0.2), (SECOND, 0.2, 0.9, 0.9), (THIRD, 0.9, 0.0, None))),
)


@pytest.mark.parametrize(("policy", "rows"), ROWS)
def test_each_policy_has_one_order(policy, rows):
    assert replay(checked(ranked(20, *rows, policy=policy))).ranking == tuple(row[0] for row in rows)
    assert policy in refused(ranked(20, *rows[1::-1], *rows[2:], policy=policy))


def test_adjustments_apply_in_their_order():
    made = receipt(13)
    steps = [
        {"kind": "current_update", "coefficient": 1.3, "neural_score": None, "source_node_id": FIRST},
        {"kind": "neural_blend", "coefficient": 0.3, "neural_score": 0.9, "source_node_id": FIRST},
    ]
    made["score_provenance"][FIRST]["adjustments"] = steps
    made["candidates"][0] |= {"score": (1.0 - 0.3) * 0.9 + 0.3 * (0.574425 * 1.3), "reranker_score": 0.9}
    assert replay(checked(made)).scores[FIRST] == made["candidates"][0]["score"]
    steps.reverse()
    assert FIRST in refused(made)
    # An assigned score forgets what was before it.
    steps[:] = [*steps, {"kind": "neural_rank_assignment", "coefficient": 0.9, "neural_score": None}]
    steps[-1]["source_node_id"] = None
    made["candidates"][0]["score"] = 0.9
    assert replay(checked(made)).scores[FIRST] == 0.9


def test_the_temporal_boost_and_the_floor_are_those_of_the_lineage():
    made = receipt(12)
    made["candidates"] = made["candidates"][:1]
    lineage = made["score_provenance"] = {FIRST: made["score_provenance"][FIRST]}
    first = lineage[FIRST]["trace"] = made["candidates"][0]["trace"]
    first |= {"temporal_affinity": 1.0, "composite_score": 0.746925}  # (.4995 + .15) x 1.15
    made["candidates"][0]["score"] = 0.746925
    assert replay(checked(made)).scores == {FIRST: 0.746925}
    lineage[FIRST]["weights"]["temporal_boost"] = 0.0
    assert FIRST in refused(made)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "absurd",
    [
        {"semantic_similarity": 1e308, "lexical_relevance": 1e308, "graph_proximity": 1e308},
        {"semantic_similarity": 1e308, "epistemic_weight": 1e308, "node_type_boost": 0.0},
        {"semantic_similarity": -1e308, "epistemic_weight": 1e308, "node_type_boost": 5e-324},
    ],
)
def test_absurd_numbers_are_refused_and_raise_nothing_else(absurd):
    made = receipt(12)
    made["candidates"][0]["trace"] |= absurd
    made["score_provenance"][FIRST]["trace"] |= absurd
    assert f"the base score of {FIRST}" in refused(made)


def test_no_candidates_replay_to_nothing():
    assert replay(checked(receipt(22) | {"candidates": [], "score_provenance": {}})).ranking == ()
