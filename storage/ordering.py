"""Sorts rows of an owner: numeric keys first, then the id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prme_ray.model import ordering

__all__ = ["ordered"]


def ordered(
    rows: npt.NDArray[Any],
    keys: Sequence[npt.NDArray[Any]],
    *,
    ids: Sequence[str] | npt.NDArray[np.int64],
    limit: int | None = None,
) -> npt.NDArray[np.intp]:
    """Return positions that sort ``rows`` by ``keys`` ascending, then by id; see ``prme_ray.model.ordering``.

    Args:
        rows: Indices into ``ids``, shape (n,).
        keys: Numeric keys, the first one decides first; each of shape (n,).
        ids: Id of every row of the owner, or the place of each id among them.
        limit: Return the first ones only; less than 1 returns none. ``None``: all.
    """
    if isinstance(ids, np.ndarray):
        return ordering.ordered_by_place(keys, places=ids[rows], limit=limit)
    return ordering.ordered(keys, ids_at=lambda places: [ids[row] for row in rows[places].tolist()], limit=limit)
