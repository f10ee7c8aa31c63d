"""The clients against a real server: the verbs, results and errors of a Memory."""

import asyncio
import socket
import threading
from datetime import UTC, datetime

import httpx
import orjson
import pytest

from prme_ray import AsyncClient, Client, Memory
from prme_ray.http.access import Access
from prme_ray.http.app import create_app
from prme_ray.http.limits import Limits
from prme_ray.keys import create_key
from prme_ray.model.errors import (
    IdempotencyConflict,
    InvalidItems,
    InvalidRequest,
    InvalidText,
    NotFound,
    ServiceUnavailable,
)
from prme_ray.model.service_errors import Forbidden, Overloaded, RateLimited, Unauthenticated
from tests.memory.tools import OWNER, START

UNKNOWN = "00000000-0000-4000-8000-000000000000"
KEY = "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
AT = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def client(url):
    with Client(url, retries=0) as opened:
        yield opened


def test_what_is_written_by_the_client_is_read_by_both(client, memory):
    stored = client.store(
        "Oscar is a cat", owner=OWNER, session_id="s1", event_time=AT, ttl_days=None, metadata={"big": 2**80}
    )
    assert client.get(stored.node_id, owner=OWNER) == memory.get(stored.node_id, owner=OWNER)
    assert client.get_event(stored.event_id, owner=OWNER) == memory.get_event(stored.event_id, owner=OWNER)
    assert memory.get(stored.node_id, owner=OWNER).ttl_days is None
    fact = client.store_node("a fact", owner=OWNER, node_type="fact", evidence_refs=(stored.event_id,), pinned=True)
    assert len(client.store_edge(fact.node_id, stored.node_id, "supports", owner=OWNER)) == 36
    health = client.health()
    assert (health.healthy, health.store_id) == (True, memory.health().store_id)
    assert health.shards[0].log == memory.health().shards[0].log


def test_an_answer_is_the_memory_s_answer(client, memory):
    for number in range(20):
        memory.store(f"Oscar is cat number {number}", owner=OWNER, scope=("personal", "agent")[number % 2])
    asked = {"reference_time": AT, "scope": "personal", "limit": 5, "min_score": 0.0}
    asked |= {"exclude_node_types": {"task", "fact"}, "weights": {"fusion": "weighted"}}
    ours = client.retrieve("which cat?", owner=OWNER, request_id=KEY, **asked)
    direct = memory.retrieve("which cat?", owner=OWNER, request_id=KEY, **asked)
    assert orjson.dumps(ours.to_dict(timings=False)) == orjson.dumps(direct.to_dict(timings=False))
    assert ours.metadata.request_id == KEY
    assert list(ours.results) == list(direct.results)
    assert (ours.results[0], ours.results[-1], ours.results[1:3]) == (
        direct.results[0],
        direct.results[-1],
        direct.results[1:3],
    )
    assert ours.results.ids == direct.results.ids
    assert ours.results.find(direct.results.ids[2]) == direct.results[2]
    assert ours.results.find(UNKNOWN) is None
    assert ours.excluded.counts() == direct.excluded.counts()
    assert ours.bundle == direct.bundle


def test_an_http_answer_has_the_bytes_of_the_memory_s(url, memory):
    memory.store("Oscar is a cat", owner=OWNER)
    body = {"query": "cat", "owner": OWNER, "reference_time": "2026-06-01T00:00:00Z"}
    told = httpx.post(f"{url}/v1/retrieve", json=body, headers={"X-Request-ID": KEY}).content
    direct = memory.retrieve("cat", owner=OWNER, reference_time=AT, request_id=KEY).to_dict()
    # Only the timings differ between the two runs of one request.
    direct["metadata"]["timings_ms"] = orjson.loads(told)["metadata"]["timings_ms"]
    assert told == orjson.dumps(direct)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda memory: memory.get(UNKNOWN, owner=OWNER), NotFound),
        (lambda memory: memory.get("nonsense/../x", owner=OWNER), NotFound),
        (lambda memory: memory.get("a\x00", owner=OWNER), InvalidText),
        (lambda memory: memory.get_event(UNKNOWN, owner=OWNER), NotFound),
        (lambda memory: memory.store("a\x00", owner=OWNER), InvalidText),
        (lambda memory: memory.store("\ud800", owner=OWNER), InvalidText),
        (lambda memory: memory.store("x", owner=OWNER, confidence=3), InvalidRequest),
        (lambda memory: memory.store("x", owner=OWNER, metadata={"a": object()}), InvalidRequest),
        (lambda memory: memory.store("x", owner=""), InvalidRequest),
        (lambda memory: memory.store_edge(UNKNOWN, UNKNOWN, "supports", owner=OWNER), NotFound),
        (lambda memory: memory.retrieve("x", owner=OWNER, scope=[]), InvalidRequest),
        (lambda memory: memory.retrieve("x", owner=OWNER, event_time_from=datetime(2026, 1, 1)), InvalidRequest),
        (lambda memory: memory.retrieve("x", owner=OWNER, request_id="7"), InvalidRequest),
        (lambda memory: memory.store_many("abc", owner=OWNER), InvalidRequest),
    ],
)
def test_errors_are_those_of_the_memory(client, memory, call, error):
    for asked in (client, memory):
        with pytest.raises(error) as caught:
            call(asked)
        assert type(caught.value) is error


