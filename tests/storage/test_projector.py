"""The projector: batches, quiet time, bounded files, failures that show, and kill -9."""

import random
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from prme_ray.model.errors import ProjectionFailed, StoreCorrupt, WriterFenced
from storage.projector import Projector
from storage.records import Admission, Entry, OwnerKey
from storage.sql_log import sqlite_log
from storage.table_place import TablePlace
from storage.tables import EdgeTable, NodeTable
from tests.storage.log_rows import DIMENSION, ListedLog, stored

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def tables(place):
    base = place if isinstance(place, TablePlace) else TablePlace.of(place)
    return NodeTable.open(base.below("nodes"), dimension=DIMENSION), EdgeTable.open(base.below("edges"))


@pytest.fixture(params=["folder", "uri"])
def base(request, tmp_path):
    """Where the tables of a test are."""
    return TablePlace.of(tmp_path if request.param == "folder" else tmp_path.as_uri())


@pytest.fixture
def shard(base):
    """Return a function that makes a projector over a log; all are closed at the end."""
    made = []

    def make(log, **settings):
        settings = {"epoch": 0, "batch_rows": 30, "idle_s": 60.0, "clock": lambda: NOON} | settings
        made.append(Projector(log, *tables(base), generation=1, **settings))
        return made[-1]

    yield make
    for projector in made:
        projector.close()


def until(condition, *, within_s=20.0):
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def rows_of(projector):
    return tuple(table["rows"] for table in projector.state()["tables"].values())


def commit(log, projector, rows):
    for row in rows:
        log.rows.append(row)
        projector.notify(row.seq)


class TestBackground:
    def test_waits_for_quiet_then_writes_once(self, shard):
        log = ListedLog()
        projector = shard(log, idle_s=0.5)
        commit(log, projector, stored(5))
        assert projector.state()["lag"] == 15
        until(lambda: projector.position == 15)
        state = projector.state()
        assert (rows_of(projector), state["lag"], state["last_error"]) == ((5, 5), 0, None)
        assert [table["fragments"] for table in state["tables"].values()] == [1, 1]

    def test_a_full_batch_does_not_wait_for_quiet(self, shard):
        log = ListedLog()
        projector = shard(log)
        commit(log, projector, stored(9))
        time.sleep(0.05)
        assert projector.position == 0
        commit(log, projector, stored(10)[27:])
        until(lambda: projector.position == 30)

    def test_wakes_again_after_having_slept(self, shard):
        log, rows = ListedLog(), stored(3)
        projector = shard(log, idle_s=0.02)
        for number in range(3):
            commit(log, projector, rows[3 * number : 3 * number + 3])
            until(lambda number=number: projector.position == 3 * number + 3)

    def test_notify_takes_microseconds(self, shard):
        projector = shard(ListedLog(stored(1)))
        projector.notify(1)
        spent = []
        for _ in range(500):
            start = time.perf_counter()
            projector.notify(1)
            spent.append(time.perf_counter() - start)
        assert sorted(spent)[250] < 50e-6


class TestFlushAndClose:
    def test_flush_applies_everything_in_batches(self, shard):
        projector = shard(ListedLog(stored(25)))
        projector.flush()
        assert (projector.position, rows_of(projector)) == (75, (25, 25))
        assert projector.state()["tables"]["nodes"]["fragments"] == 3  # 30, 30 and 15 entries

    def test_close_leaves_nothing_waiting_and_few_files(self, tmp_path):
        log = ListedLog()
        projector = Projector(log, *tables(tmp_path), epoch=0, generation=1, batch_rows=6, compact_after_fragments=16)
        commit(log, projector, stored(20))
        projector.close()
        assert (projector.position, rows_of(projector)) == (60, (20, 20))
        assert projector.state()["tables"]["nodes"]["fragments"] == 1

    def test_vectors_asked_for_are_those_of_the_generation(self, shard):
        asked = []

        class Log(ListedLog):
            def read(self, **arguments):
                asked.append(arguments["generation"])
                return super().read(**arguments)

        shard(Log(stored(1))).flush()
        assert asked == [1]

    def test_compact_says_when(self, shard):
        projector = shard(ListedLog(stored(25)))
        projector.flush()
        assert projector.state()["last_compaction"] is None
        projector.compact()
        assert projector.state()["last_compaction"] == "2026-05-04T12:00:00Z"
        assert projector.state()["tables"]["edges"]["fragments"] == 1


