"""The LanceDB tables: round trips, positions, exact search, clean-up beside readers, damage.

Measured on 2 shared cores, 384 dimensions: see ``timings`` at the end (python -m tests.storage.test_tables).
"""

import pickle
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import storage.lance
from prme_ray.model.enums import LifecycleState, NodeType
from prme_ray.model.errors import InvalidRequest, ReadOnlyStore, StoreCorrupt
from prme_ray.model.nodes import Node, node_table
from prme_ray.model.tables import NODE
from storage.records import EntryKind, LogRow
from storage.table_place import TablePlace
from storage.tables import EdgeTable, NodeTable
from storage.vectors import Vectors
from tests.storage.log_rows import DIMENSION, START, edge, event, node, unit, uuid


@pytest.fixture(params=["folder", "uri"])
def base(request, tmp_path):
    """Where the tables of a test are."""
    return TablePlace.of(tmp_path if request.param == "folder" else tmp_path.as_uri())


@pytest.fixture
def nodes(base):
    return NodeTable.open(base.below("nodes"), dimension=DIMENSION)


@pytest.fixture
def edges(base):
    return EdgeTable.open(base.below("edges"))


def reopen(table):
    if isinstance(table, NodeTable):
        return NodeTable.open(table.place, dimension=table.schema.field("vector").type.list_size)
    return EdgeTable.open(table.place)


def axis(number: int) -> bytes:
    return unit(np.eye(DIMENSION)[number])


class TestRows:
    def test_a_node_comes_back_as_it_was_admitted(self, nodes):
        rows = [
            node(1, vector=axis(0), content="Ærøskøbing 🦉 \u2028 null\x00", event_time=START, valid_to=START),
            node(2, node_type=NodeType.ENTITY, structural=True, metadata={"condition_state": "true", "ä": [1]}),
            node(3, owner_no=2, vector=axis(1)),
            node(4, vector=axis(2), lifecycle_state=LifecycleState.CONTESTED, evidence_refs=("b", "a"), pinned=True),
        ]
        assert nodes.append(rows) == 4
        loaded = nodes.load(1)
        expected = [Node.model_validate_json(rows[position].payload) for position in (0, 1, 3)]
        assert loaded.select(NODE.names).schema.equals(NODE)
        assert loaded.select(NODE.names).equals(node_table(expected))
        assert loaded["seq"].to_pylist() == [1, 2, 4]
        assert loaded["structural"].to_pylist() == [False, True, False]
        assert loaded["vector"].to_pylist() == [np.eye(DIMENSION)[0].tolist(), None, np.eye(DIMENSION)[2].tolist()]
        assert all(column.num_chunks == 1 for column in loaded.columns)
        assert (nodes.count(), nodes.count_with_vector(), nodes.count_with_vector(upto=2)) == (4, 3, 1)

    def test_an_edge_comes_back_as_it_was_admitted(self, edges):
        edges.append([edge(1, 7, 8, confidence=0.25), edge(2, 8, 9, valid_to=START), edge(3, 1, 2, owner_no=2)])
        first, second = edges.load(1).to_pylist()
        assert (first["edge_id"], first["source_id"], first["target_id"]) == (uuid("e", 1), uuid("a", 7), uuid("a", 8))
        assert (first["confidence"], first["valid_to"], second["valid_to"]) == (0.25, None, START)
        assert edges.load(1).num_rows == 2

    def test_owner_without_rows_has_the_same_columns(self, nodes):
        nodes.append([node(1)])
        assert nodes.load(5).schema == nodes.load(1).schema
        assert nodes.load(5).num_rows == 0

    def test_rows_are_bounded_by_upto_and_ordered_over_many_adds(self, nodes):
        rows = [node(seq, owner_no=1 + seq % 2) for seq in range(1, 41)]
        for row in rows[:30]:
            nodes.append([row])
        nodes.compact()
        nodes.append(rows[30:])
        assert nodes.load(1, upto=33)["seq"].to_pylist() == list(range(2, 34, 2))

    def test_a_batch_is_one_file(self, nodes):
        nodes.append([node(seq) for seq in range(1, 301)])
        assert nodes.fragments() == 1


