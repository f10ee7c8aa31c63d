"""Who comes in, what they may do, and that a refusal tells nothing about what exists."""

from datetime import timedelta

import pytest

from prme_ray.http.access import Access, check_bind
from prme_ray.keys import create_key, revoke_key, rotate_key
from prme_ray.model.errors import InvalidSettings
from tests.memory.tools import OWNER, START, Clock

ALL = ["memory:read", "memory:write", "memory:admin"]
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "keys.json"


@pytest.fixture
def make(file):
    def new(tenant="acme", permissions=ALL, **options):
        return create_key(file, tenant=tenant, permissions=permissions, now=START, **options)

    return new


@pytest.fixture
def clock():
    return Clock(step=timedelta(0))


@pytest.fixture
def http(served, file, clock, make):
    make("nobody", label="so that there is a file")
    ticks = Clock(0.0, 0.0)
    client = served(access=Access(file, clock=clock, ticks=ticks))
    client.ticks = ticks
    return client


def bearer(made):
    return {"Authorization": f"Bearer {made.key}"}


def store(http, key, **body):
    return http.post("/v1/store", json={"content": "Oscar is a cat", **body}, headers=bearer(key))


def told(answer):
    """Return everything of an answer but its request id."""
    headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    return answer.status_code, answer.content, headers


def test_without_a_valid_key_nobody_comes_in(http, make):
    expired = make(expires_at=START)
    good = make()
    wrong = good.key[:-1] + ("0" if good.key[-1] != "0" else "1")
    refused = []
    for header in (
        {},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": f"Basic {good.key}"},
        {"Authorization": f"Bearer {wrong}"},
        bearer(expired),
    ):
        for method, path in (
            ("POST", "/v1/store"),
            ("POST", "/v1/store/batch"),
            ("POST", "/v1/nodes"),
            ("POST", "/v1/edges"),
            ("POST", "/v1/retrieve"),
            ("GET", f"/v1/nodes/{UNKNOWN}"),
            ("GET", f"/v1/events/{UNKNOWN}"),
            ("GET", "/v1/retrievals"),
            ("GET", f"/v1/retrievals/{UNKNOWN}"),
            ("POST", f"/v1/retrievals/{UNKNOWN}/replay"),
            ("POST", f"/v1/retrievals/{UNKNOWN}/reproduce"),
            ("GET", "/v1/chain"),
            *((method, path) for path in ("/v1/relevance", "/v1/answer-citations") for method in ("GET", "POST")),
            ("GET", f"/v1/relevance/{UNKNOWN}"),
            ("GET", f"/v1/answer-citations/{UNKNOWN}"),
            ("GET", "/metrics"),
        ):
            answer = http.request(method, path, headers=header, json={} if method == "POST" else None)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
            assert answer.headers["www-authenticate"] == "Bearer"
            if header:
                refused.append(answer.json()["error"]["message"])
    assert len({message for message in refused if "no key" not in message}) == 1
    assert http.get("/v1/health").json().keys() == {"status", "version"}
    assert http.get("/v1/health", headers={"Authorization": "Bearer nonsense"}).status_code == 401
    assert http.get("/livez").status_code == http.get("/readyz").status_code == 200


def test_permissions(http, make):
    reader, writer, admin = (make(permissions=[name]) for name in ALL)
    assert store(http, writer, owner=OWNER).status_code == 200
    assert store(http, reader, owner=OWNER).json()["error"]["code"] == "FORBIDDEN"
    ask = {"query": "cat", "owner": OWNER}
    assert http.post("/v1/retrieve", json=ask, headers=bearer(reader)).status_code == 200
    for key in (writer, admin):
        assert http.post("/v1/retrieve", json=ask, headers=bearer(key)).status_code == 403
    assert http.get("/v1/health", headers=bearer(reader)).json().keys() == {"status", "version"}
    assert http.get("/v1/health", headers=bearer(admin)).json()["details"]["healthy"] is True
    assert http.get("/metrics", headers=bearer(reader)).status_code == 403
    assert http.get("/metrics", headers=bearer(admin)).status_code == 200


def test_a_bound_owner_may_be_left_out_and_no_other_named(http, make, memory):
    bound, unbound = make(owner="Zoë"), make()
    stored = store(http, bound).json()  # the same name, otherwise spelt
    assert memory.get(stored["node_id"], owner="Zoe\u0308", tenant="acme").content == "Oscar is a cat"
    assert store(http, bound, owner="Zoe\u0308", tenant="acme").status_code == 200
    assert store(http, bound, owner="eve").status_code == 403
    assert store(http, unbound).status_code == 422
    assert store(http, unbound, owner="eve").status_code == 200


def test_another_tenant_is_refused_alike_whether_it_exists_or_not(http, make, memory):
    key = make("acme")
    stored = memory.store("secret", owner=OWNER, tenant="globex")
    answers = [
        http.get(f"/v1/{kind}/{subject}?owner={owner}&tenant={tenant}", headers=bearer(key))
        for kind in ("nodes", "events")
        for subject in (stored.node_id, stored.event_id, UNKNOWN, "nonsense")
        for owner in (OWNER, "nobody")
        for tenant in ("globex", "no-such-tenant")
    ]
    answers += [
        http.post("/v1/retrieve", json={"query": "secret", "owner": OWNER, "tenant": tenant}, headers=bearer(key))
        for tenant in ("globex", "no-such-tenant")
    ]
    answers += [store(http, key, owner=OWNER, tenant=tenant) for tenant in ("globex", "no-such-tenant")]
    assert len({str(told(answer)) for answer in answers}) == 1
    assert answers[0].status_code == 403


