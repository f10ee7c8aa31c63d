"""What only a database that is elsewhere can do: be slow, be lost, come back, and be asked by two machines."""

import itertools
import subprocess
import sys
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prme_ray.model.errors import (
    InvalidRequest,
    InvalidSettings,
    StoreBusy,
    StoreCorrupt,
    StoreFormatTooNew,
    WriteFailed,
)
from storage import postgres_server
from storage.commit import GroupCommit
from storage.postgres_catalog import Identity, create_identity, read_identity
from storage.postgres_log import existing_shards, postgres_log
from storage.postgres_presence import Presence
from storage.postgres_server import PostgresServer
from storage.records import Operation
from tests.storage.cut_proxy import CutProxy
from tests.storage.log_cases import ANNA, BEN, NOW, Schemas, Writer, admission, event, node, vector

CHECKOUT = Path(__file__).resolve().parents[2]
WAIT_S = 30
SECRET = "hunter2"
_numbers = itertools.count()


@pytest.fixture
def place(postgres):
    made = Schemas(postgres.url())
    yield made
    made.close()


@pytest.fixture
def proxy(postgres):
    made = CutProxy(f"{postgres.folder}/.s.PGSQL.5432")
    yield made
    made.close()


@pytest.fixture
def cut_off(proxy):
    """A place that is reached through the proxy."""
    made = Schemas(f"postgresql://tester@127.0.0.1:{proxy.port}/postgres?gssencmode=disable&sslmode=disable")
    yield made
    made.close()


def subjects(log):
    return [(row.seq, row.subject) for row in log.read()]


class TestWriters:
    def test_writers_that_open_at_once_make_the_tables_once(self, place):
        failures, logs = [], []
        start = threading.Barrier(6)

        def open_one():
            start.wait(WAIT_S)
            try:
                logs.append(place.open())
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=open_one) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert sorted(log.begin_epoch() for log in logs) == [1, 2, 3, 4, 5, 6]
        assert existing_shards(place.server, prefix=place.prefix) == [0]

    def test_a_reader_before_the_first_writer_is_told(self, place):
        with pytest.raises(StoreCorrupt, match="open the store for writing once"):
            place.open(read_only=True)
        assert existing_shards(place.server, prefix=place.prefix) == []

    def test_a_new_epoch_waits_for_the_append_that_is_under_way(self, place, monkeypatch):
        writer = Writer(place.open())
        monkeypatch.setitem(postgres_server._SESSION, "lock_timeout", "200")
        rival = Schemas(place.url)
        rival.prefix = place.prefix
        newer = rival.open()
        with writer.log._writing() as connection:
            connection.exec_driver_sql(
                f"SELECT value FROM {place.prefix}_0000.meta WHERE key = 'writer_epoch' FOR UPDATE"
            )
            with pytest.raises(StoreBusy, match="55P03"):
                newer.begin_epoch()
            assert newer.last_seq() == 0  # readers are not blocked
        assert newer.begin_epoch() == writer.epoch + 1
        rival.close()

    @pytest.mark.parametrize(("value", "error"), [("9", StoreFormatTooNew), ("x", StoreCorrupt), ("1", InvalidRequest)])
    def test_the_version_is_checked(self, place, value, error):
        place.open().close()
        with place.server.connect() as raw:
            raw.execute(f"UPDATE {place.prefix}_0000.meta SET value = %s WHERE key = 'schema_version'", (value,))
        with pytest.raises(error):
            place.open(read_only=True)

    def test_a_store_is_created_once(self, postgres):
        server = PostgresServer(postgres.make_database(f"catalog{next(_numbers)}"))
        made = [Identity(f"00000000-0000-4000-8000-{n:012d}", 8, datetime(2026, 5, 4, tzinfo=UTC)) for n in range(2)]
        assert read_identity(server, prefix="prme") is None
        assert [create_identity(server, prefix="prme", fresh=fresh) for fresh in made] == [made[0]] * 2
        assert read_identity(server, prefix="prme") == made[0]
        assert read_identity(server, prefix="other") is None
        server.close()

    def test_a_copy_and_writers_see_each_other(self, place, monkeypatch):
        monkeypatch.setitem(postgres_server._SESSION, "lock_timeout", "200")
        place = Schemas(place.url)
        writers = [Presence(place.server, prefix=place.prefix) for _ in range(2)]
        with pytest.raises(StoreBusy, match="a writer has it open"):
            Presence(place.server, prefix=place.prefix, alone=True)
        for writer in writers:
            writer.close()
        alone = Presence(place.server, prefix=place.prefix, alone=True)
        with pytest.raises(StoreBusy, match="it is being copied"):
            Presence(place.server, prefix=place.prefix)
        alone.close()
        Presence(place.server, prefix=place.prefix).close()
        place.close()


