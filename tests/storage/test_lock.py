import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from prme_ray.model.errors import StoreLocked
from storage.lock import ShardLocks

NOW = datetime(2026, 5, 4, 10, 0, 0, tzinfo=UTC)

HOLD = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from storage.lock import ShardLocks
locks = ShardLocks.acquire(Path(sys.argv[1]), [0, 1, 2], now=datetime(2026, 5, 4, 10, tzinfo=UTC))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds shards 0 to 2."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_is_named(tmp_path, holder):
    with pytest.raises(StoreLocked) as caught:
        ShardLocks.acquire(tmp_path, [1], now=NOW)
    error = caught.value
    assert (error.pid, error.host, error.since) == (holder.pid, socket.gethostname(), "2026-05-04T10:00:00Z")
    assert error.path == str(tmp_path)


def test_all_or_none(tmp_path, holder):
    ShardLocks.acquire(tmp_path, [3], now=NOW).release()
    with pytest.raises(StoreLocked):
        ShardLocks.acquire(tmp_path, [4, 2, 3], now=NOW)
    with ShardLocks.acquire(tmp_path, [3, 4], now=NOW) as locks:
        assert locks.shards == (3, 4)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_holder_frees_the_lock(tmp_path, holder, number):
    holder.send_signal(number)
    holder.wait(timeout=30)
    assert (
        json.loads((tmp_path / "locks" / "001.json").read_text())["pid"] == holder.pid
    )  # a stale note decides nothing
    with ShardLocks.acquire(tmp_path, [0, 1, 2], now=NOW) as locks:
        assert locks.held


def test_the_same_process_is_refused_too(tmp_path):
    with ShardLocks.acquire(tmp_path, [0], now=NOW):
        with pytest.raises(StoreLocked) as caught:
            ShardLocks.acquire(tmp_path, [0], now=NOW)
        assert caught.value.pid == os.getpid()
        with ShardLocks.acquire(tmp_path, [1], now=NOW):
            pass


def test_release_frees_and_may_be_repeated(tmp_path):
    locks = ShardLocks.acquire(tmp_path, [0, 1], now=NOW)
    assert locks.held
    locks.release()
    locks.release()
    assert not locks.held
    assert locks.shards == ()
    assert sorted(entry.name for entry in (tmp_path / "locks").glob("*.json")) == []
    ShardLocks.acquire(tmp_path, [0, 1], now=NOW).release()


def test_a_missing_note_still_refuses(tmp_path):
    with ShardLocks.acquire(tmp_path, [0], now=NOW):
        (tmp_path / "locks" / "000.json").unlink()
        with pytest.raises(StoreLocked, match="process unknown"):
            ShardLocks.acquire(tmp_path, [0], now=NOW)


def _look(locks, path, results):
    before = locks.held
    locks.release()
    try:
        ShardLocks.acquire(path, [0], now=NOW)
        outcome = "acquired"
    except StoreLocked as error:
        outcome = error.pid
    results.put((before, locks.shards, outcome))


def test_a_forked_child_holds_nothing_and_frees_nothing(tmp_path):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with ShardLocks.acquire(tmp_path, [0], now=NOW) as locks:
        child = context.Process(target=_look, args=(locks, tmp_path, results))
        child.start()
        assert results.get(timeout=30) == (False, (), os.getpid())
        child.join(timeout=30)
        assert locks.held
        with pytest.raises(StoreLocked):
            ShardLocks.acquire(tmp_path, [0], now=NOW)


def test_a_forked_child_does_not_keep_the_lock_alive(tmp_path):
    context = multiprocessing.get_context("fork")
    go = context.Event()
    locks = ShardLocks.acquire(tmp_path, [0], now=NOW)
    child = context.Process(target=go.wait, args=(30,))
    child.start()
    locks.release()
    try:
        ShardLocks.acquire(tmp_path, [0], now=NOW).release()
    finally:
        go.set()
        child.join(timeout=30)
