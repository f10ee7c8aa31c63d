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
from storage.encoder.admission import admit, admit_query, checked_vector, identity

__all__ = ["CachedEncoder", "Flight"]

_Kind = Literal["document", "query"]
_Key = tuple[str, _Kind, bytes]


class _Abandoned(Exception):
    """Between threads only: the one that was computing was stopped (Ctrl-C); another must compute."""


class Flight:
    """One question's vector that the caller has promised to get; others who ask for it wait for that."""

    def __init__(self, encoder: CachedEncoder, key: _Key) -> None:
        self._encoder = encoder
        self._key = key

    def land(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Check the vector, keep it, hand it to all who wait, and return it read-only.

        Raises:
            EncoderRejected: it is none; all who wait are told.
        """
        provider = self._encoder.provider
        try:
            made = checked_vector(vector, 0, provider.model_name, provider.dimension).tobytes()
        except Exception as error:
            self._encoder._crashed([self._key], error)
            raise
        self._encoder._landed({self._key: made})
        return np.frombuffer(made, np.float32)

    def abandon(self) -> None:
        """Leave the question to those who wait: the first of them gets the vector."""
        self._encoder._crashed([self._key], _Abandoned())


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

    def begin_query(self, text: str) -> NDArray[np.float32] | Flight | None:
        """Return a question's kept vector, or a flight that the caller must land or abandon.

        ``None``: another caller is getting it; :meth:`embed_query` waits for that.
        """
        key: _Key = (identity(self._provider), self._query_kind, hashlib.sha256(text.encode()).digest())
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                self.hits += 1
                return np.frombuffer(kept, np.float32)
            if key in self._flights:
                return None
            self._flights[key] = Future()
            self.misses += 1
        return Flight(self, key)

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
            self._crashed(list(ours), error if isinstance(error, Exception) else _Abandoned())
            raise
        self._landed(made)
        return made

    def _landed(self, made: dict[_Key, bytes]) -> None:
        with self._lock:
            flights = [self._flights.pop(key) for key in made]
            if self._entries:
                self._kept.update(made)
                while len(self._kept) > self._entries:
                    self._kept.popitem(last=False)
        for flight, vector in zip(flights, made.values(), strict=True):
            flight.set_result(vector)

    def _crashed(self, keys: list[_Key], error: Exception) -> None:
        with self._lock:
            flights = [self._flights.pop(key) for key in keys]
        for flight in flights:
            flight.set_exception(error)