class TestLostConnections:
    @pytest.mark.parametrize(("cut", "written"), [("after", True), ("before", False)])
    def test_a_commit_without_an_answer_is_unknown_until_it_is_sent_again(self, cut_off, proxy, cut, written):
        writer = Writer(cut_off.open())
        write = admission(event("e1", f'"{SECRET}"'), node("n1", vector(1, 2)))
        proxy.cut = cut
        with pytest.raises(WriteFailed, match="the answer to the commit was lost") as caught:
            writer.append(write)
        assert caught.value.durable is None
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert bool(writer.log.last_seq()) is written
        [result] = writer.append(write)
        assert (result.repeated, result.rows) == (written, tuple(writer.log.read(generation=1)))
        assert subjects(writer.log) == [(1, "e1"), (2, "n1")]

    @pytest.mark.parametrize("cut", ["after", "before"])
    def test_the_committer_finds_out_by_itself(self, cut_off, proxy, cut):
        writer = Writer(cut_off.open())
        told = []
        committer = GroupCommit(
            writer.log, epoch=writer.epoch, clock=lambda: datetime.now(UTC), on_commit=told.extend, timeout_s=WAIT_S
        )
        proxy.cut = cut
        committer.submit_operation(Operation(ANNA, "RETRIEVAL_REQUEST", "r1", b"{}"))
        result = committer.submit(admission(event("e1"), node("n1", vector(1, 2)))).result(WAIT_S)
        committer.close()
        assert told == [result]
        assert result.rows == tuple(writer.log.read(generation=1))
        assert [row.target for row in writer.log.operations(1)] == ["r1"]
        assert committer.state()["operations_lost"] == 0

    def test_a_connection_lost_inside_a_transaction_wrote_nothing(self, place, postgres):
        writer = Writer(place.open())
        with pytest.raises(WriteFailed, match="before the commit") as caught, writer.log._writing() as connection:
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            connection.exec_driver_sql(f"UPDATE {place.prefix}_0000.meta SET value = '77' WHERE key = 'writer_epoch'")
            postgres.sql(f"SELECT pg_terminate_backend({pid}, 5000)")
            connection.exec_driver_sql("SELECT 1")
        assert caught.value.durable is False
        [result] = writer.append(admission(event("e1")))
        assert result.rows[0].seq == 1

    def test_a_server_that_is_down_is_busy_and_is_found_again(self, place, postgres):
        writer = Writer(place.open())
        writer.append(admission(event("e1")))
        postgres.stop("immediate")
        try:
            for call in (writer.log.last_seq, lambda: writer.append(admission(event("e2")))):
                with pytest.raises(StoreBusy, match="the database of"):
                    call()
        finally:
            postgres.start()
        writer.append(admission(event("e2")))
        assert subjects(writer.log) == [(1, "e1"), (2, "e2")]

    def test_more_threads_than_connections_take_turns(self, place):
        writer = Writer(place.open())
        writer.append(*(admission(event(f"e{number}"), owner=BEN) for number in range(20)))
        found = []
        threads = [threading.Thread(target=lambda: found.append(len(writer.log.read()))) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [20] * 40


class TestSecrets:
    @pytest.mark.parametrize(
        "url",
        [
            f"postgresql://user:{SECRET}@127.0.0.1:1/none",
            f"postgresql://user:{SECRET}@127.0.0.1:notaport/none",
            f"postgresql://user@127.0.0.1:1/none?password={SECRET}",
            f"mysql://user:{SECRET}@host/none",
            f"postgresql://user:{SECRET}@[::/none",
        ],
    )
    def test_no_message_holds_the_password(self, url):
        with pytest.raises((StoreBusy, InvalidSettings)) as caught:
            postgres_log(PostgresServer(url), prefix="prme", shard=0)
        assert SECRET not in "".join(traceback.format_exception(caught.value))

    @pytest.mark.parametrize(("database", "user"), [("nosuch", "tester"), ("postgres", "nobody")])
    def test_a_refused_login_is_a_wrong_setting(self, postgres, database, user):
        with pytest.raises(InvalidSettings, match="does not exist"):
            postgres_log(PostgresServer(postgres.url(database, user)), prefix="prme", shard=0)

    @pytest.mark.parametrize("prefix", ["", "Prme", "a-b", "x" * 41, '"; DROP SCHEMA public'])
    def test_a_prefix_is_a_plain_name(self, postgres, prefix):
        with pytest.raises(InvalidSettings, match="a letter first"):
            postgres_log(PostgresServer(postgres.url()), prefix=prefix, shard=0)

    def test_a_row_that_is_refused_shows_no_memory(self, place):
        writer = Writer(place.open())
        with place.server.connect() as raw:
            raw.execute(f"ALTER TABLE {place.prefix}_0000.entries ADD CHECK (length(payload) < 10)")
        with pytest.raises(WriteFailed, match="23514") as caught:
            writer.append(admission(event("e1", f'"{SECRET} and more"')))
        assert caught.value.durable is False
        assert SECRET not in "".join(traceback.format_exception(caught.value))

    def test_without_the_driver_it_says_what_to_install(self):
        code = (
            "import sys; sys.modules['psycopg'] = None\n"
            "from storage.postgres_server import PostgresServer\n"
            f"PostgresServer('postgresql://u:{SECRET}@h/d')"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=False, capture_output=True, text=True)
        assert "pip install 'prme-ray[postgres]'" in done.stderr
        assert SECRET not in done.stderr.splitlines()[-1]


def test_commits_wait_for_the_disk(place):
    with place.open()._writing() as connection:
        names = ("synchronous_commit", "transaction_isolation", "fsync", "lock_timeout", "search_path")
        found = {name: connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names}
    assert found.pop("search_path") == '"$user", public'
    assert found == {
        "synchronous_commit": "on",
        "transaction_isolation": "read committed",
        "fsync": "on",
        "lock_timeout": "5s",
    }


def test_look_ups_use_the_indexes(place):
    writer = Writer(place.open())
    for start in range(0, 3000, 500):
        names = [f"{number:06d}" for number in range(start, start + 500)]
        writer.log.append(
            [admission(event(name), owner=BEN if number % 3 else ANNA) for number, name in enumerate(names)],
            recorded_at=NOW,
            epoch=writer.epoch,
        )
    schema = f"{place.prefix}_0000"
    with place.server.connect() as raw:
        raw.execute(f"ANALYZE {schema}.entries")
        for query in (
            f"SELECT max(seq) FROM {schema}.entries",
            f"SELECT owner_no, kind, subject FROM {schema}.entries WHERE subject IN ('000001', '000002')",
            f"SELECT seq, owner_seq FROM {schema}.entries WHERE owner_no = 1 ORDER BY seq DESC LIMIT 1",
            f"SELECT * FROM {schema}.entries WHERE owner_no = 1 AND seq > 2990 ORDER BY seq",
        ):
            plan = "\n".join(row[0] for row in raw.execute(f"EXPLAIN {query}"))
            assert "Index" in plan, (query, plan)
            assert "Seq Scan" not in plan, (query, plan)
