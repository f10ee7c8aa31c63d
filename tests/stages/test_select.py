"""Floor, caps and limit; the first cases are those of digest a section 12, 36 to 38."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.tables import texts
from stages.select import select, skip_floor, with_relevance
from tests.stages.pool import number, numbers, scored

ASKED = dict.fromkeys(("min_score", "limit", "max_per_source", "max_per_evidence"))
SIX = scored(
    {"n": 1, "score": 0.9, "content": "a", "evidence": [70]},
    {"n": 2, "score": 0.8, "content": "a", "evidence": [70]},
    {"n": 3, "score": 0.7, "content": "b", "evidence": [70]},
    {"n": 4, "score": 0.6, "content": "a"},
    {"n": 5, "score": 0.5, "content": "a"},
    {"n": 6, "score": 0.1, "content": "a"},
)


def cut(table, **asked):
    kept, excluded = select(table, **{**ASKED, **asked})
    return numbers(kept), {number(row["node_id"]): row["reason"] for row in excluded.to_pylist()}


def test_the_first_test_that_fails_names_the_reason():
    assert cut(SIX, min_score=0.5, limit=3, max_per_source=1) == (
        [1, 3, 4],
        {2: "source_limit", 5: "result_limit", 6: "below_threshold"},
    )


def test_evidence_counts_whatever_the_content():
    assert cut(SIX, min_score=0.5, limit=3, max_per_evidence=1) == (
        [1, 4, 5],
        {2: "evidence_limit", 3: "evidence_limit", 6: "below_threshold"},
    )


def test_memories_without_evidence_are_never_capped():
    assert cut(SIX, max_per_source=1, max_per_evidence=1)[0] == [1, 4, 5, 6]


def test_what_was_dropped_uses_up_no_cap():
    table = scored(
        {"n": 1, "score": 0.4, "evidence": [70]}, {"n": 2, "score": 0.9, "evidence": [70]}, {"n": 3, "score": 0.8}
    )
    assert cut(table, min_score=0.5, max_per_evidence=1, limit=1) == ([2], {1: "below_threshold", 3: "result_limit"})


def test_the_floor_measures_relevance_where_there_is_one():
    table = scored({"n": 1, "score": 1.0, "semantic_relevance": 0.4}, {"n": 2, "score": 0.3, "semantic_relevance": 0.5})
    assert cut(table, min_score=0.5) == ([2], {1: "below_threshold"})
    (row,) = select(table, **{**ASKED, "min_score": 0.5})[1].to_pylist()
    assert (row["composite_score"], row["semantic_relevance"]) == (1.0, 0.4)


def test_a_skipped_floor_leaves_limit_and_caps():
    kept, excluded = select(SIX, **{**ASKED, "min_score": 0.95, "limit": 2}, skip_floor=True)
    assert numbers(kept) == [1, 2]
    assert set(texts(excluded, "reason")) == {"result_limit"}


@pytest.mark.parametrize("asked", [{}, {"limit": 6}, {"min_score": 0.0}, {"max_per_source": 9}])
def test_asking_for_nothing_returns_the_same_table(asked):
    assert select(SIX, **{**ASKED, **asked})[0] is SIX


def test_limit_zero_keeps_nothing():
    assert cut(SIX, limit=0)[0] == []


def test_an_empty_list_stays_empty():
    assert cut(scored(), min_score=0.5, limit=3, max_per_source=1) == ([], {})


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2)), max_size=12),
    st.none() | st.floats(0, 1),
    st.none() | st.integers(0, 12),
)
def test_the_vectorised_cut_agrees_with_the_walk(rows, floor, limit):
    rows = sorted(rows, reverse=True)
    table = scored(*({"n": n + 1, "score": score} for n, (score, _) in enumerate(rows)))
    # A cap that nothing can reach sends the same request down the row-by-row path.
    fast = cut(table, min_score=floor, limit=limit)
    assert fast == cut(table, min_score=floor, limit=limit, max_per_evidence=99)


def test_relevance_is_the_best_of_own_inherited_and_context():
    table = scored(
        {"n": 1, "score": 1.0, "cosine": 0.4},
        {"n": 2, "score": 0.9, "cosine": -0.2},
        {"n": 3, "score": 0.8, "cosine": 0.1, "context_relevance": 0.6},
    )
    assert table.column("semantic_relevance").null_count == 3
    assert texts(with_relevance(table), "semantic_relevance") == [0.4, 0.0, 0.6]


@pytest.mark.parametrize(
    ("relevance", "change", "skipped"),
    [
        ([], {}, True),
        ([0.0, 0.0], {}, True),
        ([0.0, 0.2], {}, False),
        ([], {"min_score": 0.0}, False),
        ([], {"min_score": None}, False),
        ([], {"vector_failed": False}, False),
        ([], {"fusion": "weighted"}, False),
    ],
)
def test_the_floor_is_skipped_only_for_want_of_a_measurement(relevance, change, skipped):
    asked = {"fusion": "rrf", "min_score": 0.5, "vector_failed": True, **change}
    assert skip_floor(np.array(relevance), **asked) is skipped
