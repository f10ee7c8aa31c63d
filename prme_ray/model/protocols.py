"""Contracts between packages that must not import each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["EmbeddingProvider", "QueryEncoder", "TokenCounter", "Vector"]

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