class TestPosition:
    def test_entries_are_applied_once(self, nodes):
        rows = [node(1), node(2)]
        assert (nodes.append(rows), nodes.append(rows), nodes.append([*rows, node(3)])) == (2, 0, 1)
        assert nodes.load(1)["seq"].to_pylist() == [1, 2, 3]

    def test_entries_without_rows_count_as_applied_after_reopening(self, nodes, edges):
        rows = [node(1), edge(2, 1, 1), event(3)]
        for table in (nodes, edges):
            table.append(rows)
            assert (table.position, reopen(table).position) == (3, 3)

    def test_marks_are_no_rows_and_compaction_leaves_the_last(self, nodes):
        for number in range(5):
            nodes.append([node(2 * number + 1, vector=axis(0)), event(2 * number + 2)])
        assert (nodes.count(), nodes.count(upto=6), nodes.count_with_vector(), nodes.size()) == (5, 3, 5, 10)
        nodes.compact()
        assert (nodes.position, nodes.count(), nodes.size()) == (10, 5, 6)
        again = reopen(nodes)
        assert (again.position, again.load(1)["seq"].to_pylist()) == (10, [1, 3, 5, 7, 9])
        assert again.search(np.eye(DIMENSION, dtype=np.float32)[0], owner_no=1, k=20).num_rows == 5

    def test_entries_without_any_row_leave_one_mark(self, edges):
        for seq in range(1, 5):
            edges.append([node(seq)])
        edges.compact()
        assert (reopen(edges).position, edges.count(), edges.size()) == (4, 0, 1)

    def test_position_file_of_earlier_stores_is_not_needed(self, nodes):
        nodes.append([node(1)])
        former = nodes.place.folder / "position.json"
        former.write_text('{"seq": 3, "rows": 1}')
        again = reopen(nodes)
        assert (again.position, former.exists()) == (1, False)
        assert again.append([node(1), event(2), event(3), node(4)]) == 1

    def test_entries_that_would_leave_a_hole_are_not_applied(self, nodes):
        nodes.append([node(1)])
        assert (nodes.append([node(3)]), nodes.position, nodes.count()) == (0, 1, 1)

    @pytest.mark.parametrize("committed", [False, True])
    def test_add_that_raised_is_repeated_only_if_it_was_not_committed(self, nodes, monkeypatch, committed):
        nodes.append([node(1)])
        add = nodes._table.add

        def fail(batch):
            if committed:
                add(batch)
            raise RuntimeError("the disk went away")

        with monkeypatch.context() as patch:
            patch.setattr(nodes._table, "add", fail)
            with pytest.raises(RuntimeError, match="went away"):
                nodes.append([node(2), node(3)])
        assert nodes.append([node(2), node(3), node(4)]) == (1 if committed else 3)
        assert nodes.load(1)["seq"].to_pylist() == [1, 2, 3, 4]

    def test_entry_that_does_not_fit_is_refused_whole_and_quotes_no_memory(self, nodes):
        broken = LogRow(2, 1, 2, EntryKind.NODE, "x", '{"content": "a secret"}', 2)
        short = node(2, vector=b"1234")
        for row in (broken, short):
            with pytest.raises(StoreCorrupt, match="entry 2") as caught:
                nodes.append([node(1), row])
            assert "secret" not in str(caught.value)
        assert (nodes.position, nodes.count()) == (0, 0)


