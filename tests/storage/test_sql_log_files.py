"""The log's file: readers beside a writer, other files, versions, forks, disk."""

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from prme_ray.model.errors import (
    InvalidRequest,
    ReadOnlyStore,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreFormatTooNew,
)
from storage import sqlite_engine
from storage.sql_log import sqlite_log
from tests.storage.log_cases import ANNA, BEN, NOW, Files, Writer, admission, event, node, vector
from tests.storage.old_logs import ENTRIES

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def writer(tmp_path):
    made = Writer(tmp_path / "shard" / "log.sqlite")
    yield made
    made.log.close()


def subjects(rows):
    return [(row.seq, row.subject) for row in rows]


class TestReaders:
    def test_a_reader_sees_the_last_commit_while_the_writer_goes_on(self, writer):
        reader = sqlite_log(writer.log.path, read_only=True)
        assert reader.last_seq() == 0
        for number in range(1, 6):
            writer.append(admission(event(f"e{number}")))
            assert reader.last_seq() == number
            assert reader.read(after=number - 1)[0].subject == f"e{number}"
            assert reader.owner_no(ANNA) == 1
        reader.close()

    def test_a_reader_cannot_write(self, writer):
        reader = sqlite_log(writer.log.path, read_only=True)
        for write in (
            reader.begin_epoch,
            lambda: reader.append([admission(event("e"))], recorded_at=NOW, epoch=1),
            lambda: reader.register_generation("i", "m", 2, created_at=NOW, epoch=1),
        ):
            with pytest.raises(ReadOnlyStore):
                write()
        reader.close()

    def test_a_reader_opens_what_was_closed_and_has_no_side_files(self, writer):
        writer.append(admission(event("e1")))
        writer.log.close()
        assert not os.path.exists(writer.log.path + "-wal")
        reader = sqlite_log(writer.log.path, read_only=True)
        assert subjects(reader.read()) == [(1, "e1")]
        reader.close()

    def test_a_reader_opens_what_a_killed_writer_left(self, tmp_path):
        code = (
            "import os, sys; from tests.storage.log_cases import Writer, admission, event\n"
            "Writer(sys.argv[1]).append(admission(event('e1'))); os.kill(os.getpid(), 9)"
        )
        path = str(tmp_path / "log.sqlite")
        assert subprocess.run([sys.executable, "-c", code, path], check=False, cwd=CHECKOUT).returncode == -9
        assert os.path.exists(path + "-wal")
        reader = sqlite_log(path, read_only=True)
        assert subjects(reader.read()) == [(1, "e1")]
        reader.close()

    def test_many_threads_read_while_one_writes(self, writer):
        failures: list[str] = []
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                last = writer.log.last_seq()
                rows = writer.log.read(upto=last)
                if [row.seq for row in rows] != list(range(1, last + 1)):
                    failures.append(f"{last}: {[row.seq for row in rows]}")

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(40):
            writer.append(admission(event(f"e{number}"), node(f"n{number}", vector(1, 1))))
        done.set()
        for thread in threads:
            thread.join()
        assert failures == []


