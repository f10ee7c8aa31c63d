"""Temporal affinity: how well a memory fits the time a question speaks of (RFC §7, digest a §6.2)."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa

from prme_ray.model.tables import bools
from prme_ray.model.times import micros
from stages.numeric import Floats, exp
from stages.recency import days_between, stated_times

__all__ = ["temporal_affinity"]

_DATED_SHARE = 0.3
_PROXIMITY_SHARE = 0.7
_DECAY_PER_DAY = 0.02


def temporal_affinity(candidates: pa.Table, *, time_from: datetime | None, time_to: datetime | None) -> Floats:
    """Return 0.3 x dated + 0.7 x proximity, a value a row, in [0, 1].

    Proximity is 1 inside the window (ends included) and falls by exp(-0.02 x days) outside it;
    without a window it is 0.5 for a memory whose text holds a date, else 0.

    Args:
        candidates: CANDIDATE table.
        time_from: Lower end of the window, or None for open.
        time_to: Upper end, or None for open.
    """
    dated = bools(candidates, "dated").astype(np.float64)
    if time_from is None and time_to is None:
        proximity = 0.5 * dated
    else:
        stated = stated_times(candidates)
        before = np.zeros(len(stated)) if time_from is None else days_between(micros(time_from), stated)
        after = np.zeros(len(stated)) if time_to is None else days_between(stated, micros(time_to))
        outside = np.where(before > 0.0, before, after)
        proximity = exp(-_DECAY_PER_DAY * outside)
    return _DATED_SHARE * dated + _PROXIMITY_SHARE * proximity
