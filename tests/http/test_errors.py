"""Every error has one shape and the right status, and nothing a caller sends is a 500."""

import logging

import pytest

from prme_ray.http.limits import Limits
from prme_ray.http.wire import error_of, public_error, status_of
from prme_ray.model.errors import (
    FeedbackAltered,
    InvalidItems,
    PrmeRayError,
    ReceiptRejected,
    StoreBusy,
    StoreLocked,
    WriteFailed,
)
from prme_ray.model.service_errors import Overloaded, ServiceError
from tests.memory.tools import OWNER
from tests.test_errors import CLASSES, made

UNKNOWN = "00000000-0000-4000-8000-000000000000"
JSON = {"content-type": "application/json"}
STORE = {"content": "x", "owner": OWNER}
ASK = {"query": "x", "owner": OWNER}


def error(answer, status, code):
    told = answer.json()
    assert (answer.status_code, told["error"]["code"]) == (status, code), told
    assert list(told) == ["error"]
    assert list(told["error"]) == ["code", "message", "details"]
    assert answer.headers["content-type"] == "application/json"
    assert len(answer.headers["x-request-id"]) == 36
    return told["error"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/store", {**STORE, "colour": "blue"}),
        ("/v1/store", {"owner": OWNER}),
        ("/v1/store", {"content": "x"}),
        ("/v1/store", {**STORE, "content": 7}),
        ("/v1/store", {**STORE, "content": "a\x00b"}),
        ("/v1/store", {**STORE, "owner": ""}),
        ("/v1/store", {**STORE, "owner": "a\x00"}),
        ("/v1/store", {**STORE, "session_id": "x" * 1025}),
        ("/v1/store", {**STORE, "event_time": "2026-05-04T10:00:00"}),
        ("/v1/store", {**STORE, "event_time": "yesterday"}),
        ("/v1/store", {**STORE, "valid_to": "2026-05-04T10:00:00Z"}),
        ("/v1/store", {**STORE, "ttl_days": 0}),
        ("/v1/store", {**STORE, "ttl_days": "7"}),
        ("/v1/store", {**STORE, "confidence": True}),
        ("/v1/store", {**STORE, "confidence": 1.1}),
        ("/v1/store", {**STORE, "scope": "moon"}),
        ("/v1/store", {**STORE, "metadata": {"prme_speaker_v1": "x"}}),
        ("/v1/store", {**STORE, "metadata": [1]}),
        ("/v1/store", {**STORE, "value_bindings": {"a": "b"}}),
        ("/v1/store", {**STORE, "role": None}),
        ("/v1/store", [STORE]),
        ("/v1/store/batch", {"owner": OWNER, "items": []}),
        ("/v1/store/batch", {"owner": OWNER, "items": [7]}),
        ("/v1/store/batch", {"owner": OWNER, "items": [{"content": "x", "owner": "eve"}]}),
        ("/v1/nodes", STORE),
        ("/v1/nodes", {**STORE, "node_type": "fact", "node_id": "seven"}),
        ("/v1/nodes", {**STORE, "node_type": "fact", "evidence_refs": ["seven"]}),
        ("/v1/edges", {"owner": OWNER, "source_id": UNKNOWN, "target_id": UNKNOWN, "edge_type": "likes"}),
        ("/v1/edges", {"owner": OWNER, "source_id": "a", "target_id": UNKNOWN, "edge_type": "supports"}),
        ("/v1/retrieve", {**ASK, "token_budget": -1}),
        ("/v1/retrieve", {**ASK, "token_budget": 10**40}),
        ("/v1/retrieve", {**ASK, "limit": True}),
        ("/v1/retrieve", {**ASK, "min_score": -0.5}),
        ("/v1/retrieve", {**ASK, "scope": "personal"}),
        ("/v1/retrieve", {**ASK, "filters": {"scope": []}}),
        ("/v1/retrieve", {**ASK, "filters": {"time_from": "2026-05-04T10:00:00"}}),
        ("/v1/retrieve", {**ASK, "filters": {"include_cross_scope": "false"}}),
        ("/v1/retrieve", {**ASK, "weights": {"colour": 1}}),
        ("/v1/retrieve", {**ASK, "ranking_multipliers": {"semantic": 2.0}}),
        ("/v1/retrieve", {**ASK, "ranking_multipliers": {"semantic": 9.0}}),
        ("/v1/retrieve", {**ASK, "query": "a\x00"}),
    ],
)
def test_a_body_that_is_not_allowed_is_a_422(http, path, body):
    answer = http.post(path, json=body)
    assert answer.status_code == 422
    told = error(answer, 422, answer.json()["error"]["code"])
    assert {"argument", "given", "allowed"} <= told["details"].keys()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b'{"content":"\xff","owner":"dana"}',
        b'{"content":"\\ud800","owner":"dana"}',
        b'{"content":"x","owner":"dana","metadata":{"a":NaN}}',
        b'{"content":"x","owner":"dana","metadata":{"a":1e999}}',
        b'{"content":"x","owner":"dana","metadata":{"a":' + b"9" * 5000 + b"}}",
        b'{"content":"x","owner":"dana","metadata":' + b'{"a":' * 300 + b"1" + b"}" * 301,
    ],
)
def test_what_is_no_json_for_us_is_a_422(http, content):
    assert http.post("/v1/store", content=content, headers=JSON).status_code == 422


