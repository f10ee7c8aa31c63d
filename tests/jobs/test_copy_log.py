"""A store goes to a database and back: the same rows, the same answers, and no half copy passes for a whole."""

import itertools
import shutil
import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.copy_log import main
from prme_ray import Memory
from prme_ray.model.errors import WriterFenced
from storage.records import OwnerKey
from tests.memory.tools import START, Clock, Ids, WordEncoder, same_request

CHECKOUT = Path(__file__).resolve().parents[2]
OWNERS = ("dana", "erik", "fay", "gus")
LATER = START + timedelta(days=1)
_numbers = itertools.count()


@pytest.fixture
def database(postgres):
    name = f"copy{next(_numbers)}"
    postgres.make_database(name)
    return name


def open_memory(path, url=None, *, ids="ids"):
    settings = {"storage": {"virtual_shards": 3, "database_url": url}}
    return Memory.open(path, settings=settings, encoder=WordEncoder(), clock=Clock(), new_id=Ids(ids))


def fill(memory):
    for owner, number in itertools.product(OWNERS, range(5)):
        memory.store(f"Caroline: grün 🦊 note {number} of {owner} on Oscar", owner=owner, session_id="s1")
    memory.store_many([f"fact {number}" for number in range(30)], owner=OWNERS[0])
    memory.store_node("Caroline likes tea", owner=OWNERS[1], node_type="preference", pinned=True)
    for owner in OWNERS:
        memory.retrieve("Who is Oscar?", owner=owner)


def answers(memory):
    asked = itertools.product(OWNERS, ("Who is Oscar?", "tea", "fact 7"))
    return [same_request(memory.retrieve(query, owner=owner, reference_time=LATER)) for owner, query in asked]


def copy(source, target):
    return main(["--from", str(source), "--to", str(target)])


def test_to_a_database_and_back_with_the_same_answers(tmp_path, postgres, database, capsys):
    with open_memory(tmp_path / "files") as memory:
        fill(memory)
        expected = answers(memory)
    url = postgres.url(database)
    assert copy(tmp_path / "files", url) == 0
    there = capsys.readouterr().out
    assert copy(url, tmp_path / "back") == 0
    back = capsys.readouterr().out
    assert there == back
    assert "the same on both sides" in back
    with open_memory(tmp_path / "cache", url) as memory:
        assert answers(memory) == expected
        assert memory.health().healthy
    with open_memory(tmp_path / "back", ids="later") as memory:
        assert answers(memory) == expected
        memory.store("Caroline: one more on Oscar", owner="dana")
        assert memory.health().healthy


def chains(path, url=None):
    with open_memory(path, url) as memory:
        keys = [OwnerKey("default", owner) for owner in OWNERS]
        return [(memory._store.verify_chain(key), memory._store.operations(key)) for key in keys]


def test_records_keep_their_chains_and_a_broken_one_is_reported(tmp_path, postgres, database, capsys):
    with open_memory(tmp_path / "files") as memory:
        fill(memory)
    url = postgres.url(database)
    expected = chains(tmp_path / "files")
    assert all(report.whole and report.checked for report, _ in expected)
    assert copy(tmp_path / "files", url) == 0
    assert copy(url, tmp_path / "back") == 0
    assert "warning" not in capsys.readouterr().err
    assert chains(tmp_path / "cache", url) == chains(tmp_path / "back") == expected
    for log in (tmp_path / "back").rglob("log.sqlite"):
        with sqlite3.connect(log) as raw:
            raw.execute("UPDATE operations SET target = 'another' WHERE owner_op_seq = 1")
    assert copy(tmp_path / "back", tmp_path / "again") == 0
    assert f"{len(OWNERS)} owners have records that are not as they were written" in capsys.readouterr().err
    assert [report for report, _ in chains(tmp_path / "again")] == [report for report, _ in chains(tmp_path / "back")]


