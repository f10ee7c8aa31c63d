"""Shared column helpers."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prme_ray.model.tables import refer
from stages.columns import by_score, first_seen, places, positions
from tests.stages.pool import nodes, uid

KNOWN = nodes(*range(6))
IDS = KNOWN.column("node_id").chunk(0)
OTHER = nodes(5, 3, 9, 1)
"""Another table: memory 9 is unknown to the first, and the others stand in other rows."""


def to(table, *rows):
    """Return references to memories by row."""
    return refer(table, np.array(rows, np.int64))


def shared(*rows):
    """Return ids as references into the known ids."""
    return pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), IDS)


def spelt(*numbers):
    """Return ids as references to strings of their own."""
    return pa.array([uid(n) for n in numbers], pa.string()).dictionary_encode()


def test_equal_scores_stand_by_id():
    assert by_score(np.array([0.5, 0.9, 0.5, 0.9]), np.array([2, 4, 1, 3])).tolist() == [3, 1, 2, 0]


def test_positions_are_first_places_or_minus_one():
    assert positions(pa.array(["c", "x", "a"]), pa.array(["a", "b", "c", "c"])).tolist() == [2, -1, 0]
    assert positions(pa.array([], pa.string()), pa.array(["a"])).tolist() == []


def test_places_are_first_places_or_minus_one():
    # Memory 3 stands twice in the list: its first place counts.
    assert places(to(KNOWN, 3, 0, 1), to(KNOWN, 1, 3, 2, 3)).tolist() == [1, -1, 0]


def test_places_in_another_table_are_found_by_id():
    assert places(to(OTHER, 1, 3, 2, 0), to(KNOWN, 1, 3, 2, 3)).tolist() == [1, 0, -1, -1]


@pytest.mark.parametrize("table", [KNOWN, OTHER])
def test_places_of_nothing_and_in_nothing(table):
    assert places(to(table), to(KNOWN, 1)).tolist() == []
    assert places(to(table, 0, 0), to(KNOWN)).tolist() == [-1, -1]


def test_places_in_slices_of_one_table_are_not_confused():
    front, back = KNOWN.slice(0, 3), KNOWN.slice(3, 3)
    assert places(to(front, 0, 1, 2), to(back, 0, 1, 2)).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("column", [shared, spelt])
def test_ids_are_numbered_as_they_are_first_seen(column):
    numbers, rows = first_seen([column(4, 2, 4), column(), column(0, 2, 5)], IDS)
    assert numbers.tolist() == [0, 1, 0, 2, 1, 3]
    assert rows.tolist() == [4, 2, 0, 5]


def test_one_column_of_other_strings_makes_all_go_by_id():
    numbers, rows = first_seen([shared(4, 2), spelt(9, 2, 4, 9)], IDS)
    assert numbers.tolist() == [0, 1, 2, 1, 0, 2]
    assert rows.tolist() == [4, 2, -1]


@pytest.mark.parametrize("columns", [[], [shared()], [spelt(), shared()]])
def test_no_ids_have_no_numbers(columns):
    assert [part.tolist() for part in first_seen(columns, IDS)] == [[], []]


def test_ids_among_no_memories_are_all_unknown():
    assert [part.tolist() for part in first_seen([spelt(1, 1)], IDS.slice(0, 0))] == [[0, 0], [-1]]


ROWS = st.lists(st.integers(0, 5), max_size=8)


@settings(max_examples=25)
@given(st.lists(ROWS, max_size=4), ROWS)
def test_references_and_ids_agree(columns, among):
    by_reference = first_seen([shared(*rows) for rows in columns], IDS)
    by_id = first_seen([spelt(*rows) for rows in columns], IDS)
    assert [part.tolist() for part in by_reference] == [part.tolist() for part in by_id]
    order = list(dict.fromkeys(row for rows in columns for row in rows))
    assert by_reference[1].tolist() == order
    for rows in columns:
        expected = [among.index(row) if row in among else -1 for row in rows]
        copied = KNOWN.take(pa.array(range(6)))
        assert places(to(KNOWN, *rows), to(KNOWN, *among)).tolist() == expected
        assert places(to(copied, *rows), to(KNOWN, *among)).tolist() == expected
