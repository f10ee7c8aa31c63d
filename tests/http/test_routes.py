"""Every route does what its Python call does, and takes everything that it takes."""

import asyncio
import contextlib

import orjson

from prme_ray import __version__
from prme_ray.http.app import create_app
from prme_ray.http.bodies import BatchBody, EdgeBody, Filters, NodeBody, RetrieveBody, StoreBody
from prme_ray.memory import Memory
from prme_ray.model.errors import ServiceUnavailable
from prme_ray.model.request import make_request
from prme_ray.writing import Writer
from tests.memory.tools import OWNER, same_request

ALL_OF_STORE = {
    "content": "the blue house is sold",
    "session_id": "s1",
    "event_time": "2026-05-04T10:00:00+02:00",
    "role": "assistant",
    "speaker": "Mara",
    "node_type": "fact",
    "scope": "project",
    "metadata": {"k": [1, None]},
    "retrieval_content": "the blue house has an owner",
    "value_bindings": {"the blue house": "house-17"},
    "confidence": 0.9,
    "epistemic_type": "observed",
    "source_type": "tool_output",
    "valid_from": "2026-01-01T00:00:00Z",
    "valid_to": "2027-01-01T00:00:00Z",
    "ttl_days": 7,
}
MADE = ("id", "created_at", "updated_at", "last_reinforced_at", "evidence_refs")


def names_of(call):
    code = call.__code__
    return set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def content_of(node):
    return node.model_dump(exclude=set(MADE))


def test_a_stored_text_is_what_the_python_call_stores(http, memory):
    answer = http.post("/v1/store", json={**ALL_OF_STORE, "owner": OWNER, "tenant": "acme"})
    assert answer.status_code == 200
    stored = answer.json()
    same = memory.store(**ALL_OF_STORE, owner=OWNER, tenant="acme")
    nodes = [memory.get(node_id, owner=OWNER, tenant="acme") for node_id in (stored["node_id"], same.node_id)]
    assert content_of(nodes[0]) == content_of(nodes[1])
    assert stored["sequence"] < same.sequence
    event = memory.get_event(stored["event_id"], owner=OWNER, tenant="acme")
    assert (event.content, event.role, event.request_digest) == (ALL_OF_STORE["content"], "assistant", None)


def test_a_structured_memory_and_an_edge(http, memory):
    given = {**ALL_OF_STORE, "owner": OWNER, "node_type": "task", "pinned": True, "salience": 0.8}
    given |= {"node_id": "6f1d8e7b-d38e-420a-bde5-0343aa5915c4", "lifecycle_state": "stable"}
    first = memory.store("a source", owner=OWNER)
    given["evidence_refs"] = [first.event_id]
    stored = http.post("/v1/nodes", json=given).json()
    assert (stored["node_id"], stored["event_id"]) == (given["node_id"], None)
    node = memory.get(given["node_id"], owner=OWNER)
    assert (node.pinned, node.salience, node.lifecycle_state, node.node_type) == (True, 0.8, "stable", "task")
    assert node.evidence_refs == (first.event_id,)
    edge = {"source_id": first.node_id, "target_id": node.id, "edge_type": "supports", "owner": OWNER}
    edge |= {"confidence": 0.9, "valid_from": "2026-01-01T00:00:00Z", "metadata": {"why": "x"}}
    answer = http.post("/v1/edges", json=edge)
    assert answer.status_code == 200
    assert memory.health().shards[0].log["edge"] > 0
    assert len(answer.json()["edge_id"]) == 36


def test_a_batch_has_common_arguments_and_an_item_s_own_win(http, memory):
    items = ["a", {"content": "b"}, {"content": "c", "scope": "project", "ttl_days": None}]
    answer = http.post("/v1/store/batch", json={"items": items, "owner": OWNER, "scope": "agent", "ttl_days": 5})
    nodes = [memory.get(item["node_id"], owner=OWNER) for item in answer.json()["stored"]]
    assert [(node.content, node.scope, node.ttl_days) for node in nodes] == [
        ("a", "agent", 5),
        ("b", "agent", 5),
        ("c", "project", None),
    ]


