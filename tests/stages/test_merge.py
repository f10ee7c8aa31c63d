"""Merging the channels; the numbers are those of digest a section 12, cases 9 to 11 and 53."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.enums import Path, path_names
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.tables import CANDIDATE, channel, column, records, replace
from stages.merge import append_lexical, append_new, merge, merge_max_signals, merge_term_sets, normalise_bm25
from tests.stages.pool import by_number, nodes, numbers, uid

SIGNALS = ("semantic_score", "lexical_score", "graph_proximity")


def hits(*pairs):
    return channel([uid(n) for n, _ in pairs], [float(signal) for _, signal in pairs])


def merged(graph=(), vector=(), lexical=(), pinned=(), known=range(1, 9)):
    pins = [(n, 1.0) for n in pinned]
    return merge(hits(*graph), hits(*vector), hits(*lexical), hits(*pins), nodes=nodes(*known))


def test_bm25_is_scaled_to_its_own_result_set():
    assert normalise_bm25(np.array([4.0, 2.0, 3.0])).tolist() == [1.0, 0.0, 0.5]


@pytest.mark.parametrize("scores", [[4.0], [0.0], [2.5, 2.5, 2.5]])
def test_equal_scores_are_all_the_best(scores):
    assert normalise_bm25(np.array(scores)).tolist() == [1.0] * len(scores)


def test_no_hits_normalise_to_none():
    assert normalise_bm25(np.empty(0)).tolist() == []


def test_one_row_a_memory_with_joined_paths_and_the_largest_signals():
    table = merged(
        graph=[(1, 0.7), (1, 1.0)], vector=[(1, -0.3), (9, 0.9)], lexical=[(2, 0.0)], pinned=[1, 3], known=(3, 2, 1)
    )
    assert table.schema == CANDIDATE
    assert numbers(table) == [1, 2, 3]
    rows = by_number(table)
    assert [path_names(row["paths"]) for row in rows.values()] == [
        ("GRAPH", "VECTOR", "PINNED"),
        ("LEXICAL",),
        ("PINNED",),
    ]
    assert [row["path_count"] for row in rows.values()] == [3, 1, 1]
    assert [rows[1][name] for name in SIGNALS] == [0.0, 0.0, 1.0]
    assert [rows[2][name] for name in SIGNALS] == [0.0, 1.0, 0.0]


def test_a_hit_that_does_not_resolve_still_sets_the_lexical_scale():
    rows = by_number(merged(lexical=[(9, 5.0), (1, 4.0), (2, 3.0)], known=(1, 2)))
    assert [rows[n]["lexical_score"] for n in (1, 2)] == [0.5, 0.0]


def test_nothing_found_is_an_empty_candidate_table():
    assert merged().schema == CANDIDATE
    assert merged().num_rows == 0
    assert merged(vector=[(9, 0.5)], known=()).num_rows == 0


@given(st.lists(st.tuples(st.integers(1, 12), st.floats(-1, 1)), max_size=30), st.permutations(range(1, 10)))
def test_every_resolvable_id_stands_once_with_its_maximum_from_zero(vector, known):
    table = merged(vector=vector, known=known)
    expected = {}
    for n, cosine in vector:
        if n in known:
            expected[n] = max(expected.get(n, 0.0), cosine)
    assert {n: row["semantic_score"] for n, row in by_number(table).items()} == expected
    assert numbers(table) == list(expected)


def test_term_sets_are_scaled_apart_and_the_first_of_equal_values_wins():
    known = nodes(1, 2, 3)
    where, kept, values = merge_term_sets(
        [hits((1, 9), (2, 3)), hits((2, 1), (3, 1))], node_ids=column(known, "node_id")
    )
    assert (where.tolist(), kept.tolist(), values.tolist()) == ([0, 1, 2], [0, 2, 3], [1.0, 1.0, 1.0])
    _, first_of_equals, _ = merge_term_sets([hits((1, 7)), hits((1, 8))], node_ids=column(known, "node_id"))
    assert first_of_equals.tolist() == [0]
    unknown, _, _ = merge_term_sets([hits((99, 1))], node_ids=column(known, "node_id"))
    assert unknown.tolist() == [-1]
    assert [len(part) for part in merge_term_sets([], node_ids=column(known, "node_id"))] == [0, 0, 0]


def test_a_scan_appends_what_is_new_and_leaves_the_rest_alone():
    first = merged(vector=[(1, 0.5)])
    table, added = append_lexical(first, [hits((1, 3), (2, 2), (99, 1)), hits((3, 1))], nodes=nodes(1, 2, 3))
    assert (numbers(table), added) == ([1, 2, 3], 2)
    assert records(table.slice(0, 1)) == records(first)
    rows = by_number(table)
    assert [(rows[n]["lexical_score"], rows[n]["paths"], rows[n]["path_count"]) for n in (2, 3)] == [
        (0.5, Path.LEXICAL.bit, 1),
        (1.0, Path.LEXICAL.bit, 1),
    ]


@pytest.mark.parametrize("term_sets", [[], [hits()], [hits((1, 3))], [hits((99, 3))]])
def test_a_scan_without_news_returns_the_same_table(term_sets):
    first = merged(vector=[(1, 0.5)])
    table, added = append_lexical(first, term_sets, nodes=nodes(1))
    assert table is first
    assert added == 0


def test_alternate_passes_unite_paths_and_take_the_largest_signals():
    first = merged(vector=[(1, 0.5)])
    table = merge_max_signals(first, [merged(vector=[(1, 0.4), (2, 0.3)], lexical=[(1, 2.0)])])
    rows = by_number(table)
    assert numbers(table) == [1, 2]
    assert path_names(rows[1]["paths"]) == ("VECTOR", "LEXICAL")
    assert [rows[1][name] for name in ("path_count", *SIGNALS)] == [2, 0.5, 1.0, 0.0]
    assert merge_max_signals(first, []) is first


def test_alternate_passes_of_two_snapshots_are_refused():
    first = merged(vector=[(1, 0.5), (2, 0.5)])
    other = merged(vector=[(1, 0.5), (2, 0.5)], known=(1, {"n": 2, "content": "edited"}))
    with pytest.raises(InvalidRequest, match=uid(2)):
        merge_max_signals(first, [other])


def test_a_signal_that_is_no_number_is_refused():
    first = merged(vector=[(1, 0.5)])
    with pytest.raises(InvalidRequest, match="semantic_score=nan"):
        merge_max_signals(first, [replace(first, semantic_score=[float("nan")])])


def test_new_only_keeps_the_first_record_of_each():
    first = merged(vector=[(1, 0.5)])
    table = append_new(first, [merged(vector=[(2, 0.4), (1, 0.9)]), merged(vector=[(3, 0.1), (2, 0.8)])])
    assert {n: row["semantic_score"] for n, row in by_number(table).items()} == {1: 0.5, 2: 0.4, 3: 0.1}
    assert numbers(table) == [1, 2, 3]
    assert append_new(first, [first]) is first
