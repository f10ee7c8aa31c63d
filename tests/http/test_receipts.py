"""Past retrievals and feedback over HTTP: what the Python verbs give, to whom it belongs, and how it is refused."""

import hashlib
import json

import pytest

from prme_ray import Memory
from prme_ray.http.access import Access
from prme_ray.http.bodies import CitationsBody, RelevanceBody
from prme_ray.keys import create_key
from tests.http.test_routes import names_of
from tests.memory.tools import OWNER, START

ASKED = "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
MINE = [f"{digit}ea5b4c9-0f3d-4d0e-9d2a-3f6a51c0d8e2" for digit in "abc"]
UNKNOWN = "00000000-0000-4000-8000-000000000000"
DANA = {"owner": OWNER}


@pytest.fixture
def node(memory):
    """Return a memory that retrieval ASKED returned and packed."""
    stored = memory.store("Oscar is a cat.", owner=OWNER)
    memory.retrieve("cat", owner=OWNER, request_id=ASKED)
    return stored.node_id


def judge(http, node, **body):
    given = {**DANA, "request_id": ASKED, "labels": {node: True}, "method": "explicit_user", **body}
    return http.post("/v1/relevance", json=given)


def cite(http, node, **body):
    given = {**DANA, "request_id": ASKED, "cited_node_ids": [node], "answer_id": "a", "method": "model_reported"}
    return http.post("/v1/answer-citations", json={**given, **body})


def dumped(found):
    return found.model_dump(mode="json")


def test_a_retrieval_over_http_is_the_python_one(http, memory, node):
    told = http.get(f"/v1/retrievals/{ASKED}", params=DANA)
    assert told.json() == dumped(memory.get_retrieval(ASKED, owner=OWNER))
    # The checksum is of the bytes of the text as it came, whatever JSON library reads the rest.
    receipt = told.json()["receipt"]
    assert hashlib.sha256(receipt.encode()).hexdigest() == told.json()["receipt_checksum"]
    assert json.loads(receipt)["request_id"] == ASKED
    replayed = http.post(f"/v1/retrievals/{ASKED}/replay", json=DANA)
    assert replayed.json() == dumped(memory.replay(ASKED, owner=OWNER))
    assert replayed.json()["ranking"] == [node]
    memory.store("Rex is a dog.", owner=OWNER)
    reproduced = http.post(f"/v1/retrievals/{ASKED}/reproduce", json=DANA)
    assert reproduced.json() == dumped(memory.reproduce(ASKED, owner=OWNER))
    assert (reproduced.json()["reproduced"], reproduced.json()["reasons"]) == (True, [])
    chain = http.get("/v1/chain", params=DANA).json()
    assert chain == dumped(memory.verify_chain(owner=OWNER))
    assert (chain["records"], chain["breaks"]) == (1, [])


def test_a_question_to_the_past(http, memory, node):
    snapshot = memory.get_retrieval(ASKED, owner=OWNER).snapshot.sequence
    memory.store("Mia is a cat.", owner=OWNER)
    now = http.post("/v1/retrieve", json={**DANA, "query": "cat"}).json()
    then = http.post("/v1/retrieve", json={**DANA, "query": "cat", "as_of": snapshot}).json()
    assert ([found["node_id"] for found in then["results"]], len(now["results"])) == ([node], 2)
    before = http.post("/v1/retrieve", json={**DANA, "query": "cat", "as_of": "2020-01-01T00:00:00Z"}).json()
    assert before["results"] == []
    for wrong in (-1, 10**6, True, 1.5, "yesterday", "2020-01-01T00:00:00"):
        answer = http.post("/v1/retrieve", json={**DANA, "query": "cat", "as_of": wrong})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "VALIDATION_ERROR")