class TestCatchUp:
    def test_a_long_tail_is_applied_at_once(self, shard):
        projector = shard(ListedLog(stored(11)))
        projector.catch_up()
        assert projector.position == 33

    def test_a_short_tail_is_left_to_the_background(self, shard):
        projector = shard(ListedLog(stored(2)), idle_s=0.1)
        projector.catch_up()
        assert projector.position == 0
        until(lambda: projector.position == 6)

    def test_tables_that_stopped_at_different_entries_meet(self, shard, base):
        rows = stored(20)
        nodes, edges = tables(base)
        nodes.append(rows[:50])
        edges.append(rows[:10])
        projector = shard(ListedLog(rows))
        assert projector.position == 10
        projector.catch_up()
        assert (projector.position, rows_of(projector)) == (60, (20, 20))

    def test_tables_ahead_of_the_log_are_refused(self, shard, base):
        tables(base)[0].append(stored(2))
        with pytest.raises(StoreCorrupt, match="entries up to 6, but the log ends at 3"):
            shard(ListedLog(stored(1))).catch_up()

    def test_tables_that_were_deleted_are_made_again(self, shard, base):
        log = ListedLog(stored(20))
        projector = shard(log, batch_rows=100)  # nothing for the background to do meanwhile
        projector.flush()
        shutil.rmtree(base.folder)
        log.rows = stored(21)
        projector.flush()
        assert (projector.position, rows_of(projector), projector.state()["lag"]) == (63, (21, 21), 0)


class TestCutOff:
    @pytest.fixture
    def taken(self, shard):
        """A log with its old and its new writer's projector."""
        log = ListedLog(stored(10))
        old = shard(log)
        old.flush()
        log.rows, log.epoch = stored(20), log.epoch + 1
        return log, old, shard(log, epoch=log.epoch)

    def test_writes_no_more_and_says_so(self, taken):
        _, old, new = taken
        for call in (old.flush, old.compact):
            with pytest.raises(WriterFenced, match="epoch 0 was replaced by epoch 1"):
                call()
        state = old.state()
        assert (state["cut_off"], state["position"], state["last_error"][:12]) == (True, 30, "WriterFenced")
        old.close()
        assert new.position == 30
        new.flush()
        assert (new.state()["cut_off"], rows_of(new)) == (False, (20, 20))

    def test_background_thread_ends(self, shard):
        log = ListedLog(stored(1))
        old = shard(log, idle_s=0.02)
        log.epoch = 1
        old.notify(3)
        until(lambda: old.state()["cut_off"] and not old._thread.is_alive())
        old.notify(4)
        assert (old.position, old._thread.is_alive()) == (0, False)

    def test_batch_that_was_under_way_is_put_right(self, taken):
        log, old, new = taken
        new.flush()
        for table in old._tables.values():
            table.append(log.rows[30:45])  # what it had begun before it could know
        assert rows_of(old) == (25, 25)
        log.rows = stored(21)
        new.flush()
        assert (rows_of(new), new.position, new.state()["removed_rows"]) == ((21, 21), 63, 10)
        nodes, edges = tables(new._tables["nodes"].place.below(".."))
        for table, kind in ((nodes, "node"), (edges, "edge")):
            held = sorted(seq for owner in (1, 2, 3) for seq in table.load(owner)["seq"].to_pylist())
            assert held == [row.seq for row in log.rows if row.kind == kind]


class TestFailures:
    @pytest.mark.parametrize(("folder", "expected"), [("data", ProjectionFailed), ("_versions", StoreCorrupt)])
    def test_failing_add_shows_and_is_raised_and_is_retried(self, shard, tmp_path, folder, expected):
        log = ListedLog()
        projector = shard(log, idle_s=0.02)
        blocked = tmp_path / "edges" / "rows.lance" / folder
        aside = blocked.with_name("aside")
        if blocked.exists():
            blocked.rename(aside)
        blocked.write_text("a file where LanceDB wants a folder")
        try:
            commit(log, projector, stored(2))
            until(lambda: projector._failures > 0)
            with pytest.raises(expected):
                projector.flush()
            assert projector._last_error
        finally:
            blocked.unlink()
            if aside.exists():
                aside.rename(blocked)
        until(lambda: projector.position == 6 and projector.state()["failures"] == 0)
        state = projector.state()
        assert (state["failures"], state["last_error"], rows_of(projector)) == (0, None, (2, 2))