class TestFiles:
    def test_missing_log_is_not_created_by_a_reader(self, tmp_path):
        with pytest.raises(InvalidRequest, match="open it for writing once"):
            sqlite_log(tmp_path / "none.sqlite", read_only=True)
        assert list(tmp_path.iterdir()) == []

    def test_a_log_without_tables_tells_a_reader_what_to_do(self, tmp_path):
        (tmp_path / "log.sqlite").touch()
        with pytest.raises(StoreCorrupt, match="open the store for writing once"):
            sqlite_log(tmp_path / "log.sqlite", read_only=True)
        Writer(tmp_path / "log.sqlite").log.close()
        sqlite_log(tmp_path / "log.sqlite", read_only=True).close()

    @pytest.mark.parametrize("read_only", [True, False])
    def test_another_file_is_no_log(self, tmp_path, read_only):
        (tmp_path / "log.sqlite").write_bytes(b"certainly not a database, " * 500)
        with pytest.raises(StoreCorrupt, match="cannot be read as a log"):
            sqlite_log(tmp_path / "log.sqlite", read_only=read_only)

    @pytest.mark.parametrize(("value", "error"), [("4", StoreFormatTooNew), ("x", StoreCorrupt), ("0", StoreCorrupt)])
    def test_schema_version_is_checked(self, writer, value, error):
        writer.log.close()
        raw = sqlite3.connect(writer.log.path)
        with raw:
            raw.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (value,))
        raw.close()
        for read_only in (True, False):
            with pytest.raises(error):
                sqlite_log(writer.log.path, read_only=read_only)

    def test_version_1_gets_the_owners_numbers_when_opened_for_writing(self, tmp_path):
        place = Files(tmp_path)
        place.make_old()
        place.behind(
            "ALTER TABLE entries DROP COLUMN owner_seq", "UPDATE meta SET value = '1' WHERE key = 'schema_version'"
        )
        with pytest.raises(InvalidRequest, match="a log of version 1, opening it for writing brings it to 3"):
            place.open(read_only=True)
        for _ in range(2):
            log = place.open()
            assert [(row.seq, row.owner_no, row.owner_seq) for row in log.read()] == [row[:3] for row in ENTRIES]
            log.close()
        newer = Writer(place.open())
        [added] = newer.append(admission(event("b3"), owner=BEN))
        assert (added.rows[0].seq, added.rows[0].owner_seq) == (7, 4)
        newer.log.close()

    def test_commits_wait_for_the_disk_and_survive_beside_readers(self, writer):
        with writer.log._writing() as connection:
            pragmas = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys")
            }
        assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}

    def test_a_foreign_transaction_makes_it_busy_and_writes_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sqlite_engine, "_EVERY", ("PRAGMA busy_timeout=20",))
        writer = Writer(tmp_path / "log.sqlite")
        with sqlite3.connect(writer.log.path, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy):
                writer.append(admission(event("e1")))
            assert writer.log.last_seq() == 0  # readers are not blocked
            other.execute("ROLLBACK")
        writer.append(admission(event("e1")))
        assert writer.log.last_seq() == 1
        writer.log.close()

    def test_plans_use_the_indexes(self, writer):
        """No look-up of the hot path reads a table from end to end."""
        writer.append(admission(event("e1"), node("n1", vector(1, 2))))
        with sqlite3.connect(writer.log.path) as raw:
            for query in (
                "SELECT owner_no, kind, subject FROM entries WHERE subject IN ('a','b')",
                "SELECT seq, owner_seq FROM entries WHERE owner_no = 1 ORDER BY seq DESC LIMIT 1",
                "SELECT e.*, v.vector FROM entries e LEFT JOIN vectors v ON v.seq = e.seq AND v.generation = 1 "
                "WHERE e.seq > 3 AND e.owner_no = 1 ORDER BY e.seq",
                "SELECT seq FROM entries WHERE owner_no = 1 ORDER BY seq LIMIT 1 OFFSET 5",
                "SELECT * FROM operations WHERE owner_no = 1 AND owner_op_seq > 3 ORDER BY owner_op_seq",
                "SELECT * FROM operations WHERE owner_no = 1 AND op_type = 'A' AND owner_op_seq > 3 "
                "ORDER BY owner_op_seq",
                "SELECT * FROM operations WHERE owner_no = 1 AND op_type = 'A' AND target = 'r' ORDER BY owner_op_seq",
                "SELECT * FROM operations WHERE owner_no = 1 AND op_type = 'A' AND target > 'r' "
                "ORDER BY target, owner_op_seq LIMIT 5",
            ):
                plan = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {query}")]
                assert all(step.startswith("SEARCH") for step in plan), (query, plan)

    def test_closed_log_refuses_and_closes_again(self, writer):
        writer.log.last_seq()
        writer.log.close()
        writer.log.close()
        for call in (writer.log.last_seq, writer.log.read, writer.log.begin_epoch, lambda: writer.log.owner_no(ANNA)):
            with pytest.raises(StoreClosed):
                call()

    def test_a_forked_child_must_open_its_own(self, writer):
        writer.append(admission(event("e1")))
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        child = context.Process(target=_use_in_child, args=(writer.log, results))
        child.start()
        assert results.get(timeout=30) == ("StoreClosed", 1)
        child.join(timeout=30)
        assert writer.log.last_seq() == 1

    def test_single_appends_cost_no_more_disk_than_three_bulk_appends(self, tmp_path):
        def used(name, batches):
            writer = Writer(tmp_path / name / "log.sqlite")
            for batch in batches:
                writer.append(*batch)
            while_open = sum(file.stat().st_size for file in (tmp_path / name).iterdir())
            writer.log.close()
            return while_open, sum(file.stat().st_size for file in (tmp_path / name).iterdir())

        body = '{"content": "' + "x" * 600 + '"}'
        admissions = [admission(event(f"e{n}", body), node(f"n{n}", vector(1, 2), body)) for n in range(500)]
        bulk = used("bulk", [admissions])
        single = used("single", [[one] for one in admissions])
        assert single[0] <= 3 * bulk[0]
        assert single[1] <= 1.5 * bulk[1]


def _use_in_child(log, results):
    try:
        log.last_seq()
        outcome = "worked"
    except StoreClosed:
        outcome = "StoreClosed"
    log.close()
    results.put((outcome, sqlite_log(log.path, read_only=True).last_seq()))
