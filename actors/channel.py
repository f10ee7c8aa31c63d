"""A channel of one shard group: keeps one part of each owner in memory and answers from it."""

from __future__ import annotations

import functools
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from actors.spec import StoreSpec
from actors.whereabouts import whereabouts
from prme_ray.model.errors import ServiceUnavailable
from storage.parts import Part
from storage.store import Store

__all__ = ["ChannelActor", "semantic_of"]

_SEMANTIC = struct.Struct("<dI")
"""Seconds of an embedding and bytes of its vector, which follows; then come the hits."""


def semantic_of(answered: bytes) -> tuple[float, bytes, bytes]:
    """Return seconds of the embedding, vector and hits from :meth:`ChannelActor.answer_text`."""
    seconds, size = _SEMANTIC.unpack_from(answered)
    start = _SEMANTIC.size
    return seconds, answered[start : start + size], answered[start + size :]


class ChannelActor:
    """Answers one place of the flow. Loads an owner at the first question about them.

    Args:
        spec: The store.
        parts: What is kept of an owner.
        answer: Computes the place's answer from the store and a question.
        embed: Returns the vector of a question as bytes, where this actor embeds too.
    """

    def __init__(
        self,
        spec: StoreSpec,
        parts: frozenset[Part],
        answer: Callable[..., bytes],
        embed: Callable[[bytes], bytes] | None = None,
    ) -> None:
        # Opened when it is first wanted: the process starts while the writer still makes the store.
        self._open = functools.partial(spec.reader, parts)
        self._lock = threading.Lock()
        self._opened: Store | None = None
        self._answer = answer
        self._embed = embed

    @property
    def _store(self) -> Store:
        store = self._opened
        if store is None:
            with self._lock:
                store = self._opened = self._opened or self._open()
        return store

    def ready(self) -> dict[str, Any]:
        """Open the store if need be and return which process this is, and on which node."""
        return {**whereabouts(), "resident_bytes": self._store.residents.nbytes()}

    def answer(self, asked: bytes) -> bytes:
        """Return the hits for a question; see the function given to the constructor for errors."""
        return self._answer(self._store, asked)

    def answer_near(self, asked: bytes, vector: bytes) -> bytes:
        """Return the hits for a question and the vector that an embedding actor made of it."""
        return self._answer(self._store, asked, vector=vector)

    def answer_text(self, asked: bytes) -> bytes:
        """Return the vector of a question and the hits for both, for :func:`semantic_of`; where this actor embeds."""
        if self._embed is None:
            raise ServiceUnavailable(what="this actor's encoder", detail="it was started without one")
        started = time.perf_counter()
        vector = self._embed(asked)
        head = _SEMANTIC.pack(time.perf_counter() - started, len(vector))
        # One string of bytes: Ray passes that on as it is, and would pickle a tuple.
        return b"".join([head, vector, self._answer(self._store, asked, vector=vector)])

    def look(self, at: Callable[[Store], Any]) -> Any:
        """Return what a function finds in the store, for health."""
        return at(self._store)
