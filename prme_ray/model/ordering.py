"""The one way to sort: numeric keys first, then the id, so that no order is left to chance (decision 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ordered", "ordered_by_place"]


def ordered(
    keys: Sequence[npt.NDArray[Any]],
    *,
    ids_at: Callable[[npt.NDArray[np.intp]], Sequence[str]],
    limit: int | None = None,
) -> npt.NDArray[np.intp]:
    """Return the positions that sort by ``keys`` ascending, then by id.

    Ids are read only where rows tie on every key and could be returned; without ties no string is
    touched.

    Args:
        keys: Numeric keys, the first one decides first; each of shape (n,).
        ids_at: Returns the ids at these positions.
        limit: Return the first ones only; less than 1 returns none. ``None``: all.

    Returns:
        Positions, none twice.
    """
    order = _presorted(keys)
    count = len(order) if limit is None else min(max(limit, 0), len(order))
    if count == 0 or len(order) == 1:
        return order[:count]
    equal = np.ones(len(order) - 1, dtype=bool)
    for key in keys:
        arranged = key[order]
        equal &= arranged[1:] == arranged[:-1]
    # Whoever ties with the last one returned competes for its place.
    rest = np.flatnonzero(~equal[count - 1 :])
    reach = count + int(rest[0]) if len(rest) else len(order)
    order, equal = order[:reach], equal[: reach - 1]
    if equal.any():
        tied = np.zeros(reach, dtype=bool)
        tied[1:] |= equal
        tied[:-1] |= equal
        places = np.flatnonzero(tied)
        group = np.concatenate(([0], np.cumsum(~equal)))[places]
        members = order[places]
        names = ids_at(members)
        # Python sorts strings many times faster than NumPy does.
        by_name = np.array(sorted(range(len(names)), key=names.__getitem__))
        order[places] = members[by_name[np.argsort(group[by_name], kind="stable")]]
    return order[:count]


def ordered_by_place(
    keys: Sequence[npt.NDArray[Any]], *, places: npt.NDArray[np.int64], limit: int | None = None
) -> npt.NDArray[np.intp]:
    """Return the same order where the place of each id among all ids is known: a key like the others.

    Args:
        keys: As for :func:`ordered`.
        places: Place of each id, shape (n,).
        limit: As for :func:`ordered`.
    """
    order = np.lexsort((places, *reversed(keys)))
    return order if limit is None else order[: max(limit, 0)]


def _presorted(keys: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.intp]:
    """Return the order by the keys alone; channels often answer in order already."""
    if len(keys) == 1 and bool((keys[0][1:] >= keys[0][:-1]).all()):
        return np.arange(len(keys[0]))
    return np.lexsort(tuple(reversed(keys)))
