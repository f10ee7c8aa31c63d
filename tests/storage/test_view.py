import threading

import numpy as np
import pyarrow as pa
import pytest

from prme_ray.model.enums import LifecycleState, NodeType, Scope
from prme_ray.model.errors import InvalidRequest, StoreCorrupt
from prme_ray.model.nodes import Node, node_table
from prme_ray.model.tables import CHANNEL, NODE
from storage.owner_state import OwnerState
from storage.records import EntryKind, Filters, LogRow
from storage.tables import EDGE, EdgeTable, NodeTable, node_schema
from storage.view import SESSION_WINDOW
from tests.storage.log_rows import DIMENSION, event, uuid
from tests.storage.owner_rows import OWNER, entity, link, memory, numbers, random_vectors, state_of

ALL = Filters()


def vector_of(row: LogRow) -> np.ndarray:
    return np.frombuffer(row.vector, np.float32)


def answers(view) -> dict:
    """Everything a view says, as plain data."""
    mask = view.eligible(ALL)
    query = np.frombuffer(random_vectors(1, seed=9)[0], np.float32)
    triggers = pa.table({"trigger_id": view.nodes.column("node_id")})
    return {
        "nodes": view.nodes.to_pydict(),
        "vector": view.vector(query, k=50, eligible=mask).to_pydict(),
        "lexical": view.lexical("word memory blue", k=50, eligible=mask).to_pydict(),
        "graph": view.graph(["Ada"], hops=3, k=50, min_confidence=0.0, eligible=mask).to_pydict(),
        "pinned": view.pinned(limit=50, eligible=mask).to_pydict(),
        "windows": view.session_windows(triggers, window=2, eligible=mask).to_pydict(),
        "contradictions": view.contradictions(view.nodes.column("node_id")),
    }


def mixed_rows() -> list[LogRow]:
    vectors = random_vectors(12)
    return [
        entity(1, "Ada", structural=True),
        *(memory(seq, f"blue word {seq}", vector=vectors[seq], session_id="s") for seq in range(2, 8)),
        memory(8, " \n"),
        event(9, owner_no=OWNER),
        link(10, 1, 2),
        link(11, 2, 3),
        memory(12, "pin", pinned=True, vector=vectors[1]),
    ]


def test_one_by_one_all_at_once_and_from_the_projections_are_the_same():
    rows = mixed_rows()
    whole = answers(state_of(*rows).view())
    slow = OwnerState(OWNER, dimension=DIMENSION)
    for row in rows:
        slow.apply([row])
        slow.view()
    assert answers(slow.view()) == whole
    nodes = NodeTable.batch([row for row in rows if row.kind is EntryKind.NODE], node_schema(DIMENSION))
    edges = EdgeTable.batch([row for row in rows if row.kind is EntryKind.EDGE], EDGE)
    loaded = OwnerState(OWNER, dimension=DIMENSION)
    loaded.load(nodes, edges, seq=12, owner_seq=12)
    assert (loaded.seq, answers(loaded.view())) == (12, whole)
    part = OwnerState(OWNER, dimension=DIMENSION)
    part.load(nodes.slice(0, 4), edges.slice(0, 0), seq=4, owner_seq=4)
    part.apply(rows)  # what is already in is skipped
    assert answers(part.view()) == whole


def test_projections_on_disk_load(tmp_path):
    rows = mixed_rows()
    nodes = NodeTable.open(tmp_path / "nodes", dimension=DIMENSION)
    edges = EdgeTable.open(tmp_path / "edges")
    nodes.append(rows)
    edges.append(rows)
    state = OwnerState(OWNER, dimension=DIMENSION)
    state.load(nodes.load(OWNER), edges.load(OWNER), owner_seq=8)
    state.apply([])
    assert answers(state.view()) == answers(state_of(*rows).view())


def test_nodes_are_the_memories_and_hubs_are_not():
    rows = mixed_rows()
    view = state_of(*rows).view()
    expected = [Node.model_validate_json(row.payload) for row in rows if row.kind is EntryKind.NODE]
    assert view.nodes.equals(node_table([node for node in expected if not node.structural]))
    assert (len(view), view.seq) == (8, 12)


