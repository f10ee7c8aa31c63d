"""The asyncio face: the same verbs and refusals, streams of either kind, a loop that never waits."""

import asyncio
import time

import pytest

from prme_ray import AsyncMemory, Memory
from prme_ray.model.errors import InvalidItems, NotFound, StoreClosed
from tests.memory.tools import FEW_SHARDS, OWNER, WordEncoder


def run(folder, work, **options):
    async def main():
        options.setdefault("encoder", WordEncoder())
        async with await AsyncMemory.open(folder, settings=FEW_SHARDS, **options) as memory:
            return await work(memory)

    return asyncio.run(main())


def test_every_verb_works(folder):
    async def work(memory):
        stored = await memory.store("Oscar is a cat.", owner=OWNER)
        node = await memory.store_node("Dana likes tea.", owner=OWNER, node_type="preference")
        assert await memory.store_edge(stored.node_id, node.node_id, "supports", owner=OWNER)
        assert (await memory.get(node.node_id, owner=OWNER)).content == "Dana likes tea."
        assert (await memory.get_event(stored.event_id, owner=OWNER)).content == "Oscar is a cat."
        await memory.flush()
        assert (await memory.health()).healthy
        with pytest.raises(NotFound):
            await memory.get(node.node_id, owner="eve")
        answer = await memory.retrieve("cat", owner=OWNER)
        request_id = answer.metadata.request_id
        assert (await memory.get_retrieval(request_id, owner=OWNER)).request_id == request_id
        assert (await memory.replay(request_id, owner=OWNER)).ranking == answer.results.ids
        assert (await memory.reproduce(request_id, owner=OWNER)).reproduced
        judged = await memory.record_relevance(request_id, {stored.node_id: True}, owner=OWNER, method="explicit_user")
        assert await memory.get_relevance(judged.feedback_id, owner=OWNER) == judged
        assert (await memory.list_relevance(owner=OWNER)).relevance == [judged]
        cited = await memory.record_citations(
            request_id, [stored.node_id], owner=OWNER, answer_id="a", method="human_verified"
        )
        assert await memory.get_citations(cited.citation_id, owner=OWNER) == cited
        assert (await memory.list_citations(owner=OWNER)).citations == [cited]
        assert [one.request_id for one in (await memory.list_retrievals(owner=OWNER)).retrievals] == [request_id]
        assert (await memory.verify_chain(owner=OWNER)).whole
        await memory.close()
        with pytest.raises(StoreClosed):
            await memory.retrieve("cat", owner=OWNER)
        return answer.results.ids, stored.node_id

    found, node_id = run(folder, work)
    assert node_id in found


async def stream(items):
    for item in items:
        await asyncio.sleep(0)
        yield item


def test_an_async_stream_is_one_stream(folder):
    items = [f"number {number}" for number in range(300)]
    items[280] = "bad \x00"

    async def work(memory):
        with pytest.raises(InvalidItems) as caught:
            await memory.store_many(stream(items), owner=OWNER)
        return caught.value

    error = run(folder, work)
    assert [refusal.item for refusal in error.rejected] == [280]
    with Memory.open(folder, encoder=WordEncoder()) as memory:
        assert [memory.get(s.node_id, owner=OWNER).content for s in error.stored] == items[:280] + items[281:]


def test_what_came_before_an_exception_of_an_async_stream_is_stored(folder):
    async def broken():
        for number in range(10):
            yield f"number {number}"
        raise LookupError("the source went away")

    async def work(memory):
        with pytest.raises(LookupError):
            await memory.store_many(broken(), owner=OWNER)
        return len((await memory.retrieve("number", owner=OWNER)).results)

    assert run(folder, work) == 10


def test_a_plain_iterable_and_an_empty_stream(folder):
    async def work(memory):
        assert await memory.store_many(stream([]), owner=OWNER) == []
        return len(await memory.store_many(["a", "b"], owner=OWNER))

    assert run(folder, work) == 2


def test_a_cancelled_stream_ends(folder):
    async def endless():
        while True:
            yield "number"
            await asyncio.sleep(0.001)

    async def work(memory):
        task = asyncio.create_task(memory.store_many(endless(), owner=OWNER))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    started = time.monotonic()
    run(folder, work)
    assert time.monotonic() - started < 120


def test_the_loop_goes_on_while_a_slow_encoder_works(folder):
    class Slow(WordEncoder):
        def embed(self, texts):
            time.sleep(0.3)
            return super().embed(texts)

    async def work(memory):
        task = asyncio.create_task(memory.store("Oscar is a cat.", owner=OWNER))
        beats = 0
        while not task.done():
            await asyncio.sleep(0.01)
            beats += 1
        return beats

    assert run(folder, work, encoder=Slow()) >= 3


def test_questions_asked_at_once_each_get_their_own_answer(folder):
    async def work(memory):
        for number in range(8):
            await memory.store(f"the number {number}", owner=f"owner {number}")
        answers = await asyncio.gather(*(memory.retrieve("the number", owner=f"owner {number}") for number in range(8)))
        return [[candidate.content for candidate in answer.results] for answer in answers]

    assert run(folder, work) == [[f"the number {number}"] for number in range(8)]
