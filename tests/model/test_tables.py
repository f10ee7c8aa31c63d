"""Arrow tables and their NumPy views."""

import numpy as np
import pyarrow as pa
import pytest

from prme_ray.model.enums import Path
from prme_ray.model.tables import (
    CANDIDATE,
    CHANNEL,
    EXCLUSION,
    LINEAGE,
    NODE,
    SCORED,
    bools,
    channel,
    codes,
    exclusions,
    floats,
    ints,
    joined_references,
    no_exclusions,
    records,
    refer,
    replace,
    same_target,
    take,
    texts,
    times,
)
from prme_ray.model.times import NO_TIME
from tests.conformance.tables import nodes_table

MIXED = pa.schema(
    [
        pa.field("f", pa.float64()),
        pa.field("i", pa.int32()),
        pa.field("c", pa.int8(), nullable=False),
        pa.field("b", pa.bool_(), nullable=False),
        pa.field("t", pa.timestamp("us", tz="UTC")),
        pa.field("s", pa.string()),
    ]
)
ROWS = {
    "f": [1.5, None],
    "i": [7, None],
    "c": [1, 2],
    "b": [True, False],
    "t": [86_400_000_000, None],
    "s": ["é", None],
}


def mixed(chunks):
    table = pa.table(ROWS, schema=MIXED)
    return {
        "no rows": table.slice(0, 0),
        "no chunks": MIXED.empty_table(),
        "one chunk": table,
        "two chunks": pa.concat_tables([table, table]),
    }[chunks]


@pytest.mark.parametrize(
    ("chunks", "times_over"), [("no rows", 0), ("no chunks", 0), ("one chunk", 1), ("two chunks", 2)]
)
def test_views_agree_however_the_column_is_chunked(chunks, times_over):
    table = mixed(chunks)
    np.testing.assert_array_equal(floats(table, "f"), [1.5, np.nan] * times_over)
    assert floats(table, "f", null=-1.0).tolist() == [1.5, -1.0] * times_over
    assert ints(table, "i", null=-1).tolist() == [7, -1] * times_over
    assert codes(table, "c").tolist() == [1, 2] * times_over
    assert bools(table, "b").tolist() == [True, False] * times_over
    assert times(table, "t").tolist() == [86_400_000_000, NO_TIME] * times_over
    assert texts(table, "s") == ["é", None] * times_over


def test_views_have_the_promised_types():
    table = mixed("one chunk")
    found = [view.dtype for view in (floats(table, "f"), ints(table, "i"), codes(table, "c"), times(table, "t"))]
    assert found == [np.float64, np.int64, np.int8, np.int64]
    assert bools(table, "b").dtype == np.bool_


def test_codes_index_a_table_of_weights():
    assert np.array([0.0, 0.5, 1.0])[codes(mixed("one chunk"), "c")].tolist() == [0.5, 1.0]


def test_a_view_of_a_slice_is_the_slice():
    assert floats(mixed("one chunk").slice(1), "f", null=0.0).tolist() == [0.0]
    assert bools(mixed("two chunks").slice(1, 2), "b").tolist() == [False, True]


def test_schemas_extend_each_other():
    assert CANDIDATE.field("node").type.value_type == pa.struct(list(NODE))
    assert [field.name for field in SCORED][: len(CANDIDATE)] == CANDIDATE.names
    assert SCORED.field("lineage").type.value_type == pa.struct(list(LINEAGE))
    for schema in (CHANNEL, NODE, CANDIDATE, SCORED, EXCLUSION):
        assert len(set(schema.names)) == len(schema.names)
    # A name says which table it is read from.
    assert not {*NODE.names} & {*LINEAGE.names} and not {*SCORED.names} & {*NODE.names, *LINEAGE.names}


def test_columns_are_read_through_references_in_every_type():
    nodes = nodes_table([{"id": str(n), "content": f"text {n}", "confidence": n / 10} for n in range(4)])
    table = pa.table({"node": refer(nodes, np.array([3, 1, 3]))})
    assert texts(table, "content") == ["text 3", "text 1", "text 3"]
    assert floats(table, "confidence").tolist() == [0.3, 0.1, 0.3]
    assert times(table, "event_time").tolist() == [NO_TIME] * 3
    assert [row["node_id"] for row in records(table)] == ["3", "1", "3"]
    with pytest.raises(KeyError, match="no column 'trace_path'"):
        floats(table, "trace_path")


