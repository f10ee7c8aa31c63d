"""Feedback is bound to a receipt: what may be said of it, said once, and found again unaltered."""

import hashlib
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from prme_ray.model.errors import (
    ConflictingOperation,
    FeedbackAltered,
    FeedbackRejected,
    InvalidRequest,
    NotFound,
    ReadOnlyStore,
    StoreClosed,
)
from tests.memory.test_rerank import ON, Broken
from tests.memory.tools import OWNER

SEEN, BLIND, OTHER = (f"{digit}f1d8e7b-d38e-420a-bde5-0343aa5915c4" for digit in "123")
MINE = [f"{digit}ea5b4c9-0f3d-4d0e-9d2a-3f6a51c0d8e2" for digit in "abcde"]
UNKNOWN = "00000000-0000-4000-8000-000000000000"
SHA = hashlib.sha256(b"It is Oscar.").hexdigest()
AUDITABLE = {"packing": {"context_format": "auditable", "min_fidelity": "reference"}}
JUDGED = {"owner": OWNER, "method": "explicit_user"}
CITED = {"owner": OWNER, "method": "human_verified", "answer_id": "answer 1"}


@pytest.fixture
def memory(opened):
    return opened(settings=AUDITABLE)


@pytest.fixture
def ids(memory):
    """Return a memory packed with its text and one packed without, in SEEN; of BLIND nothing is packed."""
    short = memory.store("Oscar is a cat.", owner=OWNER).node_id
    long = memory.store("cat " + "and much more " * 300, owner=OWNER).node_id
    seen = memory.retrieve("cat", owner=OWNER, token_budget=400, request_id=SEEN)
    assert {found.node_id: found.representation for found in seen.results} == {short: "full", long: "key_value"}
    memory.retrieve("cat", owner=OWNER, token_budget=0, request_id=BLIND)
    memory.store("Rex is a dog.", owner=OWNER, scope="agent")
    memory.retrieve("cat", owner="eve", request_id=OTHER)
    return short, long


def judge(memory, labels, request_id=SEEN, **options):
    return memory.record_relevance(request_id, labels, **{**JUDGED, **options})


def cite(memory, nodes, request_id=SEEN, **options):
    return memory.record_citations(request_id, nodes, **{**CITED, **options})


def test_a_judgement_says_what_was_given_and_what_it_is_bound_to(memory, ids, opened):
    short, long = ids
    made = judge(memory, {long: False, short: True}, surface="context", feedback_id=MINE[0].upper())
    retrieval = memory.get_retrieval(SEEN, owner=OWNER)
    assert (made.feedback_id, made.request_id, made.labels) == (MINE[0], SEEN, {short: True, long: False})
    assert list(made.labels) == sorted(ids)
    assert (made.surface, made.method, made.tenant, made.owner) == ("context", "explicit_user", "default", OWNER)
    assert made.receipt_checksum == retrieval.receipt_checksum
    assert made.recorded_at > retrieval.recorded_at
    memory.close()
    again = opened(settings=AUDITABLE)
    assert again.get_relevance(MINE[0], owner=OWNER) == made
    assert again.list_relevance(owner=OWNER).relevance == [made]
    assert judge(again, {ids[0]: True}).feedback_id not in MINE  # an id is made up


def test_citations_say_what_was_given_and_what_they_are_bound_to(memory, ids):
    made = cite(memory, [ids[0].upper()], citation_id=MINE[0], answer_sha256=SHA.upper())
    retrieval = memory.get_retrieval(SEEN, owner=OWNER)
    assert (made.citation_id, made.request_id, made.cited_node_ids) == (MINE[0], SEEN, [ids[0]])
    assert (made.answer_id, made.answer_sha256, made.method) == ("answer 1", SHA, "human_verified")
    assert made.context_sha256 == retrieval.snapshot.context_sha256
    assert made.receipt_checksum == retrieval.receipt_checksum
    assert memory.get_citations(MINE[0], owner=OWNER) == made
    nothing = cite(memory, (), citation_id=MINE[1], request_id=BLIND)
    assert (nothing.cited_node_ids, nothing.answer_sha256) == ([], None)
    assert memory.list_citations(owner=OWNER).citations == [made, nothing]
    assert memory.list_relevance(owner=OWNER).relevance == []


