"""Contracts between packages that must not import each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["CrossEncoder", "EmbeddingProvider", "QueryEncoder", "Reformulator", "TokenCounter", "Vector"]

Vector: TypeAlias = Sequence[float] | NDArray[np.floating[Any]]
"""A vector as a provider may give it; the store keeps its own float32 copy."""


class TokenCounter(Protocol):
    """Counts tokens of literal text; markup of special tokens is ordinary text."""

    @property
    def name(self) -> str:
        """Name of the encoding, recorded in bundles and receipts."""
        ...

    @property
    def longest_token(self) -> int:
        """Most UTF-8 bytes one token stands for: n bytes are at least n / longest_token tokens."""
        ...

    @property
    def splits_after_digits(self) -> bool:
        """Whether the parts of a text cut behind an ASCII digit, before no digit, have its tokens together."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``."""
        ...


@runtime_checkable
class EmbeddingProvider(Protocol):
    """Turns texts into vectors (digest b §7.1). Blocking; called from worker threads.

    ``model_version`` must change whenever a vector could: it covers the model file, tokenizer,
    pooling, normalisation, maximum length and recipe, never a library version (decision 14).
    """

    @property
    def model_name(self) -> str:
        """Nonblank name of the model."""
        ...

    @property
    def model_version(self) -> str:
        """Nonblank identity of the recipe."""
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector, at least 1."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Vector] | NDArray[np.floating[Any]]:
        """Return one vector a text, in order: a sequence of vectors or a matrix of rows."""
        ...


@runtime_checkable
class QueryEncoder(Protocol):
    """Optional: a provider that encodes questions differently from documents."""

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        ...


@runtime_checkable
class CrossEncoder(Protocol):
    """Judges how well texts answer a question, each pair on its own (RFC §7.3). Blocking, thread-safe.

    ``version`` must change whenever a score could. An exception fails the retrieval.
    """

    @property
    def name(self) -> str:
        """Nonblank name of the model."""
        ...

    @property
    def version(self) -> str:
        """Nonblank identity of its weights and recipe."""
        ...

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one finite number in [0, 1] a text, in order: higher answers better."""
        ...


class Reformulator(Protocol):
    """Words a question differently (digest a §7.6). Blocking, thread-safe; bounds its own time.

    Good alternates are short: one of two to four keywords, one phrased like the answer. An exception
    means that there are none; the question itself is searched all the same.
    """

    def __call__(self, query: str, count: int) -> Sequence[str]:
        """Return at most ``count`` other wordings of ``query``, best first."""
        ...
