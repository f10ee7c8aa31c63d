"""Clocks of a memory and its recency (RFC §7, digest a §6.2 and §6.3).

Two clocks exist on purpose. *Stated* time never reads ``updated_at``, which a lifecycle change
resets; *changed* time does, because it decides which memory is the current update. Times are
``int64`` microseconds since the epoch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.tables import times
from prme_ray.model.times import NO_TIME
from stages.numeric import Floats, exp

__all__ = ["SHIFTED_LAMBDA", "Micros", "changed_times", "days_between", "recency", "stated_times"]

Micros = npt.NDArray[np.int64]

SHIFTED_LAMBDA = 0.05
"""Smallest decay of recency, per day, where a current-state question turns recency up."""

_SECOND_US = 1e6
_DAY_SECONDS = 86_400.0


def stated_times(candidates: pa.Table) -> Micros:
    """Return when each memory was stated: its event time, else when it was stored."""
    return _event_time_or(candidates, "created_at")


def changed_times(candidates: pa.Table) -> Micros:
    """Return when each memory was stated or last changed: its event time, else its update time."""
    return _event_time_or(candidates, "updated_at")


def days_between(later: Micros | int, earlier: Micros | int) -> Floats:
    """Return ``later - earlier`` in days of 86,400 s, not below 0: a future time counts as now."""
    seconds = np.asarray(later - earlier, np.float64) / _SECOND_US
    return np.maximum(0.0, seconds / _DAY_SECONDS)


def recency(age_days: Floats, *, decay: float, doubled: npt.NDArray[np.bool_] | None = None) -> Floats:
    """Return exp(-decay x age), doubled up to 1.0 where ``doubled`` is true.

    Args:
        age_days: Ages, at least 0.
        decay: Rate per day.
        doubled: Memories worded as updates on a current-state question.
    """
    factor = exp(-decay * age_days)
    if doubled is not None:
        factor = factor * np.where(doubled, 2.0, 1.0)
    return np.minimum(1.0, factor)


def _event_time_or(candidates: pa.Table, name: str) -> Micros:
    stated = times(candidates, "event_time")
    return np.where(stated == NO_TIME, times(candidates, name), stated)