def test_a_refusal_reaches_no_memory(served, file, make):
    class Untouchable:
        def __getattr__(self, name):
            raise AssertionError(f"{name} was called")

    key = make("acme", owner="dana")
    http = served(Untouchable(), access=Access(file))
    for whose in ({"tenant": "globex"}, {"owner": "eve"}):
        assert store(http, key, **whose).status_code == 403
        assert http.get(f"/v1/nodes/{UNKNOWN}", params=whose, headers=bearer(key)).status_code == 403


def test_another_owner_s_record_is_as_unknown_as_none(http, make, memory):
    stored = memory.store("secret", owner="eve", tenant="acme")
    answers = []
    for key, whose in ((make(owner=OWNER), ""), (make(), f"?owner={OWNER}")):
        for subject in (stored.node_id, UNKNOWN):
            answer = http.get(f"/v1/nodes/{subject}{whose}", headers=bearer(key))
            assert answer.status_code == 404
            answers.append(answer.text.replace(subject, "…"))
    assert len(set(answers)) == 1


def test_an_agent_s_key_sees_and_writes_its_own_scope_only(http, make, memory):
    key = make(agent="planner")
    personal = memory.store("personal", owner="planner", tenant="acme")
    own = store(http, key)
    assert memory.get(own.json()["node_id"], owner="planner", tenant="acme").scope == "agent"
    assert store(http, key, scope="agent").status_code == 200
    assert store(http, key, scope="personal").status_code == 403
    assert store(http, key, owner=OWNER).status_code == 403
    batch = {"items": ["x", {"content": "y", "scope": "personal"}]}
    assert http.post("/v1/store/batch", json=batch, headers=bearer(key)).status_code == 403
    assert http.get(f"/v1/nodes/{own.json()['node_id']}", headers=bearer(key)).status_code == 200
    assert http.get(f"/v1/nodes/{personal.node_id}", headers=bearer(key)).status_code == 404
    assert http.get(f"/v1/events/{personal.event_id}", headers=bearer(key)).status_code == 404
    edge = {"source_id": own.json()["node_id"], "target_id": personal.node_id, "edge_type": "supports"}
    assert http.post("/v1/edges", json=edge, headers=bearer(key)).status_code == 404
    found = http.post("/v1/retrieve", json={"query": "personal cat"}, headers=bearer(key)).json()
    assert {item["scope"] for item in found["results"]} == {"agent"}
    assert found["cross_scope_hints"] == []
    for scope in ("personal", ["agent", "personal"]):
        ask = {"query": "x", "filters": {"scope": scope}}
        assert http.post("/v1/retrieve", json=ask, headers=bearer(key)).status_code == 403


def test_keys_change_without_a_restart(http, make, file, clock):
    old = make()
    assert store(http, old, owner=OWNER).status_code == 200
    new = rotate_key(file, old.record.id, now=clock.now, grace=timedelta(minutes=5))
    assert store(http, old, owner=OWNER).status_code == store(http, new, owner=OWNER).status_code == 200
    clock.now += timedelta(minutes=5)
    assert store(http, old, owner=OWNER).status_code == 401
    assert store(http, new, owner=OWNER).status_code == 200
    revoke_key(file, new.record.id)
    assert store(http, new, owner=OWNER).status_code == 401


@pytest.mark.parametrize("break_it", [lambda file: file.unlink(), lambda file: file.write_text("{")])
def test_a_file_that_cannot_be_read_lets_nobody_in_and_is_read_again(http, make, file, break_it):
    key = make()
    good = file.read_bytes()
    assert store(http, key, owner=OWNER).status_code == 200
    break_it(file)
    answer = store(http, key, owner=OWNER)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "KEYS_UNREADABLE")
    assert str(file) not in answer.text
    assert http.get("/readyz").status_code == 503
    file.write_bytes(good)
    assert store(http, key, owner=OWNER).status_code == 200


def test_a_key_has_a_rate_of_its_own(http, make):
    slow, free = make(per_second=0.5, burst=2), make()
    assert [store(http, slow, owner=OWNER).status_code for _ in range(3)] == [200, 200, 429]
    answer = store(http, slow, owner=OWNER)
    assert (answer.headers["retry-after"], answer.json()["error"]["code"]) == ("2", "RATE_LIMITED")
    assert store(http, free, owner=OWNER).status_code == 200
    http.ticks.now += 2.0
    assert [store(http, slow, owner=OWNER).status_code for _ in range(2)] == [200, 429]
    http.ticks.now += 1000.0
    assert [store(http, slow, owner=OWNER).status_code for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_without_keys_loopback_may_be_bound(host):
    check_bind(host, Access())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "memory.example", "", "127.0.0.1.example"])
def test_other_addresses_need_keys(host, file):
    with pytest.raises(InvalidSettings, match="keys"):
        check_bind(host, Access())
    check_bind(host, Access(file))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8000", "127.3.2.1:1", "localhost", "LOCALHOST:80", "[::1]", "[::1]:8000"]
)
def test_an_open_service_answers_to_loopback_names(served, host):
    assert served().get("/v1/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "192.168.1.2:8000", "", "::1:8000", "[::1"]
)
def test_an_open_service_answers_to_no_other_name(served, host):
    client = served()
    body = {"content": "planted by a web page", "owner": OWNER}
    answer = client.post("/v1/store", json=body, headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "WRONG_HOST")
    assert client.get("/metrics", headers={"Host": host}).status_code == 421


def test_a_service_with_keys_answers_to_any_name(http, make):
    headers = {**bearer(make()), "Host": "memory.example"}
    assert http.get("/v1/health", headers=headers).status_code == 200
    Access().check_host(None)  # HTTP/1.0: no browser
