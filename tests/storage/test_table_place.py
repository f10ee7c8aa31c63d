"""The LanceDB tables where a lock does not help: two writers at once, and a place that was deleted."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from prme_ray.model.errors import StoreBusy
from storage.table_place import TablePlace
from storage.tables import NodeTable
from tests.storage.log_rows import DIMENSION, event, node, unit, uuid

QUERY = np.eye(DIMENSION, dtype=np.float32)[0]


@pytest.fixture(params=["folder", "uri"])
def nodes(request, tmp_path):
    base = TablePlace.of(tmp_path if request.param == "folder" else tmp_path.as_uri())
    return reopen(base.below("nodes"))


def reopen(place):
    return NodeTable.open(place, dimension=DIMENSION)


def close_to_the_query(seq):
    return node(seq, vector=unit(QUERY))


class TestTwoWriters:
    """``old`` was cut off, but what it had begun arrives after ``new`` has gone on."""

    @pytest.fixture
    def old(self, nodes):
        nodes.append([close_to_the_query(1), event(2)])
        return nodes

    @pytest.fixture
    def new(self, old):
        table = reopen(old.place)
        table.append([close_to_the_query(3), node(4, owner_no=2), event(5)])
        return table

    def test_rows_that_come_twice_are_read_once_and_removed(self, old, new):
        assert old.append([close_to_the_query(3), node(4, owner_no=2), event(5)]) == 2
        for reader in (new, NodeTable.open(new.place, dimension=DIMENSION, read_only=True)):
            reader.refresh()
            assert (reader.count(), reader.position) == (5, 5)
            assert reader.load(1)["seq"].to_pylist() == [1, 3]
            for k in (1, 2, 9):
                assert reader.search(QUERY, owner_no=1, k=k)["node_id"].to_pylist() == [uuid("a", 1), uuid("a", 3)][:k]
        assert (new.follow(), new.count(), new.position, new.follow()) == (3, 3, 5, 0)
        assert new.append([node(6)]) == 1
        assert new.load(1)["seq"].to_pylist() == [1, 3, 6]

    def test_rows_that_come_early_are_not_added_again(self, old, new):
        old.append([close_to_the_query(3), node(4, owner_no=2), event(5), node(6)])
        new.follow()
        assert (new.position, new.append([node(6), node(7)]), new.load(1)["seq"].to_pylist()) == (6, 1, [1, 3, 6, 7])

    def test_rows_that_arrive_while_the_new_one_adds_are_removed_before_the_next_add(self, old, new):
        old.append([close_to_the_query(3)])
        assert (new.append([node(6)]), new.count()) == (1, 5)
        assert (new.follow(), new.count(), new.append([node(6), node(7)]), new.count()) == (1, 4, 1, 5)

    def test_a_writer_that_opens_later_removes_them(self, old, new):
        if new.place.shared:  # the lock of a folder lets no two write
            old.append([close_to_the_query(3)])
            assert (reopen(new.place).follow(), new.count()) == (1, 3)

    def test_both_remove_the_same_rows(self, old, new):
        old.append([close_to_the_query(3)])
        assert {old.follow(), new.follow()} == {1, 0}
        assert (old.count(), new.count()) == (3, 3)


class TestDeleted:
    def test_is_made_again_and_nobody_reads_less_than_they_were_promised(self, nodes):
        rows = [close_to_the_query(1), event(2), node(3)]
        nodes.append(rows)
        reader = NodeTable.open(nodes.place, dimension=DIMENSION, read_only=True)
        assert (reader.position, reader.load(1).num_rows) == (3, 2)
        shutil.rmtree(nodes.place.folder)
        for call in (lambda: reader.load(1, upto=3), lambda: reader.search(QUERY, owner_no=1, k=1, upto=3)):
            with pytest.raises(StoreBusy, match=r"rebuilt from the log|holds entries up to 0 only"):
                call()
        for table in (reader, nodes):
            table.refresh()
            assert (table.position, table.load(1).num_rows, table.count()) == (0, 0, 0)
            with pytest.raises(StoreBusy, match="holds entries up to 0 only where 3"):
                table.load(1, upto=3)
        assert (nodes.follow(), nodes.position, nodes.append(rows)) == (0, 0, 2)
        assert reader.search(QUERY, owner_no=1, k=1, upto=3)["node_id"].to_pylist() == [uuid("a", 1)]
        assert (reader.position, reader.load(1, upto=3).num_rows) == (3, 2)

    def test_memory_is_a_place_that_no_other_handle_sees(self):
        first = NodeTable.open("memory://shard/nodes", dimension=DIMENSION)
        first.append([node(1), event(2)])
        assert (first.position, first.load(1).num_rows, first.files()) == (2, 1, None)
        assert NodeTable.open("memory://shard/nodes", dimension=DIMENSION).position == 0


def test_a_file_uri_is_where_lancedb_writes(tmp_path):
    table = reopen(f"file://{tmp_path}/my%20 store")
    table.append([node(1)])
    assert table.files() > 0
    assert NodeTable.open(table.place, dimension=DIMENSION, read_only=True).position == 1


@pytest.mark.parametrize(
    ("place", "below", "folder"),
    [
        ("/data/store", "/data/store/a/b", "/data/store/a/b"),
        ("file:///data/my%20store/", "file:///data/my%20store/a/b", "/data/my%20store/a/b"),
        ("s3://bucket/prefix", "s3://bucket/prefix/a/b", None),
        ("s3+ddb://bucket/?ddbTableName=t", "s3+ddb://bucket/a/b?ddbTableName=t", None),
    ],
)
def test_places_below_a_folder_and_a_uri(place, below, folder):
    found = TablePlace.of(place).below("a", "b")
    assert (found.uri, found.folder) == (below, None if folder is None else Path(folder))
