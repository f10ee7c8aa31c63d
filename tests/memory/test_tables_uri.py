"""A memory whose LanceDB tables are on a URI: the same answers, tables that may be lost, writers that take over."""

import itertools
import os
import shutil
import socket
import subprocess
import sys
import time
from datetime import timedelta

import httpx
import pytest

from prme_ray import Memory
from prme_ray.model.errors import InvalidSettings, WriterFenced
from tests.memory.tools import START, Clock, Ids, WordEncoder, same_request

OWNERS = ("dana", "erik", "fay")
QUERIES = ("What is the cat called?", "Where does Caroline live?")
LATER = START + timedelta(days=1)
_numbers = itertools.count()


def open_memory(path, ids="ids", read_only=False, **storage):
    settings = {"storage": {"virtual_shards": 2} | storage}
    parts = {"encoder": WordEncoder(), "clock": Clock(), "new_id": Ids(ids)}
    return Memory.open(path, settings=settings, read_only=read_only, **parts)


def fill(memory):
    for owner in OWNERS:
        for number in range(4):
            memory.store(f"Caroline: note {number} of {owner}, the cat is called Oscar", owner=owner, session_id="s1")
            memory.store(f"Caroline lives in Oslo, says {owner} {number}", owner=owner)


def answers(memory):
    asked = itertools.product(OWNERS, QUERIES)
    found = [same_request(memory.retrieve(query, owner=owner, reference_time=LATER)) for owner, query in asked]
    for answer in found:
        del answer["metadata"]["receipt_persisted"]  # a reader persists none
    return found


def rows(memory):
    """Rows of the node tables, and how far both tables of each shard are."""
    shards = [shard for shard in memory._store.existing_shards() if shard.log.last_seq()]
    for shard in shards:
        shard.nodes.refresh()
    return sum(shard.nodes.count() for shard in shards), [shard.nodes.position for shard in shards]


@pytest.fixture
def expected(tmp_path):
    with open_memory(tmp_path / "plain") as memory:
        fill(memory)
        return answers(memory)


@pytest.mark.parametrize("budget", [1 << 30, 1], ids=["in memory", "searched in the table"])
def test_answers_are_those_of_tables_in_the_folder_and_tables_may_be_lost(tmp_path, expected, budget):
    tables = tmp_path / "tables"
    where = {"tables_uri": tables.as_uri(), "resident_bytes": budget}
    with open_memory(tmp_path / "store", **where) as memory:
        fill(memory)
        memory.flush()
        assert answers(memory) == expected
        assert rows(memory)[0] >= 24
        with open_memory(tmp_path / "store", read_only=True, **where) as reader:
            assert (answers(reader), rows(reader)) == (expected, rows(memory))
        assert memory.health().healthy
        store_id = memory.health().store_id
    assert [path.name for path in tables.iterdir()] == [store_id]
    assert not list((tmp_path / "store").rglob("*.lance"))
    shutil.rmtree(tables)
    with open_memory(tmp_path / "store", read_only=True, **where) as reader:
        assert (answers(reader), rows(reader)[0], tables.exists()) == (expected, 0, False)
    with open_memory(tmp_path / "store", **where) as memory:
        assert answers(memory) == expected
        memory.flush()
        assert memory.health().healthy
        assert rows(memory)[0] >= 24


def test_tables_that_are_lost_under_an_open_writer_come_back(tmp_path, expected):
    tables = tmp_path / "tables"
    with open_memory(tmp_path / "store", tables_uri=tables.as_uri(), projection_idle_s=600) as memory:
        fill(memory)
        memory.flush()
        before = rows(memory)
        shutil.rmtree(tables)
        memory._store.residents.clear()
        assert answers(memory) == expected
        assert rows(memory)[0] == 0
        memory.store("Caroline: the cat is asleep", owner="dana")
        memory.store("Caroline: the cat is asleep", owner="erik")
        memory.store("Caroline: the cat is asleep", owner="fay")
        memory.flush()
        assert rows(memory)[0] == before[0] + 3
        assert memory.health().healthy


