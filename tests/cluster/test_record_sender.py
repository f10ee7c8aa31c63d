"""How a coordinator hands records of retrievals to the writer, with a stand-in for the actors."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from actors.remote_store import RemoteStore
from prme_ray.model.errors import ServiceUnavailable
from storage.records import LATE_RECORDS, LateOperation, OwnerKey, Repeat

KEY = OwnerKey("default", "owner-1")


class Writer:
    """Takes calls in the place of the actors."""

    def __init__(self) -> None:
        self.deployment = SimpleNamespace(cluster=SimpleNamespace(queue=4 * LATE_RECORDS))
        self.layout = SimpleNamespace(groups=1, version="v")
        self.recoveries = 0
        self.calls: list[list[str]] = []
        self.gone = False
        self.open = threading.Event()
        self.open.set()

    def group_of_shard(self, shard: int) -> int:
        return 0

    def call(self, kind: str, group: Any, method: str, records: list[Any]) -> int:
        self.open.wait()
        if self.gone:
            raise ServiceUnavailable(what="the writer", detail="gone")
        assert (kind, method, {record.repeat for record in records}) == ("writer", "record", {Repeat.SAME})
        self.calls.append([record.target for record in records])
        return len(records)


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def store(writer: Writer) -> Any:
    reader = SimpleNamespace(catalog=SimpleNamespace(shard_of=lambda key: 0), close=lambda: None, path="store")
    made = RemoteStore(reader, writer, executor=SimpleNamespace(executions=0, close=lambda: None), ends=False)  # type: ignore[arg-type]
    yield made
    writer.open.set()
    made.close()


def put(store: RemoteStore, numbers: range, make: Any = lambda: b"bytes") -> list[bool]:
    return [store.submit_operation(KEY, LateOperation(KEY, "RETRIEVAL_REQUEST", str(n), make)) for n in numbers]


@pytest.mark.parametrize("count", [1, 10, 64, 65, 300])
def test_every_record_is_sent_once_and_in_order(store: RemoteStore, writer: Writer, count: int) -> None:
    assert all(put(store, range(count)))
    store.settle(KEY)
    assert [target for call in writer.calls for target in call] == [str(number) for number in range(count)]
    assert max(map(len, writer.calls)) <= 64
    assert store.state()["records_waiting"] == store.state()["records_lost"] == 0


def test_records_leave_by_themselves_and_together(store: RemoteStore, writer: Writer) -> None:
    put(store, range(5))
    sent = threading.Event()
    call = writer.call
    writer.call = lambda *arguments: (call(*arguments), sent.set())[0]  # type: ignore[method-assign]
    assert sent.wait(30)
    assert writer.calls == [[str(number) for number in range(5)]]


def test_whoever_settles_or_closes_does_not_wait_for_company(
    store: RemoteStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.remote_store._RECORD_PATIENCE_S", 3600.0)
    monkeypatch.setattr("actors.remote_store._PAUSE_S", 3600.0)
    put(store, range(3))
    store.settle(KEY)
    put(store, range(3, 6))
    store.close()
    assert [target for call in writer.calls for target in call] == [str(number) for number in range(6)]


def test_a_full_call_does_not_wait_for_company(
    store: RemoteStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.remote_store._RECORD_PATIENCE_S", 3600.0)
    sent = threading.Event()
    call = writer.call
    writer.call = lambda *arguments: (call(*arguments), sent.set())[0]  # type: ignore[method-assign]
    put(store, range(64))
    assert sent.wait(30)


def test_what_cannot_be_made_or_sent_is_counted_and_said_of_the_next(store: RemoteStore, writer: Writer) -> None:
    def broken() -> bytes:
        raise ValueError("no bytes")

    put(store, range(2))
    put(store, range(2, 4), broken)
    put(store, range(4, 5))
    store.settle(KEY)
    assert [target for call in writer.calls for target in call] == ["0", "1", "4"]
    assert store.state()["records_lost"] == 2
    writer.gone = True
    assert put(store, range(1)) == [True]
    store.settle(KEY)
    assert store.state()["records_lost"] == 3
    writer.gone = False
    assert put(store, range(1)) == [False]  # behind records that were lost
    store.settle(KEY)
    assert put(store, range(1)) == [True]


def test_where_many_wait_the_caller_makes_the_bytes(store: RemoteStore, writer: Writer) -> None:
    writer.open.clear()
    makers: set[str] = set()

    def make() -> bytes:
        makers.add(threading.current_thread().name)
        return b"bytes"

    put(store, range(LATE_RECORDS + 200), make)
    assert threading.current_thread().name in makers
    writer.open.set()
    store.settle(KEY)
    assert sum(map(len, writer.calls)) == LATE_RECORDS + 200