def test_from_one_database_into_another_name(tmp_path, postgres, database):
    url = postgres.url(database)
    with open_memory(tmp_path / "one", url) as memory:
        fill(memory)
        expected = answers(memory)
    assert copy(url, f"{url}#other_name") == 0
    settings = {"storage": {"database_url": url, "database_prefix": "other_name"}}
    with Memory.open(tmp_path / "two", settings=settings, encoder=WordEncoder(), clock=Clock(), new_id=Ids()) as memory:
        assert answers(memory) == expected


def test_what_has_a_writer_is_not_copied_and_what_is_there_is_not_replaced(tmp_path, postgres, database, capsys):
    url = postgres.url(database)
    with open_memory(tmp_path / "files") as memory:
        fill(memory)
        assert copy(tmp_path / "files", url) == 1
        assert "is open for writing" in capsys.readouterr().err
    assert copy(tmp_path / "files", url) == 0
    assert copy(tmp_path / "files", url) == 1
    assert "a database without a store of that name" in capsys.readouterr().err
    with open_memory(tmp_path / "cache", url) as memory:
        assert copy(url, tmp_path / "back") == 1
        assert "a writer has it open" in capsys.readouterr().err
        assert memory.health().healthy
    assert copy(url, tmp_path / "files") == 1
    assert "a missing or an empty folder" in capsys.readouterr().err
    assert copy(tmp_path / "none", tmp_path / "back") == 1
    assert copy(f"{url}#none", tmp_path / "back") == 1
    assert not (tmp_path / "back").exists()


def test_a_writer_that_nobody_saw_cannot_write_after_the_copy(tmp_path, postgres, database):
    url = postgres.url(database)
    with open_memory(tmp_path / "cache", url) as memory:
        fill(memory)
        # The sign of the writer goes with its connection, as in a restart of the server.
        postgres.sql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'prme-ray'")
        assert copy(url, tmp_path / "back") == 0
        with pytest.raises(WriterFenced):
            memory.store("too late", owner="dana")


def test_a_copy_that_differs_is_refused_and_leaves_nothing(tmp_path, postgres, database, capsys):
    with open_memory(tmp_path / "files") as memory:
        fill(memory)
    postgres.sql(
        """
        CREATE FUNCTION public.lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE FUNCTION public.spoil() RETURNS event_trigger LANGUAGE plpgsql AS $$
        DECLARE made record;
        BEGIN
            FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_identity LIKE '%.vectors' LOOP
                EXECUTE 'CREATE OR REPLACE TRIGGER lose BEFORE INSERT ON ' || made.object_identity
                    || ' FOR EACH ROW WHEN (NEW.seq = 2) EXECUTE FUNCTION public.lose()';
            END LOOP;
        END $$;
        CREATE EVENT TRIGGER spoil ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.spoil();
        """,
        database,
    )
    assert copy(tmp_path / "files", postgres.url(database)) == 1
    assert "table vectors has" in capsys.readouterr().err
    assert postgres.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'prme%'", database) == [(0,)]


def test_a_copy_that_is_killed_is_no_store(tmp_path, postgres, database, capsys):
    with open_memory(tmp_path / "files") as memory:
        fill(memory)
    url = postgres.url(database)
    for target in (url, tmp_path / "copy"):
        code = (
            "import os, sys; from datetime import UTC, datetime; from prme_ray.copying import copy_store\n"
            "copy_store(sys.argv[1], sys.argv[2], now=datetime.now(UTC), copied=lambda shard: os.kill(os.getpid(), 9))"
        )
        arguments = [sys.executable, "-c", code, str(tmp_path / "files"), str(target)]
        assert subprocess.run(arguments, cwd=CHECKOUT, check=False).returncode == -9
    assert copy(tmp_path / "files", url) == 1
    assert copy(tmp_path / "files", tmp_path / "copy") == 1
    assert "cut short: delete it" in capsys.readouterr().err
    with pytest.raises(Exception, match="a copy that was cut short"):
        open_memory(tmp_path / "cache", url)
    shutil.rmtree(tmp_path / "copy.partial")
    assert copy(tmp_path / "files", tmp_path / "copy") == 0