def test_a_judgement_must_be_borne_out_by_the_receipt(memory, ids):
    short, long = ids
    for labels, options in (
        ({UNKNOWN: True}, {}),
        ({short: True, UNKNOWN: False}, {"surface": "context"}),
        ({long: True}, {"surface": "context"}),  # of its text nothing is in the context
        ({short: True}, {"surface": "context", "request_id": BLIND}),
        ({short: False}, {"surface": "context", "request_id": BLIND}),
    ):
        with pytest.raises(FeedbackRejected) as caught:
            judge(memory, labels, **options)
        assert caught.value.http_status == 400
    assert memory.list_relevance(owner=OWNER).relevance == []
    judge(memory, {long: True})
    judge(memory, {long: False}, surface="context")
    judge(memory, {short: True}, request_id=BLIND)


def test_citations_must_be_borne_out_by_the_receipt(memory, ids):
    short, long = ids
    for nodes, request_id in (([short, UNKNOWN], SEEN), ([long], SEEN), ([short], BLIND)):
        with pytest.raises(FeedbackRejected):
            cite(memory, nodes, request_id=request_id)
    assert memory.list_citations(owner=OWNER).citations == []


def test_wrong_arguments_are_named(memory, ids):
    node = ids[0]
    for argument, call in (
        ("labels", lambda: judge(memory, {})),
        ("labels", lambda: judge(memory, [node])),
        ("labels", lambda: judge(memory, {"first": True})),
        ("labels", lambda: judge(memory, {node: True, node.upper(): True})),
        (f"labels.{node}", lambda: judge(memory, {node: 1})),
        ("surface", lambda: judge(memory, {node: True}, surface="page")),
        ("method", lambda: judge(memory, {node: True}, method="guess")),
        ("feedback_id", lambda: judge(memory, {node: True}, feedback_id="mine")),
        ("request_id", lambda: judge(memory, {node: True}, request_id="7")),
        ("owner", lambda: judge(memory, {node: True}, owner="")),
        ("confined_to", lambda: judge(memory, {node: True}, confined_to="moon")),
        ("cited_node_ids", lambda: cite(memory, node)),
        ("cited_node_ids", lambda: cite(memory, [node, node])),
        ("cited_node_ids", lambda: cite(memory, [node] * 1001)),
        ("answer_id", lambda: cite(memory, [node], answer_id=" \t")),
        ("answer_id", lambda: cite(memory, [node], answer_id="a" * 513)),
        ("answer_id", lambda: cite(memory, [node], answer_id="\x00")),
        ("answer_sha256", lambda: cite(memory, [node], answer_sha256="abc")),
        ("method", lambda: cite(memory, [node], method="explicit_user")),
        ("citation_id", lambda: cite(memory, [node], citation_id="mine")),
        ("after_id", lambda: memory.list_relevance(owner=OWNER, after_id="mine")),
        ("limit", lambda: memory.list_citations(owner=OWNER, limit=1001)),
        ("limit", lambda: memory.list_relevance(owner=OWNER, limit=0)),
    ):
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert (caught.value.argument, type(caught.value).http_status) == (argument, 422)
    cite(memory, [node], answer_id="a" * 512)


def test_the_same_again_is_the_same_record_and_anything_else_is_refused(memory, ids):
    short, long = ids
    first = judge(memory, {short: True, long: False}, feedback_id=MINE[0])
    assert judge(memory, {long.upper(): False, short: True}, feedback_id=MINE[0].upper()) == first
    cited = cite(memory, [short], citation_id=MINE[0])  # an id of its own kind
    assert cite(memory, [short], citation_id=MINE[0]) == cited
    for labels, options in (
        ({short: False, long: False}, {}),
        ({short: True}, {}),
        ({short: True, long: False}, {"request_id": BLIND}),
        ({short: True, long: False}, {"surface": "context"}),
        ({short: True, long: False}, {"method": "structured_evaluation"}),
        ({UNKNOWN: True}, {"request_id": UNKNOWN}),
    ):
        with pytest.raises(FeedbackRejected, match="stands for another"):
            judge(memory, labels, feedback_id=MINE[0], **options)
    for nodes, options in (([], {}), ([short], {"answer_id": "answer 2"}), ([short], {"answer_sha256": SHA})):
        with pytest.raises(ConflictingOperation) as caught:
            cite(memory, nodes, citation_id=MINE[0], **options)
        assert caught.value.http_status == 409
    assert memory.list_relevance(owner=OWNER).relevance == [first]
    assert memory.list_citations(owner=OWNER).citations == [cited]