def test_retrievals_come_in_pages(http, memory, node):
    asked = [ASKED, *(memory.retrieve("dog", owner=OWNER).metadata.request_id for _ in range(4))]
    found, cursor = [], None
    for expected in (2, 2, 1):
        page = http.get("/v1/retrievals", params={**DANA, "limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        assert len(page["retrievals"]) == expected
        found += page["retrievals"]
        cursor = page["next_cursor"]
    assert cursor is None
    assert [one["request_id"] for one in found] == asked
    assert found == dumped(memory.list_retrievals(owner=OWNER))["retrievals"]
    assert http.get("/v1/retrievals", params={"owner": "nobody"}).json() == {"retrievals": [], "next_cursor": None}
    for wrong in ({"limit": 0}, {"limit": 1001}, {"limit": "many"}, {"cursor": "x"}, {"after": "x"}):
        assert http.get("/v1/retrievals", params={**DANA, **wrong}).status_code == 422


def test_feedback_over_http_is_the_python_one(http, memory, node):
    told = judge(http, node, feedback_id=MINE[0], surface="context").json()
    assert told == dumped(memory.get_relevance(MINE[0], owner=OWNER))
    assert told == http.get(f"/v1/relevance/{MINE[0]}", params=DANA).json()
    assert told == judge(http, node, feedback_id=MINE[0].upper(), surface="context").json()
    other = judge(http, node).json()
    assert http.get("/v1/relevance", params=DANA).json() == dumped(memory.list_relevance(owner=OWNER))
    cited = cite(http, node, citation_id=MINE[1]).json()
    assert cited == dumped(memory.get_citations(MINE[1], owner=OWNER))
    assert cited == http.get(f"/v1/answer-citations/{MINE[1]}", params=DANA).json()
    assert http.get("/v1/answer-citations", params=DANA).json() == {"citations": [cited], "next_after_id": None}
    first, second = sorted([told, other], key=lambda record: record["feedback_id"])
    page = http.get("/v1/relevance", params={**DANA, "limit": 1}).json()
    assert page == {"relevance": [first], "next_after_id": first["feedback_id"]}
    page = http.get("/v1/relevance", params={**DANA, "limit": 1, "after_id": page["next_after_id"]}).json()
    assert page == {"relevance": [second], "next_after_id": None}


def test_everything_the_feedback_verbs_take_can_be_given():
    own = {"self", "owner", "tenant", "confined_to"}
    assert names_of(Memory.record_relevance) - own == RelevanceBody.model_fields.keys() - own
    assert names_of(Memory.record_citations) - own == CitationsBody.model_fields.keys() - own


def test_refusals_have_their_own_statuses(http, node):
    judge(http, node, feedback_id=MINE[0])
    cite(http, node, citation_id=MINE[0])
    for status, code, answer in (
        (400, "FEEDBACK_REJECTED", judge(http, UNKNOWN)),
        (400, "FEEDBACK_REJECTED", cite(http, UNKNOWN)),
        (400, "FEEDBACK_REJECTED", judge(http, node, feedback_id=MINE[0], surface="context")),
        (409, "CONFLICTING_OPERATION", cite(http, node, citation_id=MINE[0], answer_id="b")),
        (404, "NOT_FOUND", judge(http, node, request_id=UNKNOWN)),
        (404, "NOT_FOUND", cite(http, node, owner="eve")),
        (422, "VALIDATION_ERROR", judge(http, node, labels={})),
        (422, "VALIDATION_ERROR", judge(http, node, labels={node: "true"})),
        (422, "VALIDATION_ERROR", judge(http, node, labels={node: 1})),
        (422, "VALIDATION_ERROR", judge(http, node, note="x")),
        (422, "VALIDATION_ERROR", judge(http, node, confined_to="agent")),
        (422, "VALIDATION_ERROR", cite(http, node, cited_node_ids=[node, node])),
        (422, "VALIDATION_ERROR", cite(http, node, answer_id="  ")),
        (422, "VALIDATION_ERROR", http.get("/v1/retrievals/seven", params=DANA)),
        (422, "VALIDATION_ERROR", http.get(f"/v1/retrievals/{ASKED}")),
        (422, "VALIDATION_ERROR", http.post(f"/v1/retrievals/{ASKED}/replay", json={**DANA, "limit": 1})),
        (415, "UNSUPPORTED_MEDIA_TYPE", http.post(f"/v1/retrievals/{ASKED}/reproduce", content=b"{}")),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_another_owner_s_is_as_unknown_as_one_that_never_was(http, memory, node):
    memory.store("Rex is a dog.", owner="eve")
    theirs = memory.retrieve("dog", owner="eve")
    request_id = theirs.metadata.request_id
    judge(http, theirs.results.ids[0], request_id=request_id, owner="eve", feedback_id=MINE[2])
    cite(http, theirs.results.ids[0], request_id=request_id, owner="eve", citation_id=MINE[2])
    for method, path, wanted in (
        ("GET", "/v1/retrievals/{}", request_id),
        ("POST", "/v1/retrievals/{}/replay", request_id),
        ("POST", "/v1/retrievals/{}/reproduce", request_id),
        ("GET", "/v1/relevance/{}", MINE[2]),
        ("GET", "/v1/answer-citations/{}", MINE[2]),
    ):
        answers = []
        for subject in (wanted, UNKNOWN):
            given = {"params": DANA} if method == "GET" else {"json": DANA}
            answer = http.request(method, path.format(subject), **given)
            answers.append((answer.status_code, answer.text.replace(subject, "ID")))
        assert answers[0] == answers[1]
        assert answers[0][0] == 404


@pytest.fixture
def keyed(served, tmp_path):
    """Return a function that makes a key and asks with it."""
    file = tmp_path / "keys.json"
    create_key(file, tenant="nobody", permissions=["memory:read"], now=START)
    client = served(access=Access(file))

    def new(*permissions, **binding):
        key = create_key(file, tenant="acme", permissions=permissions, now=START, **binding).key

        def ask(method, path, **options):
            return client.request(method, path, headers={"Authorization": f"Bearer {key}"}, **options)

        return ask

    return new


def test_reading_and_judging_need_their_own_permissions(keyed, memory):
    node = memory.store("Oscar is a cat.", owner=OWNER, tenant="acme").node_id
    memory.retrieve("cat", owner=OWNER, tenant="acme", request_id=ASKED)
    reader, writer = keyed("memory:read", owner=OWNER), keyed("memory:write", owner=OWNER)
    label = {"request_id": ASKED, "labels": {node: True}, "method": "explicit_user", "feedback_id": MINE[0]}
    cited = {"request_id": ASKED, "cited_node_ids": [], "answer_id": "a", "method": "model_reported"}
    for path, body in (("/v1/relevance", label), ("/v1/answer-citations", cited)):
        assert reader("POST", path, json=body).status_code == 403
        assert writer("POST", path, json={**body, "owner": "eve"}).status_code == 403
        assert writer("POST", path, json=body).status_code == 200
    for method, path in (
        ("GET", "/v1/retrievals"),
        ("GET", f"/v1/retrievals/{ASKED}"),
        ("POST", f"/v1/retrievals/{ASKED}/replay"),
        ("POST", f"/v1/retrievals/{ASKED}/reproduce"),
        ("GET", "/v1/chain"),
        ("GET", "/v1/relevance"),
        ("GET", f"/v1/relevance/{MINE[0]}"),
        ("GET", "/v1/answer-citations"),
    ):
        options = {"json": {}} if method == "POST" else {}
        assert reader(method, path, **options).status_code == 200
        assert writer(method, path, **options).status_code == 403


def test_an_agent_s_key_finds_only_what_saw_no_other_scope(keyed, memory):
    whose = {"owner": "helper", "tenant": "acme"}
    wide_node = memory.store("The personal cat is Oscar.", **whose).node_id
    memory.store("The agent's cat is Mia.", **whose, scope="agent")
    wide = memory.retrieve("cat", **whose, request_id=UNKNOWN).metadata.request_id
    memory.retrieve("cat", **whose, scope="agent")  # it has hints at other scopes
    memory.record_relevance(wide, {wide_node: True}, **whose, method="explicit_user", feedback_id=MINE[0])
    memory.record_citations(wide, [], **whose, answer_id="a", method="model_reported", citation_id=MINE[0])
    agent = keyed("memory:read", "memory:write", agent="helper")
    told = agent("POST", "/v1/retrieve", json={"query": "cat"}).json()
    request_id, mine = told["metadata"]["request_id"], told["results"][0]["node_id"]
    assert agent("GET", f"/v1/retrievals/{request_id}").json()["record"]["scope_filter"] == ["agent"]
    assert agent("POST", f"/v1/retrievals/{request_id}/reproduce", json={}).json()["reproduced"]
    label = {"labels": {mine: True}, "method": "explicit_user", "feedback_id": MINE[1]}
    assert agent("POST", "/v1/relevance", json={**label, "request_id": request_id}).json()["scope"] == "agent"
    for method, path, body in (
        ("GET", f"/v1/retrievals/{wide}", None),
        ("POST", f"/v1/retrievals/{wide}/replay", {}),
        ("POST", f"/v1/retrievals/{wide}/reproduce", {}),
        ("GET", f"/v1/relevance/{MINE[0]}", None),
        ("GET", f"/v1/answer-citations/{MINE[0]}", None),
        ("POST", "/v1/relevance", {**label, "request_id": wide, "feedback_id": MINE[2]}),
    ):
        assert agent(method, path, json=body).status_code == 404
    retrievals = agent("GET", "/v1/retrievals").json()["retrievals"]
    assert [one["request_id"] for one in retrievals] == [request_id]
    assert [one["feedback_id"] for one in agent("GET", "/v1/relevance").json()["relevance"]] == [MINE[1]]
    assert agent("GET", "/v1/answer-citations").json()["citations"] == []
