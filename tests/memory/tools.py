"""Real parts with known behaviour: an encoder of words, a clock and ids that repeat."""

import hashlib
import uuid
from datetime import UTC, datetime, timedelta

import numpy as np

START = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)
OWNER = "dana"
FEW_SHARDS = {"storage": {"virtual_shards": 2}}


class WordEncoder:
    """A real encoder, small and fast: a text's vector is the sum of its words' hashed directions.

    Texts that share words are close. ``texts`` is everything it was asked to embed, in order.
    """

    model_name = "words"

    def __init__(self, version="1", dimension=32):
        self.model_version = version
        self.dimension = dimension
        self.texts = []

    def embed(self, texts):
        self.texts.extend(texts)
        return np.array([self._vector(text) for text in texts])

    def _vector(self, text):
        total = np.full(self.dimension, 1e-3)
        for word in text.lower().split():
            digest = hashlib.shake_128(word.strip(".,:?!").encode("utf-8")).digest(self.dimension)
            total += np.frombuffer(digest, np.uint8) - 127.5
        return total / np.linalg.norm(total)


class Clock:
    """Gives ``now``, then moves it on by ``step``."""

    def __init__(self, start=START, step=timedelta(seconds=1)):
        self.now = start
        self._step = step

    def __call__(self):
        now = self.now
        self.now += self._step
        return now


class Ids:
    """The same UUIDs for the same name, every time."""

    def __init__(self, name="ids"):
        self.name = name
        self._count = {}

    def __call__(self):
        count = self._count[self.name] = self._count.get(self.name, 0) + 1
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.name} {count}"))


def same_request(answer):
    """Return an answer as JSON values without what differs between equal requests."""
    found = answer.to_dict(timings=False)
    del found["metadata"]["request_id"]
    return found
