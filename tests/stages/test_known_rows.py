"""Facts about referred memories, kept by the array they stand in."""

import numpy as np
import pyarrow as pa

from prme_ray.model.tables import refer
from stages.known_rows import KnownRows, packed_ids
from tests.stages.pool import nodes, uid


def table(memories, rows):
    return pa.table({"node": refer(memories, np.array(rows))})


def test_facts_are_worked_out_once_for_one_array():
    known, memories = KnownRows(), nodes(3, 1, 2)
    facts, rows = known.of(table(memories, [2, 0]))
    assert (rows.tolist(), [facts.ids[row] for row in rows]) == ([2, 0], [uid(2), uid(3)])
    again, _ = known.of(table(memories, [1]))
    assert again is facts
    assert facts.ranks.tolist() == [3, 1, 2]
    assert facts.packed_ids[rows].tobytes() == packed_ids([uid(2), uid(3)])


def test_other_memories_have_other_facts_even_where_their_ids_are_equal():
    known = KnownRows()
    first, _ = known.of(table(nodes(1), [0]))
    second, _ = known.of(table(nodes(1), [0]))
    assert first is not second


def test_equal_ids_share_a_rank():
    facts, _ = KnownRows().of(table(nodes(2, 1, 2), [0]))
    assert facts.ranks.tolist() == [2, 1, 2]


def test_sources_are_shared_when_two_rows_name_one_or_one_row_names_two():
    def shared(*memories):
        return KnownRows().of(table(nodes(*memories), [0]))[0].sources_shared

    assert not shared({"n": 1, "evidence": [7]}, {"n": 2, "evidence": [8]}, 3)
    assert shared({"n": 1, "evidence": [7]}, {"n": 2, "evidence": [7]})
    assert shared({"n": 1, "evidence": [7, 8]}, 2)


def test_the_least_recently_used_facts_are_dropped():
    known = KnownRows(entries=2)
    one, two, three = (table(nodes(n), [0]) for n in (1, 2, 3))
    first, _ = known.of(one)
    known.of(two)
    known.of(one)
    known.of(three)
    assert known.of(one)[0] is first
    assert known.of(two)[0].lines == {}


def test_no_memories():
    facts, rows = KnownRows().of(table(nodes(), []))
    assert (facts.ids, rows.tolist(), facts.sources_shared) == ([], [], False)