class TestSearch:
    @settings(max_examples=20, deadline=None)
    @given(st.data())
    def test_equals_brute_force_with_ties(self, data):
        small = st.integers(-1, 1)
        vectors = data.draw(st.lists(st.lists(small, min_size=3, max_size=3).filter(any), min_size=1, max_size=30))
        query = np.frombuffer(unit(data.draw(st.lists(small, min_size=3, max_size=3).filter(any))), "<f4")
        k = data.draw(st.integers(1, 8))
        rows = [node(len(vectors) - i, owner_no=1 + i % 2, vector=unit(v)) for i, v in enumerate(vectors)][::-1]
        with tempfile.TemporaryDirectory() as folder:
            table = NodeTable.open(folder, dimension=3)
            table.append(rows)
            found = table.search(query, owner_no=1, k=k)
        mine = [row for row in rows if row.owner_no == 1]
        scores = {row.subject: sum(np.frombuffer(row.vector, "<f4").astype(float) * query) for row in mine}
        best = sorted(scores, key=lambda name: (-round(scores[name], 6), name))[:k]
        assert found["node_id"].to_pylist() == best
        assert found["signal"].to_pylist() == pytest.approx([scores[name] for name in best], abs=1e-6)

    def test_equals_the_owner_in_memory_to_the_bit(self, nodes):
        random = np.random.default_rng(3)
        rows = [node(seq, vector=unit(random.normal(size=DIMENSION))) for seq in range(1, 301)]
        rows += [node(seq, vector=rows[seq % 7].vector) for seq in range(301, 331)]
        nodes.append(rows)
        matrix = np.stack([np.frombuffer(row.vector, "<f4") for row in rows])
        every = np.ones(len(rows), dtype=bool)
        for k in (1, 10, 329):
            query = np.frombuffer(unit(matrix[k % 7] + 0.1), "<f4")
            order, cosines = Vectors(matrix, every).search(query, k=k, allowed=every, ids=[row.subject for row in rows])
            found = nodes.search(query, owner_no=1, k=k)
            assert found["node_id"].to_pylist() == [rows[row].subject for row in order]
            assert found["signal"].to_pylist() == cosines.tolist()

    def test_sees_one_owner_up_to_a_number_and_no_row_without_vector(self, nodes):
        rows = [node(1, vector=axis(0)), node(2, owner_no=2, vector=axis(0)), node(3), node(4, vector=axis(0))]
        nodes.append(rows)
        query = np.eye(DIMENSION, dtype=np.float32)[0]
        assert nodes.search(query, owner_no=1, k=9)["node_id"].to_pylist() == [uuid("a", 1), uuid("a", 4)]
        assert nodes.search(query, owner_no=1, k=9, upto=3)["node_id"].to_pylist() == [uuid("a", 1)]
        assert nodes.search(query, owner_no=3, k=9).num_rows == 0
        assert nodes.search(query, owner_no=1, k=0).num_rows == 0

    def test_zero_vectors_score_zero(self, nodes):
        nodes.append([node(1, vector=bytes(4 * DIMENSION)), node(2, vector=axis(0))])
        zero = np.zeros(DIMENSION, np.float32)
        assert nodes.search(-np.eye(DIMENSION)[0], owner_no=1, k=2)["signal"].to_pylist() == [0.0, -1.0]
        assert nodes.search(zero, owner_no=1, k=2)["signal"].to_pylist() == [0.0, 0.0]

    @pytest.mark.parametrize("vector", [np.zeros(3), np.full(DIMENSION, np.nan), np.zeros((1, DIMENSION))])
    def test_refuses_what_is_no_vector_of_the_table(self, nodes, vector):
        with pytest.raises(InvalidRequest, match="8 finite numbers"):
            nodes.search(vector, owner_no=1, k=1)


class TestCompaction:
    def test_keeps_the_rows_and_few_files(self, nodes, monkeypatch):
        monkeypatch.setattr(storage.lance, "_INDEX_ROWS", 25)
        for seq in range(1, 31):
            nodes.append([node(seq, owner_no=1 + seq % 2, vector=axis(seq % DIMENSION))])
        before = nodes.load(1)
        assert nodes.files() > 60
        nodes.compact()
        nodes.append([node(31, owner_no=2)])
        nodes.compact()
        assert nodes.load(1).equals(before)
        assert nodes.count() == 31
        assert nodes.fragments() <= 2  # rows new to an index join the indexed ones at the next time
        assert nodes.files() < 12
        assert reopen(nodes).load(2)["seq"].to_pylist()[-1] == 31

    def test_removes_what_a_killed_writer_left_where_no_other_can_be_writing(self, nodes):
        nodes.append([node(1)])
        debris = nodes.place.folder / "rows.lance" / "data" / "half.lance"
        debris.write_bytes(b"half a file")
        reopen(nodes).compact()
        assert debris.exists() == nodes.place.shared
        assert nodes.count() == 1

    @pytest.mark.parametrize("own_handle", [True, False])
    def test_readers_go_on_while_versions_disappear(self, nodes, own_handle):
        nodes.append([node(1)])
        reader = NodeTable.open(nodes.place, dimension=DIMENSION, read_only=True) if own_handle else nodes
        done, seen, troubles = threading.Event(), [], []

        def read():
            try:
                while not done.is_set():
                    position = reader.position
                    seqs = reader.load(1)["seq"].to_pylist()
                    assert seqs == list(range(1, len(seqs) + 1))
                    assert len(seqs) >= position
                    seen.append(len(seqs))
            except BaseException as error:
                troubles.append(error)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for seq in range(2, 32):
            nodes.append([node(seq)])
            if seq % 3 == 0:
                nodes.compact()
        done.set()
        for thread in threads:
            thread.join()
        assert not troubles
        assert len(set(seen)) > 3
        assert reader.load(1).num_rows == 31


