import logging
import multiprocessing
import threading
import time
from concurrent.futures import CancelledError, wait

import pytest

from prme_ray.model.errors import DuplicateSubject, StoreBusy, StoreClosed, WriteFailed, WriterFenced
from prme_ray.model.times import micros
from storage.commit import _COMPANY
from storage.records import Operation
from tests.storage.committing import NOW, WAIT_S, blocked
from tests.storage.log_cases import ANNA, admission, event, node


def record(target, payload=b"{}"):
    return Operation(ANNA, "RETRIEVAL_REQUEST", target, payload)


def test_acknowledged_is_durable_visible_and_timed(log, readers, start):
    result = start().submit(admission(event("e1"), node("n1"))).result(WAIT_S)
    assert result.rows == tuple(log.read())
    assert {row.recorded_at for row in result.rows} == {micros(NOW)}
    assert readers.batches == [["e1", "n1"]]


def test_not_acknowledged_before_it_is_visible(log, readers, start):
    first, [second] = blocked(start(), readers, "second")
    assert log.last_seq() == 1  # durable already
    assert not first.done()
    readers.open.set()
    assert [first.result(WAIT_S).rows[0].seq, second.result(WAIT_S).rows[0].seq] == [1, 2]


def test_everything_that_waits_shares_a_commit(readers, start):
    committer = start(max_rows=4)
    first, others = blocked(committer, readers, *"abcdef")
    readers.open.set()
    wait([first, *others], WAIT_S)
    assert readers.batches == [["first"], ["a", "b", "c", "d"], ["e", "f"]]
    assert committer.state()["commits"] == 3


def test_patient_writes_share_a_commit_with_the_first_that_is_not(readers, start):
    committer = start()
    patient = [committer.submit(admission(event(subject)), patient=True) for subject in "abc"]
    last = committer.submit(admission(event("d")))
    wait([*patient, last], WAIT_S)
    assert readers.batches == [["a", "b", "c", "d"]]


def test_patience_ends(start):
    assert start().submit(admission(event("a")), patient=True).result(WAIT_S).rows[0].seq == 1


def test_a_crowd_a_flush_and_a_close_end_patience(monkeypatch, readers, start):
    monkeypatch.setattr("storage.commit._RECORD_PATIENCE_S", 3600.0)
    committer = start()
    crowd = [committer.submit(admission(event(f"a{number:02d}")), patient=True) for number in range(_COMPANY)]
    wait(crowd, WAIT_S)
    assert [len(batch) for batch in readers.batches] == [_COMPANY]
    for end, subject in ((committer.flush, "b"), (committer.close, "c")):
        kept_back = committer.submit(admission(event(subject)), patient=True)
        end()
        assert kept_back.done()
        assert readers.batches[-1] == [subject]


def test_a_refused_admission_does_not_hold_up_its_commit(readers, start):
    committer = start()
    _, [good] = blocked(committer, readers, "a")
    bad, last = (committer.submit(admission(event(name, "[]"))) for name in ("first", "b"))
    readers.open.set()
    with pytest.raises(DuplicateSubject, match="already has event 'first'"):
        bad.result(WAIT_S)
    assert [good.result(WAIT_S).rows[0].seq, last.result(WAIT_S).rows[0].seq] == [2, 3]
    assert readers.batches == [["first"], ["a", "b"]]


def test_from_many_threads_every_write_once_and_in_order(log, readers, start):
    committer = start()

    def work(name):
        for number in range(20):
            committer.submit(admission(event(f"{name}{number:02d}"))).result(WAIT_S)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    logged = [row.subject for row in log.read()]
    assert sorted(logged) == [f"{name}{number:02d}" for name in "abcd" for number in range(20)]
    assert [subject for batch in readers.batches for subject in batch] == logged
    assert [subject for subject in logged if subject[0] == "a"] == [f"a{number:02d}" for number in range(20)]


def test_full_queue_is_busy_after_the_timeout(readers, start):
    committer = start(queue_limit=2, timeout_s=0.05)
    first, others = blocked(committer, readers, "a", "b")
    with pytest.raises(StoreBusy) as caught:
        committer.submit(admission(event("c")))
    assert caught.value.waited_s == 0.05
    assert committer.state()["waiting"] == 2
    readers.open.set()
    wait([first, *others], WAIT_S)
    committer.submit(admission(event("c"))).result(WAIT_S)


def test_a_place_that_comes_free_is_taken(readers, start):
    committer = start(queue_limit=1, timeout_s=WAIT_S)
    blocked(committer, readers, "a")
    threading.Timer(0.05, readers.open.set).start()
    committer.submit(admission(event("b"))).result(WAIT_S)


def test_invisible_write_is_reported_durable_and_stops_the_committer(log, readers, start):
    committer = start()
    first, [waiting] = blocked(committer, readers, "waiting")
    readers.failure = RuntimeError("index is gone")
    readers.open.set()
    with pytest.raises(WriteFailed, match="index is gone") as caught:
        first.result(WAIT_S)
    assert caught.value.durable is True
    with pytest.raises(WriteFailed) as caught:
        waiting.result(WAIT_S)
    assert caught.value.durable is False
    with pytest.raises(WriteFailed, match="reopening"):
        committer.submit(admission(event("later")))
    assert "reopening" in committer.state()["broken"]
    assert [row.subject for row in log.read()] == ["first"]