def test_of_judgements_with_one_id_at_the_same_moment_one_is_kept(memory, ids):
    def attempt(number):
        try:
            return judge(memory, {ids[number % 2]: True}, feedback_id=MINE[0])
        except FeedbackRejected:
            return None

    with ThreadPoolExecutor(8) as pool:
        kept = [made for made in pool.map(attempt, range(16)) if made is not None]
    assert len({made.model_dump_json() for made in kept}) == 1
    assert len(kept) == 8
    assert memory.list_relevance(owner=OWNER).relevance == kept[:1]


def test_another_owner_s_is_as_unknown_as_one_that_never_was(memory, ids):
    judge(memory, {ids[0]: True}, feedback_id=MINE[0])
    cite(memory, [ids[0]], citation_id=MINE[0])
    for whose in ({"owner": "eve"}, {"owner": OWNER, "tenant": "other"}):
        for call in (memory.get_relevance, memory.get_citations):
            refusals = []
            for wanted in (MINE[0], UNKNOWN):
                with pytest.raises(NotFound) as caught:
                    call(wanted, **whose)
                refusals.append(str(caught.value).replace(wanted, "ID"))
            assert refusals[0] == refusals[1]
        assert memory.list_relevance(**whose).relevance == memory.list_citations(**whose).citations == []
    for request_id in (OTHER, UNKNOWN):
        with pytest.raises(NotFound):
            judge(memory, {ids[0]: True}, request_id=request_id)
    with pytest.raises(NotFound):
        judge(memory, {ids[0]: True}, owner="eve")


def test_a_request_that_failed_has_nothing_to_judge(opened):
    memory = opened(settings=ON, cross_encoder=Broken())
    node = memory.store("Oscar is a cat.", owner=OWNER).node_id
    with pytest.raises(ConnectionError):
        memory.retrieve("cat", owner=OWNER, request_id=SEEN)
    for call in (lambda: judge(memory, {node: True}), lambda: cite(memory, [])):
        with pytest.raises(NotFound, match="failed request"):
            call()


def test_whoever_is_confined_to_a_scope_finds_only_what_saw_no_other(memory, ids):
    judge(memory, {ids[0]: True}, feedback_id=MINE[0])
    narrow = memory.retrieve("dog", owner=OWNER, scope="agent", include_cross_scope=False)
    memory.retrieve("dog", owner=OWNER, scope="agent", request_id=UNKNOWN)  # with hints at other scopes
    request_id, (dog,) = narrow.metadata.request_id, narrow.results.ids
    mine = judge(memory, {dog: True}, request_id=request_id, feedback_id=MINE[1], confined_to="agent")
    assert mine.scope == "agent"
    whose = {"owner": OWNER, "confined_to": "agent"}
    assert memory.list_relevance(**whose).relevance == [mine]
    page = memory.list_relevance(**whose, limit=1)
    assert (page.relevance, page.next_after_id) == ([], MINE[0])
    assert memory.list_relevance(**whose, after_id=MINE[0]).relevance == [mine]
    assert [found.request_id for found in memory.list_retrievals(**whose).retrievals] == [request_id]
    assert memory.get_retrieval(request_id, **whose).record["scope_filter"] == ["agent"]
    for call in (
        lambda: memory.get_relevance(MINE[0], **whose),
        lambda: judge(memory, {ids[0]: True}, confined_to="agent"),
        lambda: memory.get_retrieval(SEEN, **whose),
        lambda: memory.replay(UNKNOWN, **whose),
        lambda: memory.reproduce(SEEN, **whose),
    ):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(FeedbackRejected):  # not even what stands under an id is told
        judge(memory, {ids[0]: True}, feedback_id=MINE[0], confined_to="agent")


