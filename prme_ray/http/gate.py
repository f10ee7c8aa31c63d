"""How much is done at once: a number of places, a number of requests that wait, and no more."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from prme_ray.model.service_errors import Overloaded

__all__ = ["Gate"]

T = TypeVar("T")


class Gate:
    """Runs calls in threads, ``places`` at once. Belongs to one event loop.

    A place is given back when the call has ended, not when its caller has gone: a call in a thread cannot
    be stopped, and would otherwise be one more than allowed.

    Args:
        places: Calls at once, and threads.
        waiting: Most requests that wait for a place.
        patience_s: Longest wait, in seconds.
    """

    def __init__(self, *, places: int, waiting: int, patience_s: float) -> None:
        self._places = places
        self._limit = waiting
        self._patience_s = patience_s
        self._free = places
        self._queue: deque[asyncio.Future[None]] = deque()
        self._pool = ThreadPoolExecutor(places, thread_name_prefix="prme-ray-http")

    @property
    def in_progress(self) -> int:
        """Calls that hold a place."""
        return self._places - self._free

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return len(self._queue)

    async def enter(self) -> bool:
        """Take a place; return whether it had to be waited for.

        Raises:
            Overloaded: as many wait as may, or none became free in time.
        """
        if self._free:
            self._free -= 1
            return False
        if len(self._queue) >= self._limit:
            raise self._overloaded()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            # Not awaited directly: a time-out must not cancel a turn that came at the same moment.
            await asyncio.wait([turn], timeout=self._patience_s)
        except asyncio.CancelledError:
            self._withdraw(turn)
            raise
        if not turn.done():
            self._withdraw(turn)
            raise self._overloaded()
        return True

    def leave(self) -> None:
        """Give a place back: to who waits longest, if anybody does."""
        if self._queue:
            self._queue.popleft().set_result(None)
        else:
            self._free += 1

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in a thread, on a place taken before, and give the place back at its end.

        The call sees the context variables of the caller, such as the span that it belongs to.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def end(result: T | None, error: BaseException | None) -> None:
            self.leave()
            if answer.cancelled():
                return
            if error is None:
                answer.set_result(cast("T", result))
            else:
                answer.set_exception(error)

        def work() -> None:
            # One message for place and answer: every one wakes the loop.
            try:
                result = call()
            except BaseException as error:  # whatever it was, the caller waits for it
                loop.call_soon_threadsafe(end, None, error)
            else:
                loop.call_soon_threadsafe(end, result, None)

        self._pool.submit(contextvars.copy_context().run, work)
        return await answer

    def close(self) -> None:
        """Wait for the calls in progress and stop the threads."""
        self._pool.shutdown()

    def _withdraw(self, turn: asyncio.Future[None]) -> None:
        if turn.done():
            self.leave()  # it had been given a place
        else:
            self._queue.remove(turn)

    def _overloaded(self) -> Overloaded:
        return Overloaded(in_progress=self.in_progress, waiting=self.waiting, retry_after_s=1.0)