def test_omitted_and_null_time_to_live_differ(http, memory):
    kept = []
    for extra in ({}, {"ttl_days": None}, {"ttl_days": 3}):
        answer = http.post("/v1/store", json={"content": "x", "owner": OWNER, **extra})
        kept.append(memory.get(answer.json()["node_id"], owner=OWNER).ttl_days)
    assert kept == [90, None, 3]


def test_an_answer_over_http_is_the_python_answer(http, memory):
    for number in range(12):
        memory.store(f"Oscar is cat number {number}", owner=OWNER, scope=("personal", "agent")[number % 2])
    asked = {"reference_time": "2026-06-01T00:00:00Z", "token_budget": 300, "limit": 4, "min_score": 0.0}
    filters = {"scope": "personal", "event_time_from": "2020-01-01T00:00:00Z", "exclude_node_types": ["task"]}
    answer = http.post("/v1/retrieve", json={"query": "cat", "owner": OWNER, **asked, "filters": filters})
    found = memory.retrieve("cat", owner=OWNER, **asked, **filters)
    told = answer.json()
    assert told["metadata"].pop("request_id") == answer.headers["x-request-id"]
    del told["metadata"]["timings_ms"]
    assert orjson.dumps(told) == orjson.dumps(same_request(found))
    assert told["excluded"] and told["cross_scope_hints"] and told["results"][0]["lineage"]


def test_weights_multipliers_and_mode_are_taken(http, memory):
    memory.store("Oscar is a cat", owner=OWNER)
    body = {"query": "cat", "owner": OWNER, "weights": {"fusion": "weighted"}, "retrieval_mode": "audit"}
    told = http.post("/v1/retrieve", json={**body, "ranking_multipliers": {"semantic": 2.0}}).json()
    assert told["metadata"]["retrieval_mode"] == "audit"
    assert told["results"][0]["lineage"]["formula_version"] == 1


def test_everything_a_python_call_takes_can_be_given():
    own = {"self", "owner", "tenant", "settings", "item", "idempotency_key", "request_id", "now"}
    store = names_of(Memory.store) - own
    assert store == StoreBody.model_fields.keys() - own
    assert store - {"content"} == BatchBody.model_fields.keys() - own - {"items"}
    assert store | (names_of(Memory.store_node) - own) == NodeBody.model_fields.keys() - own
    assert names_of(Memory.store_edge) - own == EdgeBody.model_fields.keys() - own
    asked = RetrieveBody.model_fields.keys() | Filters.model_fields.keys()
    assert names_of(Memory.retrieve) - own == asked - own - {"filters"}
    assert names_of(make_request) - own == asked - own - {"filters"}
    assert names_of(Writer.store_edge) - own == EdgeBody.model_fields.keys() - own


def test_records_are_read_by_id(http, memory):
    stored = memory.store("Oscar is a cat", owner=OWNER, metadata={"a": 1})
    node = http.get(f"/v1/nodes/{stored.node_id}", params={"owner": OWNER})
    event = http.get(f"/v1/events/{stored.event_id}", params={"owner": OWNER, "tenant": "default"})
    assert node.json() == memory.get(stored.node_id, owner=OWNER).model_dump(mode="json")
    assert event.json() == memory.get_event(stored.event_id, owner=OWNER).model_dump(mode="json")


def test_health_and_probes(http, memory):
    assert http.get("/livez").json() == http.get("/readyz").json() == {"status": "ok"}
    health = http.get("/v1/health").json()
    assert (health["status"], health["version"]) == ("ok", __version__)
    assert health["details"]["healthy"] is True
    assert http.get("/docs").status_code == 200
    assert http.get("/openapi.json").json()["info"]["title"] == "prme-ray"


