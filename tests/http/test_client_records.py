"""The clients' verbs about the past against a real server: results and errors of a Memory."""

import asyncio
from datetime import UTC, datetime

import pytest

from prme_ray import AsyncClient, Client
from prme_ray.model.errors import ConflictingOperation, FeedbackRejected, InvalidRequest, NotFound
from tests.memory.tools import OWNER

UNKNOWN = "00000000-0000-4000-8000-000000000000"
ASKED = "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
AT = datetime(2126, 6, 1, tzinfo=UTC)
BY_ID = ("get_retrieval", "replay", "reproduce", "get_relevance", "get_citations")
BY_OWNER = ("list_retrievals", "verify_chain", "list_relevance", "list_citations")


@pytest.fixture
def client(url):
    with Client(url, retries=0) as opened:
        yield opened


def judge(memory, labels, **options):
    return memory.record_relevance(ASKED, labels, owner=OWNER, method="explicit_user", **options)


def cite(memory, nodes, answer_id="a", **options):
    return memory.record_citations(ASKED, nodes, owner=OWNER, answer_id=answer_id, method="model_reported", **options)


def test_what_is_asked_of_the_past_is_the_memory_s(client, memory):
    node = memory.store("Oscar is a cat", owner=OWNER).node_id
    memory.retrieve("cat", owner=OWNER, request_id=ASKED)
    whose = {"owner": OWNER, "tenant": "default"}
    ours, direct = (
        {
            "judged": judge(asked, {node: True}, feedback_id=ASKED),
            "cited": cite(asked, (node,), citation_id=ASKED),
            **{verb: getattr(asked, verb)(ASKED, **whose) for verb in BY_ID},
            **{verb: getattr(asked, verb)(**whose) for verb in BY_OWNER},
        }
        for asked in (client, memory)
    )
    assert ours == direct
    assert ours["reproduce"].reproduced
    page = client.list_relevance(owner=OWNER, limit=1, after_id=UNKNOWN)
    assert (page.relevance, page.next_after_id) == ([ours["judged"]], None)
    assert client.retrieve("cat", owner=OWNER, as_of=AT).results.ids == ours["replay"].ranking == [node]
    assert judge(client, {node: True}).feedback_id != ASKED


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda memory: memory.get_retrieval(UNKNOWN, owner=OWNER), NotFound),
        (lambda memory: memory.replay("nonsense/../x", owner=OWNER), InvalidRequest),
        (lambda memory: memory.reproduce(UNKNOWN, owner=OWNER), NotFound),
        (lambda memory: memory.list_retrievals(owner=OWNER, cursor="&limit=5"), InvalidRequest),
        (lambda memory: memory.get_relevance(UNKNOWN, owner=OWNER), NotFound),
        (lambda memory: judge(memory, {UNKNOWN: True}), FeedbackRejected),
        (lambda memory: judge(memory, {UNKNOWN: "true"}), InvalidRequest),
        (lambda memory: cite(memory, [UNKNOWN]), FeedbackRejected),
        (lambda memory: cite(memory, [], citation_id=UNKNOWN), ConflictingOperation),
        (lambda memory: cite(memory, UNKNOWN), InvalidRequest),
        (lambda memory: memory.retrieve("x", owner=OWNER, as_of=10**6), InvalidRequest),
    ],
)
def test_errors_about_the_past_are_those_of_the_memory(client, memory, call, error):
    memory.retrieve("cat", owner=OWNER, request_id=ASKED)
    cite(memory, [], answer_id="b", citation_id=UNKNOWN)
    told = []
    for asked in (client, memory):
        with pytest.raises(error) as caught:
            call(asked)
        assert type(caught.value) is error
        told.append(str(caught.value))
    if error is not InvalidRequest:  # the schema of the service words its own refusals
        assert told[0] == told[1]


def test_the_async_client_has_the_same_verbs(url, memory):
    async def main():
        async with AsyncClient(url) as client:
            node = (await client.store("Oscar is a cat", owner=OWNER)).node_id
            await client.retrieve("cat", owner=OWNER, request_id=ASKED)
            return [
                await judge(client, {node: True}, feedback_id=ASKED),
                await cite(client, [node], citation_id=ASKED),
                *[await getattr(client, verb)(ASKED, owner=OWNER) for verb in BY_ID],
                *[await getattr(client, verb)(owner=OWNER) for verb in BY_OWNER],
            ]

    found = asyncio.run(main())
    verbs = ("get_relevance", "get_citations", *BY_ID)
    assert found[: len(verbs)] == [getattr(memory, verb)(ASKED, owner=OWNER) for verb in verbs]
    assert found[len(verbs) :] == [getattr(memory, verb)(owner=OWNER) for verb in BY_OWNER]
