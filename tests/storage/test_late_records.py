"""Records whose bytes are made when they are written: by the committer, bounded, and never at others' cost."""

import logging
import threading

import pytest

from prme_ray.model.errors import InvalidRequest, WriteFailed
from storage.commit import _BESIDE_WRITES
from storage.records import LATE_RECORDS, LateOperation, Operation
from tests.storage.committing import WAIT_S, blocked
from tests.storage.log_cases import ANNA, admission, event

SECRET = "the memory's own words"


class Maker:
    """Makes a record's bytes and notes in which thread."""

    def __init__(self):
        self.threads = []

    def late(self, target, payload=b"late"):
        def make():
            self.threads.append(threading.current_thread().name)
            return payload

        return LateOperation(ANNA, "RETRIEVAL_REQUEST", target, make)


def broken(target):
    def make():
        raise ValueError(SECRET)

    return LateOperation(ANNA, "RETRIEVAL_REQUEST", target, make)


def targets(log):
    return [row.target for row in log.operations(1)]


def test_the_committer_makes_the_bytes_and_they_share_a_commit(log, start, readers):
    committer, maker = start(), Maker()
    blocked(committer, readers)
    assert all(committer.submit_operation(maker.late(f"r{number}")) for number in range(3))
    assert maker.threads == []
    readers.open.set()
    committer.flush()
    assert maker.threads == ["prme-ray-commit"] * 3
    assert [(row.target, row.payload) for row in log.operations(1)] == [(f"r{n}", b"late") for n in range(3)]
    assert committer.state()["commits"] == 2


def test_bytes_that_cannot_be_made_lose_that_record_alone(log, start, readers, caplog):
    committer, maker = start(), Maker()
    blocked(committer, readers)
    with caplog.at_level(logging.WARNING):
        for one in (maker.late("r0"), broken("r1"), maker.late("r2"), maker.late("r3", payload="no bytes")):
            assert committer.submit_operation(one)
        written = committer.submit(admission(event("e1")))
        readers.open.set()
        assert written.result(WAIT_S).rows
        committer.flush()
    assert targets(log) == ["r0", "r2"]
    state = committer.state()
    assert (state["operations_lost"], state["broken"], state["last_error"]) == (2, None, None)
    assert [entry.getMessage() for entry in caplog.records] == ["operation records are being lost: ValueError"]
    assert SECRET not in caplog.text
    assert committer.submit_operation(maker.late("r4"))


def test_whoever_waits_gets_the_row_or_the_exception(log, start):
    committer, maker = start(), Maker()
    assert committer.record(maker.late("r0")).result(WAIT_S) == log.operations(1)[0]
    assert committer.submit_operation(maker.late("r1"), wait=True)
    assert targets(log) == ["r0", "r1"]
    with pytest.raises(ValueError, match=SECRET):
        committer.submit_operation(broken("r2"), wait=True)
    with pytest.raises(InvalidRequest, match="payload"):
        committer.submit_operation(maker.late("r3", payload=None), wait=True)
    assert targets(log) == ["r0", "r1"]


def test_where_very_many_wait_the_caller_makes_the_bytes(start, readers, log):
    committer, maker = start(), Maker()
    blocked(committer, readers)
    here = threading.current_thread().name
    for number in range(LATE_RECORDS + 3):
        assert committer.submit_operation(maker.late(f"r{number}"))
    assert maker.threads == [here] * 3
    assert committer.submit_operation(broken("bad")) is False
    with pytest.raises(ValueError, match=SECRET):
        committer.submit_operation(broken("bad"), wait=True)
    readers.open.set()
    committer.flush()
    assert len(log.operations(1)) == LATE_RECORDS + 3
    assert committer.submit_operation(maker.late("later"))
    committer.flush()
    assert maker.threads.count(here) == 3


def test_a_write_waits_for_few_records(log, start, readers):
    committer, maker, made = start(), Maker(), []
    blocked(committer, readers)
    for number in range(3 * _BESIDE_WRITES):
        committer.submit_operation(maker.late(f"r{number}"))
    readers.look = lambda: made.append(len(maker.threads))
    committer.submit(admission(event("e1")))
    readers.open.set()
    committer.flush()
    assert made == [_BESIDE_WRITES]
    assert len(log.operations(1)) == 3 * _BESIDE_WRITES
    assert committer.state()["commits"] == 3


def test_the_answer_is_false_until_a_commit_succeeds_again(log, start, place):
    committer, maker = start(), Maker()
    assert committer.submit_operation(maker.late("r0"))
    committer.flush()
    with place.refusing("entries", "disk is full"):
        with pytest.raises(WriteFailed):
            committer.submit(admission(event("e1"))).result(WAIT_S)
        assert committer.submit_operation(maker.late("r1")) is False
        committer.flush()
    # It was tried all the same, and the log took it.
    assert targets(log) == ["r0", "r1"]
    assert committer.submit_operation(maker.late("r2")) is True
    assert committer.state()["operations_lost"] == 0


def test_records_that_a_failing_log_loses_are_said_to_be(log, start, place):
    committer = start()
    committer.submit_operation(Operation(ANNA, "RETRIEVAL_REQUEST", "r0", b""), wait=True)
    with place.refusing("operations", "disk is full"):
        assert committer.submit_operation(Maker().late("r1"))  # nobody can know yet
        committer.flush()
        assert committer.submit_operation(Maker().late("r2")) is False
        committer.flush()
        with pytest.raises(WriteFailed, match="disk is full"):
            committer.submit_operation(Maker().late("r3"), wait=True)
    assert committer.state()["operations_lost"] == 3
    assert committer.submit_operation(Maker().late("r4")) is False
    committer.flush()
    assert committer.submit_operation(Maker().late("r5")) is True
    committer.flush()
    assert targets(log) == ["r0", "r4", "r5"]
    assert log.verify_chain(1).whole


def test_nobody_waits_while_the_bytes_are_made(start):
    committer, release = start(), threading.Event()

    def make():
        assert release.wait(WAIT_S)
        return b""

    assert committer.submit_operation(LateOperation(ANNA, "A", "r", make))
    release.set()
    committer.flush()
    assert committer.state()["operations_lost"] == 0