def test_a_stream_is_stored_in_batches_and_refusals_are_placed(client, memory):
    items = [f"number {number}" for number in range(450)]
    stored = client.store_many(iter(items), owner=OWNER)
    assert [memory.get(stored[place].node_id, owner=OWNER).content for place in (0, 199, 200, 449)] == [
        items[place] for place in (0, 199, 200, 449)
    ]
    bad = [*items[:230], "nul \x00", *items[230:250], {"content": "x", "scope": "project", "ttl_days": None}]
    with pytest.raises(InvalidItems) as caught:
        client.store_many(bad, owner="other", scope="agent")
    assert [(type(item), item.item) for item in caught.value.rejected] == [(InvalidText, 230)]
    assert len(caught.value.stored) == 251
    last = memory.get(caught.value.stored[-1].node_id, owner="other")
    assert (last.scope, last.ttl_days) == ("project", None)
    with pytest.raises(InvalidItems) as direct:
        memory.store_many(bad, owner="third", scope="agent")
    assert str(direct.value) == str(caught.value)


def test_one_key_makes_a_stream_repeatable(client, memory):
    items = [f"number {number}" for number in range(250)]
    first = client.store_many(items, owner=OWNER, idempotency_key=KEY)
    assert client.store_many(items, owner=OWNER, idempotency_key=KEY) == first
    with pytest.raises(IdempotencyConflict):
        client.store_many([*items[:-1], "changed"], owner=OWNER, idempotency_key=KEY)
    assert len(memory.retrieve("number", owner=OWNER).results) == 250


def test_keys_and_rates(memory, listening, tmp_path):
    file = tmp_path / "keys.json"
    key = create_key(
        file,
        tenant="acme",
        owner=OWNER,
        permissions=["memory:read", "memory:write"],
        now=START,
        per_second=0.01,
        burst=4,
    ).key
    url = listening(create_app(memory, access=Access(file)))
    with Client(url, retries=0) as stranger, pytest.raises(Unauthenticated):
        stranger.get(UNKNOWN, owner=OWNER)
    with Client(url + "/", api_key=key, retries=0) as client:
        stored = client.store("Oscar is a cat")  # tenant and owner are the key's
        assert memory.get(stored.node_id, owner=OWNER, tenant="acme").content == "Oscar is a cat"
        with pytest.raises(Forbidden, match="another owner"):
            client.store("x", owner="eve")
        with pytest.raises(Forbidden, match="memory:admin"):
            client.health()
        client.retrieve("cat")
        with pytest.raises(RateLimited) as caught:
            client.get(stored.node_id)
        assert caught.value.retry_after_s > 1


class Flaky:
    """A server that breaks a connection after it did the work, as often as told."""

    def __init__(self, url, breaks):
        self._target = httpx.URL(url)
        self.left = breaks
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                ours, _ = self.socket.accept()
            except OSError:
                return  # closed
            with ours, socket.create_connection((self._target.host, self._target.port)) as theirs:
                request = b""
                while b"\r\n\r\n" not in request:
                    request += ours.recv(65536)
                head, _, rest = request.partition(b"\r\n\r\n")
                length = next(
                    int(line[16:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
                )
                while len(rest) < length:
                    rest += ours.recv(65536)
                theirs.sendall(head + b"\r\nConnection: close\r\n\r\n" + rest)
                answer = b""
                while part := theirs.recv(65536):
                    answer += part
                if self.left:
                    self.left -= 1
                else:
                    ours.sendall(answer)


def test_a_write_whose_answer_was_lost_is_stored_once(url, memory):
    flaky = Flaky(url, breaks=2)
    with Client(flaky.url) as client:
        stored = client.store("Oscar is a cat", owner=OWNER)
    flaky.socket.close()
    assert flaky.left == 0
    assert memory.retrieve("cat", owner=OWNER).results.ids == [stored.node_id]


def test_the_client_gives_up_in_the_end():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        Client(f"http://127.0.0.1:{port}", retries=1) as client,
        pytest.raises(ServiceUnavailable, match="ConnectError"),
    ):
        client.store("x", owner=OWNER)
    with pytest.raises(InvalidRequest, match="retries"):
        Client("http://127.0.0.1:1", retries=-1)


def test_overload_is_waited_out(memory, listening):
    app = create_app(memory, limits=Limits(in_progress=1, waiting=0))
    url = listening(app)
    gate = app.state.service.gate
    gate._free = 0  # somebody holds the only place
    with Client(url, retries=0) as client, pytest.raises(Overloaded):
        client.retrieve("x", owner=OWNER)
    timer = threading.Timer(0.3, gate.leave)
    timer.start()
    with Client(url, retries=3) as client:
        assert len(client.retrieve("x", owner=OWNER).results) == 0
    timer.join()


def test_the_async_client_has_the_same_verbs(url, memory):
    async def items():
        for number in range(3):
            yield f"number {number}"

    async def main():
        async with AsyncClient(url) as client:
            stored = await client.store("Oscar is a cat", owner=OWNER)
            many = await client.store_many(items(), owner=OWNER)
            node = await client.store_node("a fact", owner=OWNER, node_type="fact")
            edge = await client.store_edge(node.node_id, stored.node_id, "supports", owner=OWNER)
            answers = await asyncio.gather(*(client.retrieve("cat", owner=OWNER) for _ in range(5)))
            assert len({tuple(answer.results.ids) for answer in answers}) == 1
            assert (await client.get(many[1].node_id, owner=OWNER)).content == "number 1"
            assert (await client.get_event(stored.event_id, owner=OWNER)).content == "Oscar is a cat"
            assert (await client.health()).healthy
            with pytest.raises(InvalidItems):
                await client.store_many(["a\x00"], owner=OWNER)
            return edge

    assert len(asyncio.run(main())) == 36


def test_both_clients_have_the_verbs_of_a_memory():
    verbs = {name for name in dir(Memory) if not name.startswith("_")} - {"open", "connect", "encoder", "flush"}
    for kind in (Client, AsyncClient):
        assert verbs == {name for name in dir(kind) if not name.startswith("_")}
