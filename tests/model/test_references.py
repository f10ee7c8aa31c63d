"""References to memories by row."""

import numpy as np
import pyarrow as pa

from prme_ray.model.references import id_ranks, ids_at, ids_of, joined_parts, parts, picked, ranks_of, referring
from prme_ray.model.tables import codes, floats, present, refer, references, target_of, texts
from tests.stages.pool import nodes, uid

KNOWN = nodes(5, 1, 3)
OTHER = nodes(1, 2)


def test_both_sides_are_kept_with_a_reference() -> None:
    target = target_of(KNOWN)
    reference = refer(target, np.array([2, 0]))
    rows, memories = parts(reference)
    assert (rows.tolist(), memories is target) == ([2, 0], True)
    plain = pa.DictionaryArray.from_arrays(pa.array([2, 0], pa.int32()), target)
    assert parts(plain)[0].tolist() == [2, 0]
    assert parts(plain)[1] is parts(plain)[1]
    assert texts(references(picked(reference, np.array([1, 1]))), "node_id") == [uid(5), uid(5)]


def test_ids_and_their_places_in_order() -> None:
    target = target_of(KNOWN)
    assert ids_of(target) == [uid(5), uid(1), uid(3)]
    assert ids_at(target, np.array([2, 2, 0])) == [uid(3), uid(3), uid(5)]
    assert id_ranks(target).tolist() == [3, 1, 2]
    assert ranks_of(refer(target, np.array([1, 0]))).tolist() == [1, 3]


def test_columns_of_memories_are_read_once_for_all_tables_that_refer_to_them() -> None:
    target = target_of(KNOWN)
    first, second = (references(refer(target, np.array(rows))) for rows in ([0, 1], [2]))
    assert (len(codes(first, "node_type")), len(floats(second, "salience"))) == (2, 1)
    assert present(first, "node_id").tolist() == [True, True]
    assert present(first, "superseded_by").tolist() == [False, False]


def test_parts_of_two_columns_are_joined_by_memory_where_they_differ() -> None:
    mine, theirs = refer(KNOWN, np.array([0])), refer(OTHER, np.array([1, 0]))
    rows, target = joined_parts(mine, theirs, np.array([1]))
    assert texts(references(referring(rows, target)), "node_id") == [uid(5), uid(1)]
    rows, target = joined_parts(mine, theirs, np.array([], np.int64))
    assert (rows.tolist(), target is parts(mine)[1]) == ([0], True)