def test_an_owner_with_nothing_answers_with_nothing():
    view = OwnerState(OWNER, dimension=DIMENSION).view()
    found = answers(view)
    assert view.nodes.schema.equals(NODE)
    assert all(not values or not any(values.values()) for values in found.values())
    assert view.vector(np.zeros(DIMENSION), k=5, eligible=view.eligible(ALL)).schema.equals(CHANNEL)


def test_ids_of_others_are_left_out():
    view = state_of(*mixed_rows()).view()
    names = [uuid("a", 3), uuid("a", 99), uuid("a", 1), uuid("a", 2)]  # 1 is a hub
    assert numbers(view.hydrate(pa.array(names))) == [3, 2]
    assert view.rows(pa.chunked_array([names])).tolist() == [1, 0]
    assert view.hydrate([]).schema.equals(NODE)


def test_a_view_stays_what_it_was():
    state = state_of(*mixed_rows())
    before = state.view()
    mask = before.eligible(ALL)
    remembered = answers(before)
    state.apply([memory(20, "blue word", session_id="s", vector=random_vectors(1)[0], pinned=True), link(21, 1, 20)])
    assert answers(before) == remembered
    assert len(before.eligible(Filters(include_inactive=True))) == len(mask) == 8
    assert before.rows([uuid("a", 20)]).tolist() == []
    assert numbers(state.view().pinned(limit=5, eligible=state.view().eligible(ALL))) == [20, 12]


def test_an_unchanged_state_keeps_its_view():
    state = state_of(*mixed_rows())
    view = state.view()
    state.apply([])
    state.apply(mixed_rows())
    assert state.view() is view
    state.apply([event(30, owner_no=OWNER)])
    assert (state.seq, state.view().seq) == (30, 30)


def test_pins_tasks_and_intents_newest_first():
    rows = [
        memory(1, "full salience", salience=1.0),
        memory(2, "flag", pinned=True, created=50),
        memory(3, "task", node_type=NodeType.TASK, created=60),
        memory(4, "intent", node_type=NodeType.INTENT),
        memory(5, "pinned task", node_type=NodeType.TASK, pinned=True, created=60),
        memory(6, "disputed pin", pinned=True, lifecycle_state=LifecycleState.CONTESTED),
        memory(7, "old pin", pinned=True, lifecycle_state=LifecycleState.SUPERSEDED),
        memory(8, "elsewhere", pinned=True, scope=Scope.PROJECT),
        memory(9, "plain", salience=0.99),
    ]
    view = state_of(*rows).view()
    mask = view.eligible(Filters(scopes=frozenset({Scope.PERSONAL}), include_inactive=True))
    table = view.pinned(limit=10, eligible=mask)
    assert numbers(table) == [5, 2, 1, 3, 4]
    assert set(table.column("signal").to_pylist()) == {1.0}
    assert numbers(view.pinned(limit=1, eligible=mask)) == [5, 3, 4]
    assert numbers(view.pinned(limit=0, eligible=mask)) == []


def test_session_windows_name_the_trigger_and_the_offset():
    rows = [memory(seq, "x", session_id="s") for seq in (1, 2, 3)]
    rows += [memory(4, "x", session_id="s", scope=Scope.PROJECT), memory(5, "x"), memory(6, "x", session_id="s")]
    view = state_of(*rows).view()
    names = [uuid("a", seq) for seq in (3, 5, 99, 1)]
    triggers = pa.table({"trigger_id": names, "session_id": ["s"] * 4, "scope": pa.array([0] * 4, pa.int8())})
    table = view.session_windows(triggers, window=1, eligible=view.eligible(ALL))
    assert table.schema.equals(SESSION_WINDOW)
    found = zip(table.column("trigger_id").to_pylist(), numbers(table), table.column("offset").to_pylist(), strict=True)
    assert list(found) == [(names[0], 2, -1), (names[0], 6, 1), (names[3], 2, 1)]
    assert view.session_windows(triggers.slice(0, 0), window=3, eligible=view.eligible(ALL)).num_rows == 0