def test_a_commit_that_fails_writes_nothing_and_the_next_goes_on(log, place, start):
    committer = start()
    committer.submit(admission(event("e1"))).result(WAIT_S)
    with place.refusing("entries", "disk is full"), pytest.raises(WriteFailed, match="disk is full") as caught:
        committer.submit(admission(event("e2"))).result(WAIT_S)
    assert caught.value.durable is False
    assert committer.submit(admission(event("e2"))).result(WAIT_S).rows[0].seq == 2
    assert committer.state()["broken"] is None
    assert "disk is full" in committer.state()["last_error"]


def test_a_fenced_writer_stops(log, start):
    committer = start()
    log.begin_epoch()
    with pytest.raises(WriterFenced):
        committer.submit(admission(event("e1"))).result(WAIT_S)
    with pytest.raises(WriterFenced):
        committer.submit(admission(event("e2")))
    assert log.last_seq() == 0


def test_close_drains_then_refuses(log, readers, start):
    committer = start()
    first, others = blocked(committer, readers, "a", "b")
    assert committer.submit_operation(record("r1"))
    threading.Timer(0.05, readers.open.set).start()
    committer.close()
    committer.close()
    assert all(future.done() for future in [first, *others])
    assert [row.subject for row in log.read()] == ["first", "a", "b"]
    assert [row.target for row in log.operations(1)] == ["r1"]
    with pytest.raises(StoreClosed):
        committer.submit(admission(event("c")))
    assert committer.submit_operation(record("r2")) is False


def test_a_write_cancelled_while_it_waits_is_not_written(log, readers, start):
    _, [kept, dropped] = blocked(start(), readers, "kept", "dropped")
    assert dropped.cancel()
    readers.open.set()
    kept.result(WAIT_S)
    with pytest.raises(CancelledError):
        dropped.result()
    assert [row.subject for row in log.read()] == ["first", "kept"]


def test_records_share_the_next_commit(log, start, readers):
    committer = start()
    blocked(committer, readers)
    assert all(committer.submit_operation(record(f"r{number}")) for number in range(3))
    last = committer.submit(admission(event("e1")))
    readers.open.set()
    last.result(WAIT_S)
    assert [row.target for row in log.operations(1)] == ["r0", "r1", "r2"]
    assert committer.state()["commits"] == 2


def test_a_record_alone_is_written_soon_and_changes_no_state_number(log, start):
    committer = start()
    assert committer.submit_operation(record("r1"))
    deadline = time.monotonic() + WAIT_S
    while log.owner_no(ANNA) is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert [row.target for row in log.operations(1)] == ["r1"]
    assert log.last_seq() == 0


def test_a_record_that_is_waited_for_is_durable_on_return(log, start):
    committer = start()
    assert committer.submit_operation(record("r1"), wait=True)
    assert [row.target for row in log.operations(1)] == ["r1"]


def test_flush_returns_when_all_is_settled(log, start):
    committer = start(max_rows=3)
    futures = [committer.submit(admission(event(f"e{number}"))) for number in range(10)]
    assert all(committer.submit_operation(record(f"r{number}")) for number in range(10))
    committer.flush()
    assert all(future.done() for future in futures)
    assert len(log.operations(1)) == 10
    committer.flush()


def test_lost_records_are_counted_and_reported_once(readers, start, caplog):
    committer = start(queue_limit=2)
    blocked(committer, readers)
    with caplog.at_level(logging.WARNING):
        assert [committer.submit_operation(record(f"r{n}")) for n in range(5)] == [True, True, False, False, False]
    assert committer.state()["operations_lost"] == 3
    assert [entry.getMessage()[:35] for entry in caplog.records] == ["operation records are being lost: t"]


def test_a_failed_record_is_counted_or_raised_as_asked(log, start):
    committer = start()
    log.begin_epoch()
    assert committer.submit_operation(record("r1"))
    committer.flush()
    assert committer.state()["operations_lost"] == 1
    with pytest.raises(WriterFenced):
        committer.submit_operation(record("r2"), wait=True)
    assert committer.submit_operation(record("r3")) is False


def test_an_idle_committer_does_not_spin(start):
    committer = start()
    committer.submit(admission(event("e1"))).result(WAIT_S)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.05


def _submit_in_child(committer, results):
    try:
        committer.submit(admission(event("child")))
        results.put("accepted")
    except StoreClosed:
        committer.close()
        results.put("StoreClosed")


def test_a_forked_child_cannot_write(log, start):
    committer = start()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_submit_in_child, args=(committer, results))
    child.start()
    assert results.get(timeout=WAIT_S) == "StoreClosed"
    child.join(WAIT_S)
    committer.submit(admission(event("parent"))).result(WAIT_S)
    assert [row.subject for row in log.read()] == ["parent"]