def test_other_errors_of_the_framework_have_the_shape_too(http):
    error(http.get("/v2/store"), 404, "ROUTE_NOT_FOUND")
    error(http.get("/v1/nodes"), 405, "METHOD_NOT_ALLOWED")
    error(http.post("/v1/nodes/"), 404, "ROUTE_NOT_FOUND")
    assert http.put("/v1/store").headers["allow"] == "POST"
    error(http.get(f"/v1/nodes/{UNKNOWN}"), 422, "VALIDATION_ERROR")
    error(http.get(f"/v1/nodes/{UNKNOWN}?owner={OWNER}&colour=blue"), 422, "VALIDATION_ERROR")
    error(http.get(f"/v1/nodes/a%00?owner={OWNER}"), 422, "INVALID_TEXT")
    error(http.post("/v1/store", content=b"content=x"), 415, "UNSUPPORTED_MEDIA_TYPE")
    error(http.post("/v1/store", json=STORE, headers={"Idempotency-Key": "7"}), 422, "VALIDATION_ERROR")


def test_records_that_are_not_there(http, memory):
    stored = memory.store("x", owner=OWNER)
    error(http.get(f"/v1/nodes/{UNKNOWN}?owner={OWNER}"), 404, "NOT_FOUND")
    error(http.get(f"/v1/events/{stored.node_id}?owner={OWNER}"), 404, "NOT_FOUND")
    edge = {"owner": OWNER, "source_id": stored.node_id, "target_id": UNKNOWN, "edge_type": "supports"}
    error(http.post("/v1/edges", json=edge), 404, "NOT_FOUND")
    node = {**STORE, "node_type": "fact", "node_id": stored.node_id}
    error(http.post("/v1/nodes", json=node), 409, "DUPLICATE_SUBJECT")


def test_a_body_is_counted_while_it_is_read(served):
    http = served(limits=Limits(body_bytes=2000))
    big = b'{"owner":"dana","content":"' + b"x" * 3000 + b'"}'
    assert error(http.post("/v1/store", content=big, headers=JSON), 413, "BODY_TOO_LARGE")["details"] == {
        "limit_bytes": 2000
    }
    parts = []

    def chunks():  # no length is declared, and the rest is never asked for
        for start in range(0, 100 * len(big), 1000):
            parts.append(start)
            yield b" " * 1000

    error(http.post("/v1/store", content=chunks(), headers=JSON), 413, "BODY_TOO_LARGE")
    assert http.post("/v1/store", json=STORE).status_code == 200


