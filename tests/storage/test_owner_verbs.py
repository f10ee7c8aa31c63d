"""What a store takes in and gives back about one owner."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from prme_ray.model.errors import ConflictingOperation, InvalidRequest, ReadOnlyStore
from prme_ray.model.settings import StorageSettings
from storage.chain import CHAIN_START
from storage.records import LateOperation, Operation, OwnerKey
from storage.shard import EncoderIdentity
from storage.store import Store

ANNA, BEN, NOBODY = (OwnerKey("acme", name) for name in ("anna", "ben", "nobody"))


@pytest.fixture
def opened(tmp_path):
    """Open the store; everything is closed at the end."""
    stores = []

    def open_store(*, read_only=False):
        stores.append(
            Store(
                tmp_path,
                settings=StorageSettings(virtual_shards=1),
                encoder=EncoderIdentity("an encoder", "model", 3),
                clock=lambda: datetime.now(UTC),
                new_id=lambda: str(uuid.uuid4()),
                read_only=read_only,
            )
        )
        return stores[-1]

    yield open_store
    for store in reversed(stores):
        store.close()


def feedback(target, payload, owner=ANNA):
    return Operation(owner, "FEEDBACK", target, payload)


def test_a_record_that_comes_twice_is_there_once(opened):
    store = opened()
    first = store.record_operation(ANNA, feedback("f1", b"1"))
    assert (first.owner_op_seq, first.payload) == (1, b"1")
    assert store.record_operation(ANNA, feedback("f1", b"1")) == first
    with pytest.raises(ConflictingOperation, match="already has another FEEDBACK record about 'f1'"):
        store.record_operation(ANNA, feedback("f1", b"2"))
    assert store.record_operation(BEN, feedback("f1", b"2", BEN)).owner_op_seq == 1
    assert store.operations(ANNA) == [first]


def test_of_many_at_once_one_is_kept(opened):
    store = opened()
    ready = threading.Barrier(8)

    def send(number):
        ready.wait()
        try:
            return store.record_operation(ANNA, feedback("f1", b"even" if number % 2 else b"odd"))
        except ConflictingOperation as refused:
            return refused.target

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(send, range(8)))
    [kept] = store.operations(ANNA)
    assert found.count(kept) == found.count("f1") == 4


def test_operations_by_number_type_and_target(opened):
    store = opened()
    for number in range(4):
        store.submit_operation(ANNA, Operation(ANNA, "RETRIEVAL_REQUEST", f"r{number % 2}", b"%d" % number))
        assert store.submit_operation(ANNA, LateOperation(ANNA, "FEEDBACK", f"f{3 - number}", lambda: b"late"))
    assert store.submit_operation(BEN, feedback("f0", b"", BEN), wait=True)
    store.settle(ANNA)
    for reader in (store, opened(read_only=True)):
        assert [row.owner_op_seq for row in reader.operations(ANNA)] == list(range(1, 9))
        assert [row.payload for row in reader.operations(ANNA, op_type="RETRIEVAL_REQUEST", after=1, limit=2)] == [
            b"1",
            b"2",
        ]
        assert [row.payload for row in reader.operations_of(ANNA, "r1", op_type="RETRIEVAL_REQUEST")] == [b"1", b"3"]
        found = reader.operations_by_target(ANNA, op_type="FEEDBACK", after_target="f0", limit=2)
        assert [row.target for row in found] == ["f1", "f2"]
        assert reader.verify_chain(ANNA).checked == 8
        assert reader.verify_chain(ANNA).whole


def test_an_unknown_owner_has_nothing(opened):
    store = opened()
    store.settle(NOBODY)
    assert store.operations(NOBODY) == store.operations_of(NOBODY, "r", op_type="A") == []
    assert store.operations_by_target(NOBODY, op_type="A") == []
    report = store.verify_chain(NOBODY)
    assert (report.checked, report.head, report.whole) == (0, CHAIN_START.hex(), True)
    assert (store.newest(NOBODY), store.number_at(NOBODY, 0), store.reading_generation(NOBODY)) == (0, 0, 1)


def test_a_record_goes_to_its_own_owner_and_a_reader_takes_none(opened):
    store = opened()
    for submit in (store.submit_operation, store.record_operation):
        with pytest.raises(InvalidRequest, match="a record about"):
            submit(BEN, feedback("f1", b""))
    store.record_operation(ANNA, feedback("f1", b""))
    reader = opened(read_only=True)
    assert reader.submit_operation(ANNA, feedback("f2", b"")) is False
    with pytest.raises(ReadOnlyStore):
        reader.record_operation(ANNA, feedback("f2", b""))
    reader.settle(ANNA)
    assert [row.target for row in reader.operations(ANNA)] == ["f1"]