def test_metrics_are_the_hook_s_and_requests_are_told_of(served, memory):
    seen = []
    client = served(metrics=lambda: b"prme_ray_up 1\n", observe=lambda *told: seen.append(told))
    answer = client.get("/metrics")
    assert (answer.text, answer.headers["content-type"].split(";")[0]) == ("prme_ray_up 1\n", "text/plain")
    client.get("/v1/nodes/6f1d8e7b-d38e-420a-bde5-0343aa5915c4", params={"owner": OWNER})
    client.get("/nowhere/6f1d8e7b")
    assert [(route, status) for route, status, _ in seen] == [
        ("/metrics", 200),
        ("/v1/nodes/{id}", 404),
        ("unknown", 404),
    ]
    assert all(seconds > 0 for *_, seconds in seen)


def test_answers_are_told_of_once_they_are_sent(served, memory):
    memory.store("a heron", owner=OWNER)
    told = []
    client = served(observe_answer=told.append)
    answered = client.post("/v1/retrieve", json={"query": "heron", "owner": OWNER}).json()
    assert [answer.metadata.request_id for answer in told] == [answered["metadata"]["request_id"]]
    client.post("/v1/retrieve", json={"query": "heron", "owner": OWNER, "limit": -1})
    assert len(told) == 1


def test_an_answer_that_cannot_be_sent_is_counted_too(memory):
    """Its client has gone: the retrieval was made all the same."""
    memory.store("a heron", owner=OWNER)
    told = []
    app = create_app(memory, observe_answer=told.append)
    body = orjson.dumps({"query": "heron", "owner": OWNER})

    async def ask():
        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            raise ConnectionResetError

        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/v1/retrieve", "query_string": b"", "headers": headers}
        async with app.router.lifespan_context(app):
            with contextlib.suppress(ConnectionResetError, ConnectionAbortedError):
                await app(scope, receive, send)

    asyncio.run(ask())
    assert len(told) == 1


def test_a_factory_s_memory_is_opened_and_closed_by_the_application(served, tmp_path):
    opened = []

    def factory():
        opened.append(Memory.open(tmp_path / "own"))
        return opened[0]

    client = served(factory)
    assert client.post("/v1/store", json={"content": "x", "owner": OWNER}).status_code == 200
    client.__exit__(None, None, None)
    with Memory.open(tmp_path / "own") as again:  # the lock is free
        assert len(again.retrieve("x", owner=OWNER).results) == 1


def test_a_service_that_is_not_ready_says_so(served, memory):
    def not_yet():
        raise ServiceUnavailable(what="actors", detail="starting")

    assert served(ready=not_yet).get("/readyz").status_code == 503
    memory.close()
    answer = served().post("/v1/retrieve", json={"query": "x", "owner": OWNER})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "STORE_CLOSED")
    assert answer.headers["retry-after"] == "1"
    assert "store" not in answer.json()["error"]["details"]["path"].split("/")


def test_a_request_id_is_given_back_and_is_the_retrieval_s(http):
    given = "6F1D8E7B-D38E-420A-BDE5-0343AA5915C4"
    answer = http.post("/v1/retrieve", json={"query": "x", "owner": OWNER}, headers={"X-Request-ID": given})
    assert answer.headers["x-request-id"] == answer.json()["metadata"]["request_id"] == given.lower()
    assert http.get("/nowhere", headers={"X-Request-ID": given}).headers["x-request-id"] == given.lower()
    wrong = http.get("/livez", headers={"X-Request-ID": "seven"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "VALIDATION_ERROR")
    assert len(wrong.headers["x-request-id"]) == 36


def test_behind_a_server_that_gives_request_ids_back_the_application_does_not(served):
    http, given = served(tells_request_id=False), "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
    for path in ("/livez", "/nowhere"):
        assert "x-request-id" not in http.get(path, headers={"X-Request-ID": given}).headers
    told = http.post("/v1/retrieve", json={"query": "x", "owner": OWNER}, headers={"X-Request-ID": given})
    assert told.json()["metadata"]["request_id"] == given