def test_joined_references_copy_their_targets_only_where_they_differ():
    nodes, others = nodes_table([{"id": "a"}, {"id": "b"}]), nodes_table([{"id": "c"}])
    one, two, three = refer(nodes, np.array([1])), refer(nodes, np.array([0, 1])), refer(others, np.array([0]))
    shared = joined_references(one, two)
    assert (len(shared.dictionary), shared.indices.to_pylist()) == (2, [1, 0, 1])
    mixed = pa.table({"node": joined_references(shared, three)})
    assert texts(mixed, "node_id") == ["b", "a", "b", "c"]
    assert joined_references(one, three.slice(0, 0)) is one
    after_nothing = pa.table({"node": joined_references(one.slice(0, 0), three)})
    assert texts(after_nothing, "node_id") == ["c"]


def test_slices_of_one_table_are_different_targets():
    nodes = nodes_table([{"id": name} for name in "abcd"])
    first, last = refer(nodes.slice(0, 2), np.array([1, 0])), refer(nodes.slice(2, 2), np.array([0, 1]))
    joined = pa.table({"node": joined_references(first, last)})
    assert texts(joined, "node_id") == ["b", "a", "c", "d"]
    assert not same_target(first.dictionary, last.dictionary)
    whole = refer(nodes, np.array([0])).dictionary
    assert not same_target(whole.slice(0, 2), whole.slice(2, 2))
    assert same_target(whole.slice(2, 2), last.dictionary)
    assert same_target(whole, refer(nodes, np.array([3])).dictionary)


def test_equal_targets_of_different_memory_are_not_the_same():
    one, two = ([{"id": "a"}, {"id": "b"}] for _ in range(2))
    assert not same_target(refer(nodes_table(one), np.array([0])).dictionary, nodes_table(two).column(0).chunk(0))
    ids = nodes_table(one).column("node_id").chunk(0)
    assert same_target(channel(pa.DictionaryArray.from_arrays([1], ids), [0.5]).column(0).chunk(0).dictionary, ids)


@pytest.mark.parametrize("rows", [[], [2, 0, 2]])
def test_references_do_not_depend_on_how_the_table_is_chunked(rows):
    nodes = pa.concat_tables([nodes_table([{"id": name}]) for name in "abc"])
    assert texts(pa.table({"node": refer(nodes, np.array(rows, np.int64))}), "node_id") == ["abc"[row] for row in rows]


def test_references_to_an_empty_table_are_none():
    assert len(refer(NODE.empty_table(), np.array([], np.int64))) == 0


def test_the_mask_of_all_paths_fits_its_column():
    assert CANDIDATE.field("paths").type == pa.int16()
    assert sum(path.bit for path in Path) <= np.iinfo(np.int16).max


def test_channel_and_exclusions_have_their_schemas():
    found = channel(["a", "b"], np.array([0.5, 0.25]))
    assert (found.schema, found.to_pydict()) == (CHANNEL, {"node_id": ["a", "b"], "signal": [0.5, 0.25]})
    left = exclusions(["a"], ["below_min_score"], composite=[0.1])
    assert left.schema == EXCLUSION
    assert left.to_pylist() == [
        {"node_id": "a", "reason": "below_min_score", "composite_score": 0.1, "semantic_relevance": None}
    ]
    assert no_exclusions().schema == EXCLUSION
    assert exclusions([], []).num_rows == no_exclusions().num_rows == 0


def test_take_gives_the_rows_in_order_and_copies_only_when_it_must():
    table = channel(["a", "b", "c"], [3.0, 2.0, 1.0])
    assert take(table, np.array([2, 0])).column("node_id").to_pylist() == ["c", "a"]
    assert take(table, np.array([0, 1])).num_rows == 2
    assert take(table, np.arange(3)) is table
    assert take(table, np.array([], dtype=np.int64)).schema == CHANNEL


def test_replace_keeps_schema_and_the_original():
    table = channel(["a", "b"], [3.0, 2.0])
    changed = replace(table, signal=np.array([1, 0]))
    assert changed.schema == CHANNEL
    assert (floats(changed, "signal").tolist(), floats(table, "signal").tolist()) == ([1.0, 0.0], [3.0, 2.0])


def test_replace_of_an_unknown_column_is_an_error():
    with pytest.raises(KeyError, match="no column 'signals'"):
        replace(channel(["a"], [1.0]), signals=[2.0])