@pytest.mark.parametrize("bad", ["foreign", "twice", "known", "vector", "payload"])
def test_a_refused_batch_changes_nothing(bad):
    state = state_of(*mixed_rows())
    before, seq = state.view(), state.seq
    good = memory(40, "blue word")
    wrong = {
        "foreign": LogRow(41, OWNER + 1, 41, EntryKind.NODE, good.subject, good.payload, 0),
        "twice": memory(41, "again", id=uuid("a", 40)),
        "known": memory(41, "again", id=uuid("a", 2)),
        "vector": memory(41, "short vector", vector=bytes(4)),
        "payload": LogRow(41, OWNER, 41, EntryKind.NODE, uuid("a", 41), "{}", 0),
    }[bad]
    with pytest.raises(InvalidRequest if bad == "foreign" else StoreCorrupt):
        state.apply([good, wrong])
    assert (state.view(), state.seq) == (before, seq)
    state.apply([good])
    assert numbers(state.view().hydrate([good.subject])) == [40]


def test_a_state_that_failed_half_way_says_so(monkeypatch):
    state = state_of(*mixed_rows())
    before = state.view()

    def full(documents):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state._lexical, "extend", full)
    with pytest.raises(OSError, match="No space"):
        state.apply([memory(40, "blue word")])
    for again in (state.view, lambda: state.apply([memory(41, "x")])):
        with pytest.raises(StoreCorrupt, match="load the owner from the log again"):
            again()
    assert numbers(before.nodes) == numbers(state_of(*mixed_rows()).view().nodes)


def test_a_closed_state_takes_in_nothing_and_its_view_still_answers():
    state = state_of(*mixed_rows())
    view = state.view()
    remembered = answers(view)
    state.close()
    state.apply([memory(40, "blue word")])
    assert state.view() is view
    assert answers(view) == remembered


def test_a_text_index_on_disk_may_be_ahead_of_the_projections(tmp_path):
    rows = mixed_rows()
    first = state_of(*rows, lexical_dir=tmp_path / "owner")
    first.close()
    state = OwnerState(OWNER, dimension=DIMENSION, lexical_dir=tmp_path / "owner")
    assert state.view().lexical("blue", k=5, eligible=state.view().eligible(ALL)).num_rows == 0
    nodes = NodeTable.batch([row for row in rows[:4] if row.kind is EntryKind.NODE], node_schema(DIMENSION))
    state.load(nodes, EDGE.empty_table(), seq=4, owner_seq=4)
    state.apply(rows)
    assert answers(state.view()) == answers(first.view())
    state.close()


def test_bytes_grow_with_what_is_kept():
    state = state_of(*mixed_rows())
    small = state.nbytes
    state.apply([memory(seq, "long text " * 100, vector=random_vectors(1)[0]) for seq in range(100, 400)])
    assert state.nbytes > small + 300 * (1000 + 4 * DIMENSION)


def test_readers_beside_a_writer_see_whole_views():
    state = OwnerState(OWNER, dimension=DIMENSION)
    failures: list[str] = []
    done = threading.Event()
    query = np.frombuffer(random_vectors(1)[0], np.float32)

    def read():
        while not done.is_set():
            view = state.view()
            mask = view.eligible(ALL)
            blank = sum(not text.strip() for text in view.nodes.column("content").to_pylist())
            counts = {
                len(view),
                view.nodes.num_rows,
                len(mask),
                view.vector(query, k=10**6, eligible=mask).num_rows + blank,
                view.lexical("word", k=10**6, eligible=mask).num_rows + blank,
            }
            linked = view.graph(["Ada"], hops=1, k=10**6, min_confidence=0, eligible=mask).num_rows
            if len(counts) != 1 or linked + blank != len(view):
                failures.append(f"{view.seq}: {counts}, {linked} linked")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    state.apply([entity(1, "Ada", structural=True)])
    vectors = random_vectors(120)
    for place in range(60):
        seq = 2 + 3 * place
        blank = place % 7 == 0
        batch = [memory(seq, " " if blank else f"word {place}", vector=None if blank else vectors[place])]
        if not blank:
            batch.append(link(seq + 1, 1, seq))
        state.apply(batch)
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert len(state.view()) == 60


def test_an_older_view_knows_no_later_type():
    state = state_of(entity(1, "Ada", metadata={"entity_type": "cat"}, confidence=0.5))
    older = state.view()
    state.apply([entity(2, "ADA", metadata={"entity_type": "person"}, confidence=0.9)])
    found = [view.entity_types(["ada", "Ben"], eligible=view.eligible(ALL)) for view in (older, state.view())]
    assert found == [{"ada": "cat"}, {"ada": "person"}]
