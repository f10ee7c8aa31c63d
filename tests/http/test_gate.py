"""Places are bounded, come back whatever happens, and waiting is bounded too."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from prme_ray.http.app import create_app
from prme_ray.http.gate import Gate
from prme_ray.http.limits import Limits
from prme_ray.model.service_errors import Overloaded
from tests.memory.tools import OWNER

SOON_S = 20


@pytest.fixture
def gate():
    made = Gate(places=2, waiting=2, patience_s=SOON_S)
    yield made
    made.close()


async def turned(check):
    """Return once ``check`` holds; give up after a long time."""
    deadline = time.monotonic() + SOON_S
    while not check():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


def test_places_then_a_queue_then_a_refusal(gate):
    async def main():
        assert [await gate.enter(), await gate.enter()] == [False, False]
        order = []

        async def wait(name):
            await gate.enter()
            order.append(name)

        first = asyncio.create_task(wait("first"))
        await turned(lambda: gate.waiting == 1)
        second = asyncio.create_task(wait("second"))
        await turned(lambda: gate.waiting == 2)
        with pytest.raises(Overloaded) as caught:
            await gate.enter()
        assert (caught.value.in_progress, caught.value.waiting) == (2, 2)
        gate.leave()
        gate.leave()
        await asyncio.gather(first, second)
        assert order == ["first", "second"]
        assert (gate.in_progress, gate.waiting) == (2, 0)

    asyncio.run(main())


def test_who_waits_too_long_is_refused_and_leaves_the_queue():
    async def main():
        gate = Gate(places=1, waiting=5, patience_s=0.02)
        await gate.enter()
        with pytest.raises(Overloaded):
            await gate.enter()
        assert (gate.in_progress, gate.waiting) == (1, 0)
        gate.leave()
        assert await gate.enter() is False
        gate.close()

    asyncio.run(main())


def test_a_cancelled_waiter_takes_no_place_with_it(gate):
    async def main():
        for _ in range(2):
            await gate.enter()
        waiter = asyncio.create_task(gate.enter())
        await turned(lambda: gate.waiting == 1)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert gate.waiting == 0
        late = asyncio.create_task(gate.enter())
        await turned(lambda: gate.waiting == 1)
        gate.leave()  # the turn is given and the caller goes at the same moment
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        gate.leave()
        assert gate.in_progress == 0

    asyncio.run(main())


def test_a_cancelled_call_keeps_its_place_until_its_thread_is_done(gate):
    release = threading.Event()

    async def main():
        await gate.enter()
        running = asyncio.create_task(gate.run(lambda: release.wait(SOON_S)))
        await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert gate.in_progress == 1
        release.set()
        await turned(lambda: gate.in_progress == 0)
        await gate.enter()
        with pytest.raises(ZeroDivisionError):
            await gate.run(lambda: 1 / 0)
        await turned(lambda: gate.in_progress == 0)

    asyncio.run(main())


class Slow:
    """A memory whose calls take until they are let go."""

    def __init__(self):
        self.let_go = threading.Event()
        self.running = 0

    def get(self, node_id, **whose):
        self.running += 1
        self.let_go.wait(SOON_S)
        raise LookupError


def until(check):
    deadline = time.monotonic() + SOON_S
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_overload_is_a_503_at_once_and_goes_away(listening):
    slow = Slow()
    app = create_app(slow, limits=Limits(in_progress=2, waiting=1, patience_s=SOON_S))
    url = listening(app)
    gate = app.state.service.gate

    def ask(_=0):
        return httpx.get(f"{url}/v1/nodes/x", params={"owner": OWNER}, timeout=SOON_S)

    with ThreadPoolExecutor(3) as pool:
        answers = pool.map(ask, range(3))
        until(lambda: gate.waiting == 1)
        refused = ask()
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "OVERLOADED")
        assert refused.headers["retry-after"] == "1"
        assert httpx.get(f"{url}/livez").status_code == 200
        slow.let_go.set()
        assert [answer.status_code for answer in answers] == [500] * 3
    until(lambda: gate.in_progress == 0)
    assert slow.running == 3


def test_who_goes_away_while_waiting_is_not_worked_for(listening):
    slow = Slow()
    app = create_app(slow, limits=Limits(in_progress=1, waiting=5, patience_s=SOON_S))
    url = listening(app)
    gate = app.state.service.gate
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: httpx.get(f"{url}/v1/nodes/x?owner={OWNER}", timeout=SOON_S))
        until(lambda: slow.running == 1)
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{url}/v1/nodes/x?owner={OWNER}", timeout=httpx.Timeout(SOON_S, read=0.1))
        assert gate.waiting == 1
        slow.let_go.set()
        assert first.result().status_code == 500
    until(lambda: gate.in_progress == 0 and gate.waiting == 0)
    assert slow.running == 1
