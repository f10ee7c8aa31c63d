"""What several stages do with a table: look-ups, the order by score, relevance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from prme_ray.model.ordering import ordered_by_place
from prme_ray.model.tables import field_of, floats, parts, same_target

__all__ = ["Rows", "by_score", "constant", "first_seen", "places", "positions", "relevance", "same_number"]

Rows = npt.NDArray[np.int64]
"""Row numbers."""


@lru_cache(maxsize=512)
def constant(value: float | None, kind: Any, rows: int) -> pa.Array:
    """Return ``rows`` times one value, or null; arrays never change, so equal ones are shared."""
    return pa.nulls(rows, kind) if value is None else pa.array(np.full(rows, value, kind.to_pandas_dtype()))


@lru_cache(maxsize=512)
def same_number(value: float, kind: Any, rows: int) -> npt.NDArray[Any]:
    """Return :func:`constant` as NumPy: a read-only view of one number."""
    return np.broadcast_to(np.asarray(value, kind.to_pandas_dtype()), rows)


def positions(values: pa.Array, among: pa.Array) -> Rows:
    """Return where each value stands in ``among`` (its first place), -1 for nowhere."""
    found = pc.index_in(values, value_set=among)
    if found.null_count:
        found = found.fill_null(-1)
    return found.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def places(references: pa.DictionaryArray, among: pa.DictionaryArray) -> Rows:
    """Return where each referred memory stands first in ``among``, -1 for nowhere.

    References to one table are compared as numbers, others by id.
    """
    rows, target = parts(among)
    wanted, other = parts(references)
    if not same_target(other, target):
        own = field_of(target, "node_id").take(pa.array(rows))
        return positions(field_of(other, "node_id").take(pa.array(wanted)), own)
    place = np.full(len(target), -1)
    place[rows[::-1]] = np.arange(len(rows) - 1, -1, -1)
    found: Rows = place[wanted]
    return found


def first_seen(columns: Sequence[pa.DictionaryArray], among: pa.Array) -> tuple[Rows, Rows]:
    """Number ids in the order in which they are first seen.

    Args:
        columns: Ids as references to strings; where all refer to ``among``, no string is looked at.
        among: Ids of the known memories.

    Returns:
        The number of every id, one column behind the other; and the row in ``among`` of each number, -1
        for an id that is not there.
    """
    filled = [ids for ids in columns if len(ids)]
    if not filled:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    references = [parts(ids) for ids in filled]
    if all(same_target(target, among) for _, target in references):
        rows = np.concatenate([rows for rows, _ in references])
        first = np.full(len(among), len(rows))
        first[rows[::-1]] = np.arange(len(rows) - 1, -1, -1)
        known = np.flatnonzero(first < len(rows))
        known = known[np.argsort(first[known])]
        number = np.empty(len(among), np.int64)
        number[known] = np.arange(len(known))
        return number[rows], known
    encoded = pa.concat_arrays([ids.dictionary_decode() for ids in filled]).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), positions(encoded.dictionary, among)


def by_score(scores: npt.NDArray[np.float64], ranks: npt.NDArray[np.int64]) -> Rows:
    """Return the rows best first: highest score, then smallest id (digest section 6.4).

    Args:
        scores: Shape (n,).
        ranks: Place of each row's id among all ids, shape (n,).
    """
    return ordered_by_place([-scores], places=ranks)


def relevance(scored: pa.Table) -> npt.NDArray[np.float64]:
    """Return each row's semantic relevance, shape (n,).

    It is the largest of 0, the memory's own cosine, the cosine of the memory its score came from, and
    the relevance of the memories that brought it in as context.
    """
    found = np.maximum(floats(scored, "semantic_score"), floats(scored, "trace_semantic"))
    return np.maximum(np.maximum(found, floats(scored, "context_relevance")), 0.0)
