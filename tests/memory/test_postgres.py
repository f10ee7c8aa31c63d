"""A memory whose log is in PostgreSQL: the same answers, folders that may be lost, machines that take over."""

import itertools
import shutil
from datetime import timedelta

import pytest

from prme_ray import Memory
from prme_ray.model.errors import (
    InvalidRequest,
    InvalidSettings,
    ReadOnlyStore,
    StoreCorrupt,
    StoreFormatTooNew,
    WriteFailed,
    WriterFenced,
)
from tests.memory.tools import START, Clock, Ids, WordEncoder, same_request
from tests.storage.cut_proxy import CutProxy

QUERIES = ["What is the cat called?", "Where does Caroline live?", "Oscar"]
LATER = START + timedelta(days=1)
_numbers = itertools.count()


@pytest.fixture
def url(postgres):
    return postgres.make_database(f"memory{next(_numbers)}")


def open_memory(path, url=None, *, shards=2, ids="ids", timeout_s=30.0, **options):
    settings = {"storage": {"virtual_shards": shards, "database_url": url, "write_timeout_s": timeout_s}}
    return Memory.open(path, settings=settings, encoder=WordEncoder(), clock=Clock(), new_id=Ids(ids), **options)


def fill(memory):
    for owner in ("dana", "erik", "fay"):
        for number in range(4):
            memory.store(f"Caroline: note {number} of {owner}, the cat is called Oscar", owner=owner, session_id="s1")
            memory.store(f"Caroline lives in Oslo, says {owner} {number}", owner=owner)


def answers(memory):
    asked = itertools.product(("dana", "erik", "fay"), QUERIES)
    found = [same_request(memory.retrieve(query, owner=owner, reference_time=LATER)) for owner, query in asked]
    for answer in found:
        del answer["metadata"]["receipt_persisted"]  # a reader persists none
    return found


def test_answers_are_those_of_a_store_in_files_and_folders_may_be_lost(tmp_path, url):
    with open_memory(tmp_path / "files") as files, open_memory(tmp_path / "one", url) as memory:
        fill(files)
        fill(memory)
        expected = answers(files)
        assert answers(memory) == expected
        assert memory.health().healthy
        assert not list((tmp_path / "one").rglob("*.sqlite*"))
    shutil.rmtree(tmp_path / "one")
    with open_memory(tmp_path / "one", url) as memory:
        assert answers(memory) == expected
        memory.store("Caroline: the cat is asleep", owner="dana")
        assert memory.health().healthy
    shutil.rmtree(tmp_path / "one" / "shards")
    with open_memory(tmp_path / "one", url) as memory:
        assert memory.retrieve("asleep", owner="dana").metadata.snapshot > expected[0]["metadata"]["snapshot"]
        assert memory.health().healthy


def test_a_second_machine_reads_beside_the_writer_and_then_takes_over(tmp_path, url):
    with open_memory(tmp_path / "one", url, shards=3) as first:
        fill(first)
        with open_memory(tmp_path / "reader", url, read_only=True) as reader:
            assert answers(reader) == answers(first)
            late = first.store("Caroline: the cat is asleep", owner="dana")
            assert reader.retrieve("asleep", owner="dana").metadata.snapshot == late.sequence
            with pytest.raises(ReadOnlyStore):
                reader.store("x", owner="dana")
        assert not (tmp_path / "reader").exists()
        with open_memory(tmp_path / "two", url, shards=9, ids="second") as second:
            assert second.health().virtual_shards == 3
            second.store("Caroline: the cat woke up", owner="dana")
            with pytest.raises(WriterFenced):
                first.store("Caroline: I was cut off", owner="dana")
            assert answers(second) != answers(first)
            assert second.health().healthy


def test_a_folder_and_a_database_must_be_of_one_store(tmp_path, url, postgres):
    with pytest.raises(InvalidRequest, match="open without read_only to create one"):
        open_memory(tmp_path / "none", url, read_only=True)
    open_memory(tmp_path / "files").close()
    with pytest.raises(StoreCorrupt, match=r"jobs\.copy_log"):
        open_memory(tmp_path / "files", url)
    with open_memory(tmp_path / "one", url) as memory:
        fill(memory)
    with pytest.raises(InvalidSettings, match="PRME_DATABASE_URL"):
        open_memory(tmp_path / "one")
    database = f"memory{next(_numbers)}"
    empty = postgres.make_database(database)
    with pytest.raises(StoreCorrupt, match="holds no store"):
        open_memory(tmp_path / "one", empty)
    open_memory(tmp_path / "other", empty, ids="of another store").close()
    for read_only in (True, False):
        with pytest.raises(StoreCorrupt, match="the folder was made from store"):
            open_memory(tmp_path / "one", empty, read_only=read_only)
    postgres.sql("UPDATE prme.catalog SET store_id = 'x'", database)
    with pytest.raises(StoreCorrupt, match="catalog cannot be read"):
        open_memory(tmp_path / "other", empty)
    postgres.sql("UPDATE prme.catalog SET format = 99", database)
    with pytest.raises(StoreFormatTooNew):
        open_memory(tmp_path / "other", empty)


def test_a_server_that_restarts_is_found_again_without_reopening(tmp_path, url, postgres):
    with open_memory(tmp_path / "one", url) as memory:
        fill(memory)
        expected = answers(memory)
        postgres.stop()
        postgres.start()
        stored = memory.store("Caroline: the cat is asleep", owner="dana")
        assert memory.retrieve("asleep", owner="dana").metadata.snapshot == stored.sequence
        assert answers(memory)[3:] == expected[3:]


def test_a_write_whose_fate_stayed_unknown_is_seen_with_the_owners_next_one(tmp_path, url, postgres):
    proxy = CutProxy(f"{postgres.folder}/.s.PGSQL.5432")
    database = url.rpartition("@/")[2].partition("?")[0]
    through = f"postgresql://tester@127.0.0.1:{proxy.port}/{database}?sslmode=disable&gssencmode=disable"
    with open_memory(tmp_path / "one", through, timeout_s=0.3) as memory:
        first = memory.store("Caroline: the cat is called Oscar", owner="dana")
        assert memory.retrieve("cat", owner="dana").metadata.snapshot == first.sequence  # dana is in memory now
        proxy.cut, proxy.stay_down = "after", True
        with pytest.raises(WriteFailed, match="the answer to the commit was lost") as caught:
            memory.store("Caroline: the dog is called Bello", owner="dana")
        assert caught.value.durable is None
        proxy.stay_down = False
        last = memory.store("Caroline: the bird is called Coco", owner="dana")
        answer = memory.retrieve("What is the dog called?", owner="dana")
        assert answer.metadata.snapshot == last.sequence
        assert "Bello" in answer.bundle.context
        # Health tells of the failure; every channel holds what the log does.
        failures = [text for shard in memory.health().shards for text in shard.disagreements]
        assert failures != []
        assert all(text.startswith("committer: ") for text in failures)
    proxy.close()