class TestOpening:
    def test_reader_before_the_first_write_is_empty_and_creates_nothing(self, base):
        place = base.below("nodes")
        reader = NodeTable.open(place, dimension=DIMENSION, read_only=True)
        found = (reader.position, reader.count(), reader.load(1).num_rows, place.folder.exists())
        assert found == (0, 0, 0, False)
        assert reader.search(np.ones(DIMENSION), owner_no=1, k=3).num_rows == 0
        NodeTable.open(place, dimension=DIMENSION).append([node(1)])
        assert (reader.position, reader.count()) == (1, 1)

    def test_reader_does_not_write(self, nodes):
        reader = NodeTable.open(nodes.place, dimension=DIMENSION, read_only=True)
        with pytest.raises(ReadOnlyStore):
            reader.append([node(1)])
        with pytest.raises(ReadOnlyStore):
            reader.compact()

    def test_creation_that_was_cut_short_is_repeated(self, base):
        place = base.below("nodes")
        data = place.folder / "rows.lance" / "data"
        data.mkdir(parents=True)
        (data / "half.lance").write_bytes(b"half")
        assert NodeTable.open(place, dimension=DIMENSION).append([node(1)]) == 1

    def test_vectors_of_another_length_are_refused_unless_there_are_no_rows(self, nodes):
        assert NodeTable.open(nodes.place, dimension=3).append([node(1, vector=unit([1, 2, 3]))]) == 1
        with pytest.raises(StoreCorrupt, match=r"column vector holds .*\[3\] where .*\[8\]"):
            NodeTable.open(nodes.place, dimension=DIMENSION)

    @pytest.mark.parametrize("pattern", ["data/*.lance", "_versions/*.manifest"])
    def test_damaged_files_are_reported_with_the_way_out(self, nodes, pattern):
        nodes.append([node(1)])
        for file in Path(nodes.place.folder / "rows.lance").glob(pattern):
            file.write_bytes(b"")
        with pytest.raises(StoreCorrupt, match="rebuilt from the log"):
            reopen(nodes).load(1)

    def test_handles_do_not_travel(self, nodes):
        with pytest.raises(TypeError, match="belongs to one process"):
            pickle.dumps(nodes)


def timings() -> None:
    """Print milliseconds of adds, loads and searches at 384 dimensions."""
    random = np.random.default_rng(0)

    def rows(first, count, owner_no):
        vectors = random.normal(size=(count, 384))
        content = "Caroline adopted a cat called Oscar in Ghent last spring. " * 2
        return [node(first + i, owner_no=owner_no, vector=unit(vectors[i]), content=content) for i in range(count)]

    def measure(label, call, times=5):
        spent = []
        for _ in range(times):
            start = time.perf_counter()
            call()
            spent.append((time.perf_counter() - start) * 1000)
        print(f"{label:32} median {np.median(spent):7.1f} ms, best {min(spent):7.1f} ms")

    with tempfile.TemporaryDirectory() as folder:
        table = NodeTable.open(folder, dimension=384)
        table.append(rows(1, 1, 9))
        for count in (1, 100, 1000):
            batches = [rows(table.position + 1 + i * count, count, 9) for i in range(5)]
            measure(f"append {count}", lambda batches=batches: table.append(batches.pop(0)))
        table.append(rows(table.position + 1, 600, 1))
        table.append(rows(table.position + 1, 10_000, 2))
        measure("compact 16,000 rows", table.compact, 1)
        query = np.frombuffer(unit(random.normal(size=384)), "<f4")
        for label, owner_no in (("600", 1), ("10,000", 2)):
            measure(f"load {label}", lambda owner_no=owner_no: table.load(owner_no))
            measure(f"search {label}, k=500", lambda owner_no=owner_no: table.search(query, owner_no=owner_no, k=500))
        reader = NodeTable.open(folder, dimension=384, read_only=True)
        measure("position, read-only", lambda: reader.position)


if __name__ == "__main__":
    timings()