def test_stores_do_not_share_tables(tmp_path):
    where = {"tables_uri": (tmp_path / "tables").as_uri()}
    with open_memory(tmp_path / "one", "one", **where) as one, open_memory(tmp_path / "two", "two", **where) as two:
        fill(one)
        two.store("Caroline: something else", owner="dana")
        one.flush()
        two.flush()
        assert rows(two)[0] < rows(one)[0]
        assert len(list((tmp_path / "tables").iterdir())) == 2
        assert one.health().healthy
        assert two.health().healthy


def test_tables_in_memory_are_made_again_at_every_open(tmp_path, expected):
    for _ in range(2):
        with open_memory(tmp_path / "store", tables_uri="memory://tables", projection_batch_rows=4) as memory:
            if not memory.health().shards:
                fill(memory)
            memory.flush()
            assert answers(memory) == expected
            assert rows(memory)[0] >= 24
            health = memory.health()
            assert health.healthy
            assert {shard.projector["tables"]["nodes"]["files"] for shard in health.shards} == {None}


@pytest.mark.parametrize("uri", ["", "tables", "db://account", "S3://bucket"])
def test_what_is_no_uri_is_refused(tmp_path, uri):
    with pytest.raises(InvalidSettings, match="tables_uri"):
        open_memory(tmp_path / "store", tables_uri=uri)


def test_a_machine_takes_over_the_tables_and_readers_load_them(tmp_path, postgres, expected):
    database = postgres.make_database(f"tables{next(_numbers)}")
    where = {"database_url": database, "tables_uri": (tmp_path / "tables").as_uri(), "projection_idle_s": 600}
    with open_memory(tmp_path / "one", **where) as first:
        fill(first)
        first.flush()
        for owner in OWNERS:
            first.store("Caroline: the cat is asleep", owner=owner)
        with open_memory(tmp_path / "two", "second", **where) as second:
            for owner in OWNERS:
                second.store("Caroline: the cat woke up", owner=owner)
            with pytest.raises(WriterFenced):
                first.flush()
            states = [shard.projector for shard in first.health().shards]
            assert any(state["cut_off"] for state in states)
            assert not first.health().healthy
            second.flush()
            first.close()  # leaves the tables to their new writer
            found = answers(second)
            assert second.health().healthy
            with open_memory(tmp_path / "three", read_only=True, **where) as reader:
                assert (answers(reader), rows(reader)) == (found, rows(second))
                assert all(position > 0 for position in rows(reader)[1])


@pytest.fixture
def bucket(monkeypatch):
    """An object store on this machine, by moto's server."""
    pytest.importorskip("moto.server", reason="moto is not installed (pip install 'moto[s3]' flask flask-cors)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            end = time.monotonic() + 60
            while True:
                try:
                    assert httpx.put(f"{url}/memory").is_success
                    break
                except httpx.TransportError:
                    assert server.poll() is None
                    assert time.monotonic() < end, "moto's server did not start"
                    time.sleep(0.1)
            settings = {"ENDPOINT": url, "ALLOW_HTTP": "true", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
            for name, value in (settings | {"REGION": "us-east-1"}).items():
                monkeypatch.setenv(f"AWS_{name}", value)
            yield "s3://memory/prefix"
        finally:
            server.terminate()


def test_answers_are_the_same_with_tables_in_s3(tmp_path, bucket, expected):
    where = {"tables_uri": bucket, "projection_batch_rows": 8}
    with open_memory(tmp_path / "store", **where) as memory:
        fill(memory)
        memory.flush()
        assert answers(memory) == expected
        with open_memory(tmp_path / "store", read_only=True, **where) as reader:
            assert (answers(reader), rows(reader)) == (expected, rows(memory))
        health = memory.health()
        assert health.healthy
        assert {shard.projector["tables"]["nodes"]["files"] for shard in health.shards} == {None}
    with open_memory(tmp_path / "store", **where) as memory:
        assert rows(memory)[0] >= 24
        assert answers(memory) == expected
