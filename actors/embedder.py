"""One encoder in a process of its own: one text an inference."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ray

from actors.whereabouts import whereabouts
from prme_ray.model.protocols import EmbeddingProvider, QueryEncoder
from storage.encoder.admission import admit_query

__all__ = ["EmbedderActor", "QuestionEmbedder"]


class QuestionEmbedder:
    """Makes checked vectors of packed questions, in whichever actor.

    Args:
        provider: The encoder; it pickles as its settings.
        query: Returns the text to embed from a packed question, ``None`` for a blank one.
    """

    def __init__(self, provider: EmbeddingProvider, query: Callable[[bytes], str | None]) -> None:
        self._provider = provider
        self._query = query

    def __call__(self, asked: bytes) -> bytes:
        """Return the vector as little-endian float32 bytes; none for a blank question.

        Raises:
            EncoderRejected: the provider broke its contract.
            Exception: whatever the provider raised.
        """
        text = self._query(asked)
        return b"" if text is None else admit_query(self._provider, text).astype(np.dtype("<f4")).tobytes()


class EmbedderActor:
    """Turns single texts into vectors. Texts are never batched, so no text can change another's vector.

    Args:
        provider: The encoder; it loads its model in this process.
        query: Returns the text to embed from a packed question, ``None`` for a blank one.
    """

    def __init__(self, provider: EmbeddingProvider, query: Callable[[bytes], str | None]) -> None:
        self._provider = provider
        self._query = query
        self._lock = threading.Lock()
        self._busy = 0
        self._used = time.monotonic()

    def ready(self) -> dict[str, Any]:
        """Return which process this is and what its encoder is."""
        encoder = self._provider
        return {
            **whereabouts(),
            "model_name": encoder.model_name,
            "model_version": encoder.model_version,
            "dimension": encoder.dimension,
            "questions": isinstance(encoder, QueryEncoder),
        }

    def embed(self, text: str, question: bool) -> bytes:
        """Return the vector of a text as little-endian float32 bytes; checked by who asked."""
        with self._lock:
            self._busy += 1
        try:
            encoder = self._provider
            if question and isinstance(encoder, QueryEncoder):
                vector = encoder.embed_query(text)
            else:
                (vector,) = encoder.embed([text])
            return np.asarray(vector, np.dtype("<f4")).tobytes()
        finally:
            with self._lock:
                self._busy -= 1
                self._used = time.monotonic()

    def embed_question(self, asked: bytes) -> bytes:
        """Return the vector of a packed question; no bytes for a blank one."""
        return QuestionEmbedder(self._provider, self._query)(asked)

    def leave(self, idle_s: float) -> bool:
        """End this actor if nobody used it for so long; otherwise return False."""
        with self._lock:
            idle = not self._busy and time.monotonic() - self._used >= idle_s
        if idle:
            ray.actor.exit_actor()  # type: ignore[no-untyped-call]
        return idle
