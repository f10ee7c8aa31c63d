"""Records that a coordinator sends: made in its background, there once whatever happens to the writer."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from prme_ray import Memory
from prme_ray.model.errors import ConflictingOperation, InvalidRequest
from storage.records import LateOperation, Operation, OwnerKey
from tests.cluster.test_faults import kill

ANNA = OwnerKey("default", "anna")


def record(target: str, payload: bytes = b"") -> Operation:
    return Operation(ANNA, "RETRIEVAL_REQUEST", target, payload)


@pytest.fixture(scope="module")
def memory(ray_here: None, tmp_path_factory: pytest.TempPathFactory) -> Memory:
    with Memory.open(tmp_path_factory.mktemp("records") / "store", executor="ray") as opened:
        opened.store("Oscar is a cat", owner=ANNA.owner)
        yield opened


def test_bytes_are_made_by_the_sender_and_a_failure_loses_one_record(memory: Memory) -> None:
    store = memory._store
    threads: list[str] = []

    def make() -> bytes:
        threads.append(threading.current_thread().name)
        return b"late"

    def fail() -> bytes:
        raise ValueError("a memory's words")

    lost = store.state()["records_lost"]
    assert store.submit_operation(ANNA, LateOperation(ANNA, "LATE", "one", make))
    assert store.submit_operation(ANNA, LateOperation(ANNA, "LATE", "bad", fail))
    assert store.submit_operation(ANNA, Operation(ANNA, "LATE", "two", b"2"))
    store.settle(ANNA)
    assert [row.target for row in store.operations(ANNA, op_type="LATE")] == ["one", "two"]
    assert threads == ["prme-ray-records"]
    assert store.state()["records_lost"] == lost + 1
    with pytest.raises(ValueError, match="words"):
        store.submit_operation(ANNA, LateOperation(ANNA, "LATE", "bad", fail), wait=True)
    with pytest.raises(InvalidRequest, match="a record about"):
        store.submit_operation(OwnerKey("default", "ben"), record("r"))


def test_of_different_records_about_one_thing_the_writer_keeps_one(memory: Memory) -> None:
    store = memory._store

    def send(number: int) -> object:
        try:
            return store.record_operation(ANNA, Operation(ANNA, "FEEDBACK", "f1", b"even" if number % 2 else b"odd"))
        except ConflictingOperation as refused:
            return refused.target

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(send, range(8)))
    [kept] = store.operations_of(ANNA, "f1", op_type="FEEDBACK")
    assert found.count(kept) == found.count("f1") == 4
    assert store.record_operation(ANNA, Operation(ANNA, "FEEDBACK", "f1", kept.payload)) == kept


def test_awaited_records_survive_the_writer_and_are_there_once(memory: Memory) -> None:
    store = memory._store
    acknowledged: list[str] = []
    stop = threading.Event()

    def send() -> None:
        number = 0
        while not stop.is_set():
            target = f"strict-{number}"
            assert store.submit_operation(ANNA, record(target, target.encode()), wait=True)
            acknowledged.append(target)
            number += 1

    thread = threading.Thread(target=send)
    thread.start()
    for _ in range(2):
        before = len(acknowledged)
        kill(store.handles.get("writer", lambda: 0))
        while len(acknowledged) < before + 3 and thread.is_alive():
            stop.wait(0.02)
    stop.set()
    thread.join()
    written = [row.target for row in store.operations(ANNA, op_type="RETRIEVAL_REQUEST")]
    assert [target for target in written if target.startswith("strict-")] == acknowledged
    assert store.verify_chain(ANNA).whole
    print(f"{len(acknowledged)} records over two deaths of the writer")


def test_the_past_is_read_by_the_coordinator_itself(memory: Memory) -> None:
    store = memory._store
    newest = store.newest(ANNA)
    before = store.view_at(ANNA, newest, past=True)
    memory.store("Oscar sleeps a lot", owner=ANNA.owner)
    then = store.view_at(ANNA, newest, past=True)
    assert (then.owner_seq, then.past, then.generation) == (newest, True, store.reading_generation(ANNA))
    assert (then.lexical_digest, then.graph_digest) == (before.lexical_digest, before.graph_digest)
    assert store.newest(ANNA) > newest
