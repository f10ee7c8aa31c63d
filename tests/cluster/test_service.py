"""The service as a whole: Ray, Serve, HAProxy, keys, actors."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import psutil
import pytest

from prme_ray import Client, Memory
from prme_ray.defaults import utc_now
from prme_ray.keys import Permission, create_key
from prme_ray.model.errors import NotFound
from prme_ray.model.service_errors import Forbidden
from tests.cluster.corpus import NOW, questions
from tests.cluster.load import under_load
from tests.cluster.serving import Serving, serving

Keys = dict[tuple[str, str | None], str]

REPEATED = "b6a0d3f1-2d64-4b8e-9d1c-0a9a6a2c7b11"
TENANTS = [f"tenant-{number}" for number in range(5)]
OWNERS = [f"owner-{number}" for number in range(5)]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Keys]:
    """A file of keys: one a tenant, and one for the first owner of each."""
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    made: Keys = {}
    for tenant in TENANTS:
        for owner in (None, OWNERS[0]):
            made[tenant, owner] = create_key(
                file, tenant=tenant, owner=owner, permissions=[Permission.READ, Permission.WRITE], now=utc_now()
            ).key
    return file, made


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, keys: tuple[Path, Keys]) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("service") / "store", "--keys", str(keys[0])) as running:
        _fill(running, keys[1])
        yield running


def _secret(tenant: str, owner: str) -> str:
    return f"Secret{tenant}x{owner}".replace("-", "")


def _fill(service: Serving, keys: Keys) -> None:
    for tenant in TENANTS:
        with Client(service.address, api_key=keys[tenant, None]) as client:
            for owner in OWNERS:
                word = _secret(tenant, owner)
                client.store_many(
                    [f"Caroline: the code word of the vault is {word}, note {number}." for number in range(6)],
                    owner=owner,
                )


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_answer_holds_anything_of_others(service: Serving, keys: tuple[Path, Keys], count: int) -> None:
    chance = random.Random(count)
    words = {_secret(tenant, owner): (tenant, owner) for tenant in TENANTS for owner in OWNERS}
    with httpx.Client(base_url=service.address, timeout=60) as client:
        for _ in range(count):
            bound, target = chance.choice(TENANTS), chance.choice(TENANTS)
            key_owner, owner = chance.choice([None, OWNERS[0]]), chance.choice(OWNERS)
            answer = client.post(
                "/v1/retrieve",
                json={"query": f"code word of the vault {chance.choice([*words])}", "tenant": target, "owner": owner},
                headers={"Authorization": f"Bearer {keys[1][bound, key_owner]}"},
            )
            allowed = bound == target and key_owner in (None, owner)
            assert answer.status_code == (200 if allowed else 403), answer.text
            found = {
                word for word in words if word in answer.text.replace(orjson.loads(answer.request.content)["query"], "")
            }
            assert found == ({_secret(target, owner)} if allowed else set())


def test_ids_of_others_are_like_missing_ones(service: Serving, keys: tuple[Path, Keys]) -> None:
    with Client(service.address, api_key=keys[1][TENANTS[0], None]) as mine:
        found = mine.retrieve("code word", owner=OWNERS[0]).results[0].node_id
        with pytest.raises(NotFound):
            mine.get(found, owner=OWNERS[1])
        with Client(service.address, api_key=keys[1][TENANTS[1], None]) as other:
            with pytest.raises(NotFound):
                other.get(found, owner=OWNERS[0])
            with pytest.raises(Forbidden) as there:
                other.get(found, owner=OWNERS[0], tenant=TENANTS[0])
            with pytest.raises(Forbidden) as missing:
                other.get("00000000-0000-4000-8000-000000000000", owner=OWNERS[0], tenant=TENANTS[0])
            assert str(there.value) == str(missing.value)


def test_every_request_is_a_line_of_the_replicas_standard_error(service: Serving, keys: tuple[Path, Keys]) -> None:
    word = _secret(TENANTS[2], OWNERS[0])
    asked = httpx.post(
        f"{service.address}/v1/retrieve",
        json={"query": f"Who knows {word}?", "tenant": TENANTS[2], "owner": OWNERS[0]},
        headers={"Authorization": f"Bearer {keys[1][TENANTS[2], None]}"},
    )
    (request_id,) = asked.headers.get_list("x-request-id")
    assert word in asked.text
    output = Path(f"/proc/{service.find('ServeReplica').pid}/fd/2")  # a file of Ray's, whatever its name
    deadline = time.monotonic() + 10
    while request_id not in (text := output.read_text("utf-8")) and time.monotonic() < deadline:
        time.sleep(0.05)
    (line,) = [orjson.loads(line) for line in text.splitlines() if request_id in line]
    assert (line["logger"], line["level"]) == ("prme_ray.http", "info")
    assert (line["route"], line["status"], line["request_id"]) == ("/v1/retrieve", 200, request_id)
    assert 0 < line["duration_ms"] < 60_000
    assert "Secret" not in text


def test_answers_over_http_are_the_bytes_of_inline(service: Serving, keys: tuple[Path, Keys]) -> None:
    """The last test of this service: it ends it."""
    whose = {"owner": "owner-1", "tenant": TENANTS[0]}
    asked = [(query, options | {"tenant": TENANTS[0]}) for query, options in questions(20, seed=3)]
    with Client(service.address, api_key=keys[1][TENANTS[0], None]) as client:
        client.store_many([f"Caroline: I have a cat called Oscar{number}." for number in range(30)], **whose)
        over_http = _answers(client, asked)
        # RFC §13: one request a hundred times, one answer.
        query, options = asked[0]
        same = options | whose | {"request_id": REPEATED}
        assert len({answer for _ in range(100) for answer in _answers(client, [(query, same)])}) == 1
        assert client.reproduce(REPEATED, **whose).reproduced
        assert client.verify_chain(**whose).whole
        processes = psutil.Process(service.process.pid).children(recursive=True)
    service.stop()
    # SIGTERM ends all of it, and what was stored is there.
    assert not [process for process in psutil.wait_procs(processes, timeout=30)[1] if process.is_running()]
    with Memory.open(service.path) as memory:
        assert [
            orjson.dumps(memory.retrieve(query, **options).to_dict(timings=False)) for query, options in asked
        ] == over_http
        assert memory.reproduce(REPEATED, **whose).reproduced


def _answers(memory: Any, asked: list[tuple[str, dict[str, Any]]]) -> list[bytes]:
    return [orjson.dumps(memory.retrieve(query, **options).to_dict(timings=False)) for query, options in asked]


@pytest.mark.slow
def test_replica_and_controller_killed_under_load(tmp_path: Path) -> None:
    with serving(tmp_path / "store", "--replicas", "2") as running, Client(running.address, retries=8) as client:
        client.store_many([f"Caroline: I have a cat called Oscar{number}." for number in range(60)], owner="owner-1")
        with under_load(client) as load:
            for word in ("ServeReplica", "ServeController", "ServeReplica"):
                running.find(word).kill()
                started = time.monotonic()
                load.progress()
                print(f"{word} killed: served again after {time.monotonic() - started:.1f} s")
        assert load.wrong == []
        assert load.missing() == []
        assert client.retrieve("Oscar", owner="owner-1", reference_time=NOW).results
