"""``kill -9`` at random instants: what was acknowledged is there, the rest wholly or not at all."""

import random
import subprocess
import sys
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage.lock import ShardLocks
from tests.storage.log_writer_child import open_log

CHECKOUT = Path(__file__).resolve().parents[2]


def write_until_killed(store, url, name, delay_s):
    """Run a writer, kill it ``delay_s`` after its first acknowledgement, and return what it acknowledged."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.log_writer_child", str(store), name, *([] if url is None else [url])],
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
    )
    first = child.stdout.readline()
    time.sleep(delay_s)
    child.kill()
    rest, _ = child.communicate(timeout=60)
    assert child.returncode == -9
    lines = (first + rest).decode().split("\n")
    assert lines.pop() == ""  # every acknowledgement came through whole
    return lines


def check(store, url, acknowledged, *, read_only):
    log = open_log(store, url, read_only=read_only)
    rows = log.read(generation=1)
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert log.last_seq() == len(rows)
    found = defaultdict(list)
    for row in rows:
        found[row.subject[:-1]].append((row.subject[-1], row.owner_no, row.vector is not None))
    assert acknowledged <= found.keys()
    for subject, entries in found.items():
        [owner_no] = {owner_no for _, owner_no, _ in entries}
        assert entries == [("e", owner_no, False), ("n", owner_no, True), ("x", owner_no, False)], subject
    records = [row.op_seq for owner_no, _ in log.owners() for row in log.operations(owner_no)]
    assert sorted(records) == list(range(1, len(records) + 1))
    assert [log.verify_chain(owner_no).breaks for owner_no, _ in log.owners()] == [()] * len(log.owners())
    log.close()
    return len(found)


def kill_many_times(store, times, url=None):
    instants = random.Random(times)
    acknowledged: set[str] = set()
    for number in range(times):
        acknowledged.update(write_until_killed(store, url, f"run{number}", instants.uniform(0, 0.08)))
        # A reader looks first, at the side files as the killed writer left them.
        check(store, url, acknowledged, read_only=True)
        check(store, url, acknowledged, read_only=False)
        ShardLocks.acquire(store, [0], now=datetime.now(UTC)).release()
    assert len(acknowledged) >= times


def test_ten_kills(tmp_path):
    kill_many_times(tmp_path, 10)


def test_four_kills_of_a_writer_to_postgresql(tmp_path, postgres):
    kill_many_times(tmp_path, 4, postgres.make_database("kill"))


@pytest.mark.slow
def test_a_hundred_kills_of_a_writer_to_postgresql(tmp_path, postgres):
    kill_many_times(tmp_path, 100, postgres.make_database("kills"))


@pytest.mark.slow
def test_two_hundred_kills(tmp_path):
    kill_many_times(tmp_path, 200)
