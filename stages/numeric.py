"""Arithmetic that gives the same bits on every machine of a cluster.

NumPy's ``exp`` uses whatever vector instructions the processor has, and its ``round`` scales before
it rounds; both can end in another last bit than the scalar functions that a receipt is replayed with.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "competition_ranks", "exp", "round_score"]

Floats = npt.NDArray[np.float64]

_DIGITS = 10
_SCALE = 1e10
# Scaling is off by at most 1.2e-4 for values up to _LARGE, so this margin around a half is safe.
_MARGIN = 1e-3
_LARGE = 100.0


def exp(values: Floats) -> Floats:
    """Return e to the power of each value, as ``math.exp`` gives it."""
    return np.fromiter(map(math.exp, values.tolist()), np.float64, len(values))


def round_score(values: Floats) -> Floats:
    """Return each value as Python's ``round(value, 10)``, bit for bit (digest a §9, rule 6).

    The nearest integer of the scaled value is certain unless the value is large or lies next to a
    half; those few go through ``round`` itself. Dividing an exact integer by the exact 1e10 then
    rounds once, as ``round`` does, at a small part of its cost.
    """
    scaled = values * _SCALE
    nearest = np.rint(scaled)
    rounded = nearest / _SCALE
    unsure = (np.abs(scaled - nearest) > 0.5 - _MARGIN) | (np.abs(values) > _LARGE)
    if unsure.any():
        rounded[unsure] = [round(value, _DIGITS) for value in values[unsure].tolist()]
    return rounded


def competition_ranks(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return ranks by descending value; equal values share the better rank (1, 2, 2, 4).

    Args:
        values: Signed numbers without NaN and without the smallest integer, which has no negative.
    """
    negated = -values
    return np.searchsorted(np.sort(negated), negated, side="left") + 1
