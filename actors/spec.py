"""What an actor is told when it starts: paths and small settings, never handles, models or tables."""

from __future__ import annotations

import hashlib
import pickle
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from actors.embedder import QuestionEmbedder
from prme_ray.model.protocols import EmbeddingProvider
from prme_ray.model.settings import ClusterSettings, StorageSettings
from storage.parts import ALL_PARTS, Part
from storage.shard import EncoderIdentity
from storage.store import Store

__all__ = ["EMBEDDER", "NAMESPACE", "STAGE", "WRITER", "Deployment", "Layout", "StoreSpec"]

NAMESPACE = "prme-ray"
"""Ray namespace of every named actor."""


WRITER, EMBEDDER, VECTOR, STAGE = "writer", "embedder", "vector", "stage."

# Cluster settings that an actor cannot take on while it runs.
_SHAPE = {"groups", "group_resources", "channel_cpus", "writer_cpus", "queue", "question_embedding"}
_POOL_SHAPE = {"embedder_cpus", "embedder_gpus", "queue"}


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """How a process opens its own view of the store."""

    path: str
    settings: StorageSettings
    encoder: EncoderIdentity

    def reader(self, parts: frozenset[Part]) -> Store:
        """Open the store for reading, keeping only ``parts`` of its owners in memory."""
        return self._open(read_only=True, parts=parts)

    def writer(self, shards: Callable[[int], bool]) -> Store:
        """Open the shards for writing.

        Raises:
            StoreLocked: another process writes one of them.
        """
        return self._open(read_only=False, shards=shards)

    def _open(self, **how: Any) -> Store:
        how.setdefault("parts", ALL_PARTS)
        return Store(Path(self.path), settings=self.settings, encoder=self.encoder, clock=_now, new_id=_new_id, **how)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A store's actors, as they should be.

    Functions and classes travel by name, so both ends must have the same packages installed.

    Attributes:
        name: Name of the store in the cluster.
        store: The store.
        cluster: How many actors of each kind, and what they ask Ray for.
        provider: The encoder; it pickles as its settings.
        query: Returns the text to embed from a packed question, ``None`` for a blank one.
        channels: What a channel actor keeps of its owners, and computes, by name of its place.
        stage: Computes a pure step that is placed on an actor of its own.
        memory: Opens a memory that uses these actors.
        encode: Makes the bytes that travel of an answer.
        code: Version of the package.
    """

    name: str
    store: StoreSpec
    cluster: ClusterSettings
    provider: EmbeddingProvider
    query: Callable[[bytes], str | None]
    channels: dict[str, tuple[frozenset[Part], Callable[..., bytes]]]
    stage: Callable[[bytes], bytes]
    memory: Callable[[], Any]
    encode: Callable[[Any], bytes]
    code: str

    @property
    def embeds_beside_vectors(self) -> bool:
        """Whether questions are embedded by the vector actors."""
        return self.cluster.question_embedding == "vector" and not self.cluster.embedder_gpus

    def embedder_of(self, kind: str) -> QuestionEmbedder | None:
        """Return what embeds questions in the channel actors of a kind, if they do."""
        return QuestionEmbedder(self.provider, self.query) if kind == VECTOR and self.embeds_beside_vectors else None

    @property
    def version(self) -> str:
        """Twelve hex digits that change whenever a writer or a channel would have to be another."""
        cluster = self.cluster.model_dump(mode="json", include=_SHAPE)
        encoder = pickle.dumps(self.provider) if self.embeds_beside_vectors else None
        return _digest(self.store, cluster, encoder, self.code)

    @property
    def pool(self) -> str:
        """The same for the embedding and stage actors, which know no store."""
        cluster = self.cluster.model_dump(mode="json", include=_POOL_SHAPE)
        return _digest(pickle.dumps(self.provider), cluster, self.code)

    @property
    def layout(self) -> Layout:
        """The actors as they should be."""
        return Layout(self.name, self.version, self.pool, self.cluster.groups)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which actors serve a store now."""

    name: str
    version: str
    pool: str
    groups: int

    def actor(self, kind: str, number: int) -> str:
        """Return the name of the actor of a kind and number.

        Args:
            kind: ``writer``, a channel's place, ``embedder`` or ``stage.<step>``.
            number: Shard group, or number in the pool.
        """
        version = self.pool if kind == EMBEDDER or kind.startswith(STAGE) else self.version
        return f"{self.name}/{version}/{kind}/{number}"


def _digest(*facts: Any) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]
