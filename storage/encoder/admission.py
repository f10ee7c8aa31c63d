"""What a provider must give before a vector reaches a cache or an index (digest b §7.2).

A batch is admitted whole or not at all. No message holds any of the input text.
"""

from __future__ import annotations

import hashlib
import json
import numbers
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prme_ray.model.errors import EncoderRejected
from prme_ray.model.protocols import EmbeddingProvider, QueryEncoder

__all__ = ["admit", "admit_query", "checked_vector", "identity"]

_LARGEST = float(np.finfo(np.float32).max)
_UNNAMED = "without a valid name"


def identity(provider: EmbeddingProvider) -> str:
    """Return the SHA-256 of a provider's name, version and dimension, in hexadecimal.

    Vectors with the same identity may be compared; all others may not.

    Raises:
        EncoderRejected: the name or version is not nonblank text, or the dimension not an integer
            of at least 1.
    """
    return _digest(*_metadata(provider))


def admit(
    provider: EmbeddingProvider, texts: Sequence[str], *, expected: str | None = None
) -> list[NDArray[np.float32]]:
    """Return the provider's vectors of ``texts``, checked: one a text, each of shape (dimension,).

    The vectors are copies that share no memory with the provider. No text, no call.

    Args:
        provider: Any encoder; it gets its own copy of the list.
        texts: Texts to embed as documents.
        expected: Identity that the caller looked up before; another one is refused.

    Raises:
        EncoderRejected: the metadata is not valid or changed, the number or length of the vectors
            is wrong, or a component is not a finite real number within float32.
    """
    if not texts:
        return []
    return _admit(provider, lambda: provider.embed(list(texts)), count=len(texts), expected=expected)


def admit_query(provider: EmbeddingProvider, text: str, *, expected: str | None = None) -> NDArray[np.float32]:
    """Return the checked vector of a question, by the provider's query encoder where it has one.

    An error of the query encoder is raised as it is: the document encoder is no substitute (digest
    b §7.3). Arguments and errors otherwise as :func:`admit`.
    """
    if not isinstance(provider, QueryEncoder):
        return admit(provider, [text], expected=expected)[0]
    return _admit(provider, lambda: [provider.embed_query(text)], count=1, expected=expected)[0]


def _admit(
    provider: EmbeddingProvider, call: Callable[[], Any], *, count: int, expected: str | None
) -> list[NDArray[np.float32]]:
    before = _metadata(provider)
    name, _, dimension = before
    if expected is not None and _digest(*before) != expected:
        raise EncoderRejected(model=name, detail="its name, version or dimension changed before the call")
    answer = call()
    if _metadata(provider) != before:
        raise EncoderRejected(model=name, detail="its name, version or dimension changed during the call")
    if isinstance(answer, str | bytes | bytearray) or not isinstance(answer, Sequence | np.ndarray):
        raise EncoderRejected(model=name, detail=f"it returned {_type(answer)}, not a sequence of vectors")
    given = 0 if isinstance(answer, np.ndarray) and answer.ndim == 0 else len(answer)
    if given != count:
        raise EncoderRejected(model=name, detail=f"it returned {given} vectors for {count} texts")
    return [checked_vector(vector, position, name, dimension) for position, vector in enumerate(answer)]


def checked_vector(vector: Any, position: int, name: str, dimension: int) -> NDArray[np.float32]:
    """Return one vector as the store keeps it, shape (dimension,), float32.

    Raises:
        EncoderRejected: no sequence of that many finite numbers; ``position`` and ``name`` are for the message.
    """

    def refuse(what: str) -> EncoderRejected:
        return EncoderRejected(model=name, detail=f"vector {position} {what}")

    if isinstance(vector, np.ndarray):
        if vector.dtype.kind not in "fiu":
            raise refuse(f"has components of type {vector.dtype}, real numbers are needed")
        shape = vector.shape
    elif isinstance(vector, Sequence) and not isinstance(vector, str | bytes | bytearray):
        wrong = [value for value in vector if not _is_real(value)]
        if wrong:
            raise refuse(f"has a component {_type(wrong[0])}, real numbers are needed")
        shape = (len(vector),)
    else:
        raise refuse(f"is {_type(vector)}, a sequence of real numbers is needed")
    if shape != (dimension,):
        raise refuse(f"has shape {shape}, expected ({dimension},)")
    try:
        values = np.asarray(vector, np.float64) if isinstance(vector, np.ndarray) else _floats(vector)
    except OverflowError:
        raise refuse("has a component beyond float32") from None
    # One comparison refuses NaN (never true), infinity and what float32 cannot hold.
    if not bool((np.abs(values) <= _LARGEST).all()):
        raise refuse("has a component that is NaN, infinite or beyond float32")
    return values.astype(np.float32)


def _is_real(value: Any) -> bool:
    kind = type(value)
    return kind is float or (isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_))


def _floats(vector: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([float(value) for value in vector], np.float64)


def _metadata(provider: EmbeddingProvider) -> tuple[str, str, int]:
    name, version, dimension = provider.model_name, provider.model_version, provider.dimension
    if not isinstance(name, str) or not name.strip():
        raise EncoderRejected(model=_UNNAMED, detail=f"model_name is {_type(name)}, nonblank text is needed")
    if not isinstance(version, str) or not version.strip():
        raise EncoderRejected(model=name, detail=f"model_version is {_type(version)}, nonblank text is needed")
    if not isinstance(dimension, int) or isinstance(dimension, bool) or dimension < 1:
        raise EncoderRejected(model=name, detail=f"dimension is {dimension!r}, an integer of at least 1 is needed")
    return name, version, dimension


@lru_cache(maxsize=64)
def _digest(name: str, version: str, dimension: int) -> str:
    return hashlib.sha256(json.dumps([name, version, dimension]).encode()).hexdigest()


def _type(value: Any) -> str:
    if isinstance(value, str) and not value.strip():
        return "blank text"
    return f"of type {type(value).__name__}"