def test_texts_and_items_are_limited(served):
    http = served(limits=Limits(content_characters=10, query_characters=5, items=2))
    for extra in ({"content": "x" * 11}, {"retrieval_content": "x" * 11}):
        told = error(http.post("/v1/store", json={**STORE, **extra}), 422, "VALIDATION_ERROR")
        assert told["details"]["given"] == "11 characters"
    assert http.post("/v1/store", json={**STORE, "content": "ü" * 10}).status_code == 200
    for items in (["a", "b", "c"], ["x" * 11], [{"content": "x" * 11}]):
        error(http.post("/v1/store/batch", json={"owner": OWNER, "items": items}), 422, "VALIDATION_ERROR")
    error(http.post("/v1/retrieve", json={**ASK, "query": "x" * 6}), 422, "VALIDATION_ERROR")


def test_refused_items_are_told_beside_the_stored_ones(http, memory):
    items = ["a", "b\x00", {"content": "c", "valid_to": "2026-01-01T00:00:00Z"}, "d"]
    told = error(http.post("/v1/store/batch", json={"owner": OWNER, "items": items}), 422, "INVALID_ITEMS")
    assert [(item["code"], item["item"]) for item in told["details"]["rejected"]] == [
        ("INVALID_TEXT", 1),
        ("VALIDATION_ERROR", 2),
    ]
    contents = [memory.get(item["node_id"], owner=OWNER).content for item in told["details"]["stored"]]
    assert contents == ["a", "d"]


class Broken:
    """Not a memory: what happens when one fails."""

    def __init__(self, failure):
        self._failure = failure

    def store(self, content, **arguments):
        raise self._failure


def test_an_unexpected_failure_tells_nothing_and_logs_no_text(served, caplog):
    http = served(Broken(RuntimeError("Oscar is secret")))
    with caplog.at_level(logging.INFO):
        told = error(http.post("/v1/store", json={**STORE, "content": "Mara is secret"}), 500, "INTERNAL")
    assert (told["message"], list(told["details"])) == ("internal error", ["id"])
    assert told["details"]["id"] in caplog.text
    assert "RuntimeError" in caplog.text and "test_errors.py" in caplog.text
    assert "secret" not in caplog.text


ABOUT_THE_CALLER_S_RECORD = {FeedbackAltered, ReceiptRejected}
# The receipts of InvalidItems must be real ones: see above.
OTHERS = [kind for kind in CLASSES if kind is not InvalidItems]


@pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_and_hides_what_is_the_operator_s(served, kind):
    failure = made(kind)
    answer = served(Broken(failure)).post("/v1/store", json=STORE)
    assert answer.status_code == status_of(failure)
    told = error(answer, answer.status_code, answer.json()["error"]["code"])
    if answer.status_code == 500:
        assert told["message"] == "internal error"
    else:
        for name in ("path", "detail", "what", "pid", "host"):
            if name in failure.fields and not (name == "detail" and kind in ABOUT_THE_CALLER_S_RECORD):
                assert str(failure.fields[name]) not in answer.text.replace("store", "")
    assert ("retry-after" in answer.headers) == (answer.status_code in {429, 503})


@pytest.mark.parametrize(
    "failure",
    [kind for kind in OTHERS if kind is not PrmeRayError and status_of(made(kind)) != 500],
    ids=lambda kind: kind.__name__,
)
def test_a_client_rebuilds_the_error(failure):
    sent = public_error(made(failure))
    back = error_of(409, sent)
    assert type(back) is failure
    assert public_error(back) == sent


def test_an_error_of_another_version_is_a_service_error():
    back = error_of(418, b'{"error":{"code":"TEAPOT","message":"short and stout","details":{}}}')
    assert isinstance(back, ServiceError)
    assert str(back) == "the service answered 418 TEAPOT: short and stout"
    assert error_of(502, b"<html>").status == 502
    assert isinstance(error_of(503, b'{"error":{"code":"STORE_BUSY","message":"x","details":{}}}'), ServiceError)


def test_what_is_shown_of_a_state_of_the_service():
    assert b"/srv" not in public_error(StoreLocked(path="/srv/s", pid=7, host="box", since="now"))
    assert b"/srv" not in public_error(StoreBusy(what="the queue of /srv/s", waited_s=2.0))
    assert b"/srv" not in public_error(WriteFailed(detail="/srv/s: disk full", durable=True))
    assert b"retry in 2.5 s" in public_error(Overloaded(in_progress=1, waiting=2, retry_after_s=2.5))