class TestFiles:
    @pytest.mark.parametrize("base", ["folder"], indirect=True)
    @pytest.mark.parametrize(
        "flush_every", [20, pytest.param(1, marks=pytest.mark.slow)], ids=["flushed often", "flushed each time"]
    )
    def test_two_thousand_single_stores_leave_few_files(self, shard, tmp_path, flush_every):
        log_files = 3  # the log's own: SQLite database, write-ahead log, shared memory
        log = ListedLog()
        projector = shard(log, batch_rows=512, compact_after_fragments=16)
        rows = stored(2000)
        most = 0
        for number in range(2000):
            commit(log, projector, rows[3 * number : 3 * number + 3])
            if number % flush_every == 0:
                projector.flush()
                most = max(most, log_files + sum(table.files() for table in projector._tables.values()))
        projector.flush()
        assert rows_of(projector) == (2000, 2000)
        assert most < 200


class TestKill:
    @pytest.mark.parametrize(
        ("kills", "where"),
        [
            (5, "folder"),
            pytest.param(30, "folder", marks=pytest.mark.slow),
            pytest.param(10, "uri", marks=pytest.mark.slow),
        ],
    )
    def test_killed_while_applying_then_complete_without_doubles(self, tmp_path, kills, where):
        base = TablePlace.of(tmp_path if where == "folder" else tmp_path.as_uri())
        stores, seed = 40 * kills, random.Random(kills)
        checkout = Path(__file__).resolve().parents[2]
        command = [sys.executable, "-m", "tests.storage.projector_child", base.uri, str(stores)]
        reached = 0
        for _ in range(kills):
            with subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE, text=True) as child:
                lines = [child.stdout.readline() for _ in range(seed.randint(1, 8))]
                time.sleep(seed.random() * 0.05)
                child.kill()
            assert all(lines), "the writer ended by itself"
            nodes, edges = tables(base)
            assert min(nodes.position, edges.position) >= int(lines[-1]) >= reached
            reached = min(nodes.position, edges.position)
            for table, kind in ((nodes, "node"), (edges, "edge")):
                expected = [row.seq for row in stored(stores) if row.kind == kind and row.seq <= table.position]
                held = sorted(seq for owner in (1, 2, 3) for seq in table.load(owner)["seq"].to_pylist())
                assert held == expected
        projector = Projector(ListedLog(stored(stores)), *tables(base), epoch=0, generation=1)
        projector.close()
        assert rows_of(projector) == (stores, stores)
        # An append leaves three files, and up to 16 appends wait for a compaction, which leaves the rest out.
        assert projector.state()["tables"]["nodes"]["files"] < 60


class TestWithTheRealLog:
    def test_tables_hold_what_the_log_holds(self, tmp_path):
        log = sqlite_log(tmp_path / "log.sqlite")
        epoch = log.begin_epoch()
        generation = log.register_generation("identity", "model", DIMENSION, created_at=0, epoch=epoch)
        projector = Projector(log, *tables(tmp_path), epoch=epoch, generation=generation, batch_rows=64, idle_s=0.02)
        given = stored(200)
        for number in range(0, 600, 3):
            entries = tuple(Entry(row.kind, row.subject, row.payload, row.vector) for row in given[number : number + 3])
            owner = OwnerKey("tenant", f"owner {number % 2}")
            [appended] = log.append([Admission(owner, entries, generation)], recorded_at=number, epoch=epoch).appended
            projector.notify(appended.rows[-1].seq)
        until(lambda: projector.position == 600)
        projector.flush()
        counts = log.counts(generation=generation)
        nodes, edges = tables(tmp_path)
        assert (nodes.count(), nodes.count_with_vector(), edges.count()) == (200, 200, 200)
        assert (counts["node"], counts["vectors"], counts["edge"]) == (200, 200, 200)
        second = log.owner_no(OwnerKey("tenant", "owner 1"))
        expected = [row for row in log.read(owner_no=second, generation=generation) if row.kind == "node"]
        loaded = nodes.load(second)
        assert loaded["node_id"].to_pylist() == [row.subject for row in expected]
        assert [np.asarray(vector, "<f4").tobytes() for vector in loaded["vector"].to_pylist()] == [
            row.vector for row in expected
        ]
        projector.close()
        log.close()
        reopened = sqlite_log(tmp_path / "log.sqlite")
        again = Projector(reopened, *tables(tmp_path), epoch=epoch, generation=generation)
        again.catch_up()
        assert again.state()["lag"] == 0
        again.close()
        reopened.close()
        assert sum(path.is_file() for path in tmp_path.rglob("*")) < 60
