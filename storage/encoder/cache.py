"""Vectors by text: an LRU cache that asks the provider once for each text, however many ask at once."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prme_ray.model.protocols import EmbeddingProvider, QueryEncoder
from storage.encoder.admission import admit, admit_query, identity

__all__ = ["CachedEncoder"]

_Kind = Literal["document", "query"]
_Key = tuple[str, _Kind, bytes]


class _Abandoned(Exception):
    """Between threads only: the one that was computing was stopped (Ctrl-C); another must compute."""


class CachedEncoder:
    """A provider behind admission checks, a cache and single flight (digest b §7.4).

    A key is (identity of the provider, document or query, SHA-256 of the text). Questions have keys
    of their own only where the provider encodes them differently. Only texts that nobody has or is
    computing are sent, once each, in the order given; a failed call fails every waiter and leaves
    nothing behind. Safe to call from many threads. A caller that stops waiting (a cancelled
    task around ``asyncio.to_thread``) leaves the computation running for the others.

    Args:
        provider: The encoder.
        entries: Most vectors kept; 0 keeps none, and equal texts in flight still share one call.

    Attributes:
        hits: Texts answered without sending them: cached, in flight, or repeated in one list.
        misses: Texts sent to the provider.
    """

    def __init__(self, provider: EmbeddingProvider, *, entries: int) -> None:
        self._provider = provider
        self._entries = entries
        self._query_kind: _Kind = "query" if isinstance(provider, QueryEncoder) else "document"
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._flights: dict[_Key, Future[bytes]] = {}
        self.hits = 0
        self.misses = 0

    @property
    def provider(self) -> EmbeddingProvider:
        """The encoder behind the cache."""
        return self._provider

    @property
    def identity(self) -> str:
        """Identity of the provider's vectors; see :func:`storage.encoder.admission.identity`."""
        return identity(self._provider)

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return one read-only vector of shape (dimension,) a text, in order.

        Raises:
            EncoderRejected: the provider broke its contract.
            Exception: whatever the provider raised.
        """
        return self._embed(texts, "document")

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the read-only vector of a question, shape (dimension,). Errors as for documents."""
        return self._embed([text], self._query_kind)[0]

    def _embed(self, texts: Sequence[str], kind: _Kind) -> list[NDArray[np.float32]]:
        identity_ = identity(self._provider)
        keys: list[_Key] = [(identity_, kind, hashlib.sha256(text.encode()).digest()) for text in texts]
        found: dict[_Key, bytes] = {}
        ours: dict[_Key, str] = {}
        theirs: dict[_Key, tuple[Future[bytes], str]] = {}
        with self._lock:
            for key, text in zip(keys, texts, strict=True):
                if key in found or key in ours or key in theirs:
                    continue
                if (kept := self._kept.get(key)) is not None:
                    self._kept.move_to_end(key)
                    found[key] = kept
                elif (flight := self._flights.get(key)) is not None:
                    theirs[key] = (flight, text)
                else:
                    self._flights[key] = Future()
                    ours[key] = text
            self.misses += len(ours)
            self.hits += len(keys) - len(ours)
        if ours:  # before waiting for others: no thread waits while others wait for it
            found.update(self._compute(ours, identity_, kind))
        for key, (flight, text) in theirs.items():
            try:
                found[key] = flight.result()
            except _Abandoned:
                found[key] = self._embed([text], kind)[0].tobytes()
        # Arrays over bytes can never be made writable, so the kept vectors are private.
        return [np.frombuffer(found[key], np.float32) for key in keys]

    def _compute(self, ours: dict[_Key, str], identity_: str, kind: _Kind) -> dict[_Key, bytes]:
        try:
            texts = list(ours.values())
            if kind == "query":
                vectors = [admit_query(self._provider, text, expected=identity_) for text in texts]
            else:
                vectors = admit(self._provider, texts, expected=identity_)
            made = {key: vector.tobytes() for key, vector in zip(ours, vectors, strict=True)}
        except BaseException as error:
            shared = error if isinstance(error, Exception) else _Abandoned()
            with self._lock:
                flights = [self._flights.pop(key) for key in ours]
            for flight in flights:
                flight.set_exception(shared)
            raise
        with self._lock:
            flights = [self._flights.pop(key) for key in ours]
            if self._entries:
                self._kept.update(made)
                while len(self._kept) > self._entries:
                    self._kept.popitem(last=False)
        for flight, vector in zip(flights, made.values(), strict=True):
            flight.set_result(vector)
        return made
