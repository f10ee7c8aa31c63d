"""The pool of embedding actors, as a provider: it grows under load and shrinks when idle.

Every coordinator has its own view of the pool; the actors are shared by all of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.handles import Handles
from prme_ray.model.errors import ServiceUnavailable

__all__ = ["PoolProvider", "QuestionPoolProvider", "pool_of"]

_BUSY = 2
"""Texts in flight at every actor from which on the pool grows."""


class PoolProvider:
    """An :class:`~prme_ray.model.protocols.EmbeddingProvider` whose inferences run on actors.

    Args:
        handles: The actors.
        facts: What an actor says of its encoder.
    """

    def __init__(self, handles: Handles, facts: dict[str, Any]) -> None:
        self._handles = handles
        self._facts = facts
        self._lock = threading.Lock()
        self._flights: dict[int, int] = dict.fromkeys(range(handles.deployment.cluster.embedders_min), 0)
        self._actors: dict[int, Any] = {}
        self._growing = False
        self._checked = time.monotonic()

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return str(self._facts["model_name"])

    @property
    def model_version(self) -> str:
        """Identity of the recipe."""
        return str(self._facts["model_version"])

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return int(self._facts["dimension"])

    def embed(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return one vector a text, in order, one text an inference."""
        return [self._one(text, question=False) for text in texts]

    def begin(self, asked: bytes) -> tuple[Any, Callable[[], None]]:
        """Return a reference to the vector of a packed question, and what to call once it is there.

        Whoever uses it copes with the actor's death; :meth:`embed` does so by itself.
        """
        number = self._take()
        try:
            return self._actor(number).embed_question.remote(asked), lambda: self._free(number)
        except BaseException:
            self._free(number)
            raise

    def _free(self, number: int) -> None:
        with self._lock:
            if number in self._flights:
                self._flights[number] -= 1

    def _one(self, text: str, *, question: bool) -> NDArray[np.float32]:
        deadline = time.monotonic() + self._handles.timeout_s
        while True:
            number = self._take()
            try:
                actor = self._actor(number)
                return np.frombuffer(
                    self._handles.wait(actor.embed.remote(text, question), "embedder"), np.dtype("<f4")
                )
            except ServiceUnavailable:
                if time.monotonic() >= deadline:
                    raise
                self._forget(number)
            finally:
                self._free(number)

    def _take(self) -> int:
        """Return the number of the least busy actor, counted as busier by one."""
        cluster = self._handles.deployment.cluster
        with self._lock:
            number = min(self._flights, key=lambda one: (self._flights[one], one))
            grow = self._flights[number] >= _BUSY and len(self._flights) < cluster.embedders_max and not self._growing
            self._growing = self._growing or grow
            self._flights[number] += 1
            now = time.monotonic()
            shrink = not grow and now - self._checked > cluster.embedder_idle_s
            self._checked = now if shrink else self._checked
        if grow:
            threading.Thread(target=self._grow, name="prme-ray-embedder", daemon=True).start()
        if shrink:
            self._shrink()
        return number

    def _actor(self, number: int) -> Any:
        actor = self._actors.get(number)
        if actor is None:
            actor = self._actors[number] = self._handles.embedder(number)
        return actor

    def _grow(self) -> None:
        # The new actor takes a second to start; until then the others go on.
        try:
            with self._lock:
                number = next(one for one in range(len(self._flights) + 1) if one not in self._flights)
            actor = self._handles.embedder(number)
            self._handles.wait(actor.ready.remote(), "embedder")
            with self._lock:
                self._actors[number] = actor
                self._flights[number] = 0
        finally:
            self._growing = False

    def _shrink(self) -> None:
        """Ask idle actors beyond the minimum to leave; one that another coordinator uses stays."""
        cluster = self._handles.deployment.cluster
        with self._lock:
            idle = [one for one, flights in self._flights.items() if one >= cluster.embedders_min and not flights]
            for number in idle:
                del self._flights[number]
        for number in idle:
            actor = self._actors.pop(number, None)
            if actor is not None:
                actor.leave.remote(cluster.embedder_idle_s)

    def _forget(self, number: int) -> None:
        with self._lock:
            self._actors.pop(number, None)
            if number >= self._handles.deployment.cluster.embedders_min:
                self._flights.pop(number, None)


class QuestionPoolProvider(PoolProvider):
    """The same for an encoder that encodes questions differently from documents."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question."""
        return self._one(text, question=True)


def pool_of(handles: Handles) -> PoolProvider:
    """Return the pool, once its first actor has loaded the encoder.

    Raises:
        ServiceUnavailable: it did not start in time.
        Exception: what loading the encoder raised.
    """
    facts = handles.wait(handles.embedder(0).ready.remote(), "embedder", handles.deployment.cluster.start_timeout_s)
    return QuestionPoolProvider(handles, facts) if facts["questions"] else PoolProvider(handles, facts)
