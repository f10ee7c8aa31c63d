"""Digests of what the text index and the graph were made from: equal for equal owners, however they came."""

from datetime import timedelta

import pytest

from prme_ray.model.enums import EdgeType, LifecycleState, NodeType, Scope
from storage.owner_state import OwnerState
from storage.parts import ALL_PARTS, Part
from storage.records import EntryKind
from storage.tables import EDGE, EdgeTable, NodeTable, node_schema
from tests.storage.log_rows import DIMENSION, event, uuid
from tests.storage.owner_rows import OWNER, at, entity, link, memory, state_of

# The edge 5 waits for its end, and 6 does not.
ROWS = [
    entity(1, "Ada", structural=True),
    memory(2, "blue word"),
    memory(3, " \n"),
    event(4, owner_no=OWNER),
    link(5, 1, 8),
    link(6, 1, 2),
    entity(7, "Éa"),
    memory(8, "日本 word"),
]


def digests(state):
    view = state.view()
    return view.lexical_digest, view.graph_digest


def test_batches_and_tables_make_no_difference():
    expected = digests(state_of(*ROWS))
    slow = OwnerState(OWNER, dimension=DIMENSION)
    for row in ROWS:
        slow.apply([row])
    nodes = NodeTable.batch([row for row in ROWS if row.kind is EntryKind.NODE], node_schema(DIMENSION))
    edges = EdgeTable.batch([row for row in ROWS if row.kind is EntryKind.EDGE], EDGE)
    loaded = OwnerState(OWNER, dimension=DIMENSION)
    loaded.load(nodes, edges, seq=8, owner_seq=8)
    half = OwnerState(OWNER, dimension=DIMENSION)
    half.load(nodes.slice(0, 2), edges.slice(0, 0), seq=2, owner_seq=2)
    half.apply(ROWS)
    assert [digests(state) for state in (slow, loaded, half)] == [expected] * 3


@pytest.mark.parametrize("parts", [ALL_PARTS, {Part.RECORDS, Part.EDGES}, {Part.TEXT}, {Part.EDGES}, {Part.VECTORS}])
def test_a_process_has_those_of_its_parts(parts):
    lexical, graph = digests(state_of(*ROWS))
    expected = (lexical if set(parts) & {Part.TEXT, Part.RECORDS} else None, graph if Part.EDGES in parts else None)
    assert digests(state_of(*ROWS, parts=frozenset(parts))) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"id": uuid("a", 99)},
        {"structural": True},
        {"scope": Scope.PROJECT},
        {"node_type": NodeType.TASK},
        {"lifecycle_state": LifecycleState.CONTESTED},
        {"confidence": 0.75},
        {"created": 77},
        {"valid_from": at(2)},
        {"valid_to": at(900)},
        {"event_time": at(-5)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_a_traversal_reads_of_a_memory_counts(changed):
    assert digests(state_of(memory(1, "blue", **changed)))[1] != digests(state_of(memory(1, "blue")))[1]


@pytest.mark.parametrize(
    "changed",
    [
        {"id": uuid("e", 99)},
        {"kind": EdgeType.SUPPORTS},
        {"confidence": 0.75},
        {"created_at": at(5)},
        {"valid_from": at(5)},
        {"valid_to": at(5) + timedelta(days=1)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_it_reads_of_an_edge_counts(changed):
    ends = [memory(1, "one"), memory(2, "two")]
    expected = digests(state_of(*ends, link(3, 1, 2)))
    assert digests(state_of(*ends, link(3, 1, 2, **changed)))[1] != expected[1]
    assert digests(state_of(*ends, link(3, 2, 1)))[1] != expected[1]
    assert digests(state_of(*ends, link(3, 1, 2, **changed)))[0] == expected[0]


def test_texts_count_where_they_are_indexed_and_names_where_they_are_found():
    first, other = state_of(memory(1, "blue")), state_of(memory(1, "green"))
    assert digests(first)[0] != digests(other)[0]
    assert digests(first)[1] == digests(other)[1]
    assert digests(state_of(entity(1, "Ada")))[1] != digests(state_of(entity(1, "Eva")))[1]
    assert digests(state_of(memory(1, "blue"), memory(2, " ")))[0] == digests(first)[0]
    # Where one text ends and the next id begins is part of what is hashed.
    split = [memory(1, "a" + uuid("a", 2)), memory(2, "b")]
    assert digests(state_of(*split))[0] != digests(state_of(memory(1, "a"), memory(2, uuid("a", 2) + "b")))[0]
