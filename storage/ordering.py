"""The one way to sort answers: numeric keys first, then the id, so that no order is left to chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ordered"]


def ordered(rows: npt.NDArray[Any], keys: Sequence[npt.NDArray[Any]], *, ids: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return positions that sort ``rows`` by ``keys`` ascending, then by id (decision 4).

    Ids are read only for rows that tie on every key; without ties no string is touched.

    Args:
        rows: Indices into ``ids``, shape (n,).
        keys: Numeric keys, the first one decides first; each of shape (n,).
        ids: Id of every row of the owner.

    Returns:
        A permutation of ``range(n)``.
    """
    order = np.lexsort(tuple(reversed(keys)))
    if len(order) < 2:  # noqa: PLR2004
        return order
    equal = np.ones(len(order) - 1, dtype=bool)
    for key in keys:
        arranged = key[order]
        equal &= arranged[1:] == arranged[:-1]
    if not equal.any():
        return order
    tied = np.zeros(len(order), dtype=bool)
    tied[1:] |= equal
    tied[:-1] |= equal
    places = np.flatnonzero(tied)
    group = np.concatenate(([0], np.cumsum(~equal)))[places]
    members = order[places]
    names = np.array([ids[row] for row in rows[members].tolist()])
    order[places] = members[np.lexsort((names, group))]
    return order