def test_a_listing_goes_on_where_the_page_before_ended(memory, ids):
    made = {name: judge(memory, {ids[0]: True}, feedback_id=name) for name in (MINE[3], MINE[0], MINE[4], MINE[1])}
    expected = [made[name] for name in sorted(made)]
    first = memory.list_relevance(owner=OWNER, limit=3)
    assert (first.relevance, first.next_after_id) == (expected[:3], MINE[3])
    last = memory.list_relevance(owner=OWNER, limit=3, after_id=first.next_after_id.upper())
    assert (last.relevance, last.next_after_id) == (expected[3:], None)
    assert memory.list_relevance(owner=OWNER, after_id=MINE[2]).relevance == expected[2:]


def test_a_process_that_only_reads_keeps_nothing(memory, ids, opened, folder):
    made = judge(memory, {ids[0]: True}, feedback_id=MINE[0])
    reader = opened(folder, settings=AUDITABLE, read_only=True)
    assert reader.get_relevance(MINE[0], owner=OWNER) == made
    for call in (judge, cite):
        with pytest.raises(ReadOnlyStore):
            call(reader, {ids[0]: True} if call is judge else [ids[0]])
    reader.close()
    with pytest.raises(StoreClosed):
        reader.list_relevance(owner=OWNER)


def _altered(payload, change):
    held = json.loads(payload)
    change(held)
    return json.dumps(held).encode()


def _relabelled(held):
    held["record"] = held["record"].replace("true", "false")


def _relabelled_and_signed(held):
    _relabelled(held)
    held["record_sha256"] = hashlib.sha256(held["record"].encode()).hexdigest()


def _extended(held):
    held["record"] = held["record"][:-1] + ',"note":1}'
    held["record_sha256"] = hashlib.sha256(held["record"].encode()).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        lambda payload: _altered(payload, _relabelled),
        lambda payload: _altered(payload, _extended),
        lambda payload: _altered(payload, lambda held: held.pop("record_sha256")),
        lambda payload: payload[:-1],
        lambda payload: b"[]",
        lambda payload: b"\xff",
    ],
)
def test_an_altered_record_is_refused(memory, ids, folder, change):
    judge(memory, {ids[0]: True}, feedback_id=MINE[0])
    rewrite(folder, lambda database: set_payload(database, MINE[0], change))
    for call in (
        lambda: memory.get_relevance(MINE[0], owner=OWNER),
        lambda: memory.list_relevance(owner=OWNER),
        lambda: judge(memory, {ids[0]: True}, feedback_id=MINE[0]),
    ):
        with pytest.raises(FeedbackAltered):
            call()


def test_a_record_under_another_id_or_owner_is_refused_and_the_chain_finds_what_a_digest_cannot(memory, ids, folder):
    judge(memory, {ids[0]: True}, feedback_id=MINE[0])
    judge(memory, {ids[0]: False}, feedback_id=MINE[1])
    assert memory.verify_chain(owner=OWNER).whole
    rewrite(folder, lambda database: set_payload(database, MINE[1], lambda _: payload_of(database, MINE[0])))
    with pytest.raises(FeedbackAltered, match="another owner or id"):
        memory.get_relevance(MINE[1], owner=OWNER)
    rewrite(folder, lambda database: set_payload(database, MINE[0], lambda p: _altered(p, _relabelled_and_signed)))
    assert memory.get_relevance(MINE[0], owner=OWNER).labels == {ids[0]: False}
    assert not memory.verify_chain(owner=OWNER).whole


def payload_of(database, target):
    return database.execute("SELECT payload FROM operations WHERE target = ?", [target]).fetchone()[0]


def set_payload(database, target, change):
    fresh = change(payload_of(database, target))
    assert database.execute("UPDATE operations SET payload = ? WHERE target = ?", [fresh, target]).rowcount == 1


def rewrite(folder, change):
    """Change the log behind its back, as somebody with access to the disk could."""
    (path,) = (path for path in folder.rglob("*.sqlite") if holds(path))
    database = sqlite3.connect(path)
    with database:
        change(database)
    database.close()


def holds(path):
    database = sqlite3.connect(path)
    tables = database.execute("SELECT name FROM sqlite_master WHERE name = 'operations'").fetchall()
    count = (
        database.execute("SELECT count(*) FROM operations WHERE target = ?", [MINE[0]]).fetchone()[0] if tables else 0
    )
    database.close()
    return count > 0
