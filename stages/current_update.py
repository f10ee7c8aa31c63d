"""Questions about the present state of something: the gate and the boost (RFC §7.1, digest a §2.5, §6.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prme_ray.model.analysis import QueryAnalysis
from stages.numeric import Floats
from stages.recency import Micros

__all__ = ["Boost", "boost_newest_updates", "is_current_state", "no_boost"]


@dataclass(frozen=True, slots=True)
class Boost:
    """Outcome of the current-update step.

    Attributes:
        scores: Scores after the step, a value a row, not rounded.
        rows: Rows that were raised, ascending.
        coefficients: What each of those was multiplied by.
    """

    scores: Floats
    rows: npt.NDArray[np.int64]
    coefficients: Floats


def is_current_state(analysis: QueryAnalysis | None, *, pool_has_update: bool) -> bool:
    """Return whether scoring treats the question as one about the present state.

    A question with the implicit shape counts only when the scored pool holds update wording.
    """
    if analysis is None or analysis.current_state == "none":
        return False
    return analysis.current_state == "explicit" or pool_has_update


def no_boost(base: Floats) -> Boost:
    """Return the outcome where nothing is raised."""
    return Boost(base, np.empty(0, np.int64), np.empty(0, np.float64))


def boost_newest_updates(
    base: Floats,
    *,
    times: Micros,
    update_wording: npt.NDArray[np.bool_],
    relevance: Floats,
    multiplier: float,
    relevance_floor: float,
    cap_at_relevance: bool,
) -> Boost:
    """Raise the newest memories of the pool that are worded as updates.

    Args:
        base: Base scores.
        times: The clock that decides which memory is newest, over the whole pool.
        update_wording: Which memories present themselves as updates.
        relevance: Cosine plus normalised BM25.
        multiplier: Factor of the boost; 1 disables it.
        relevance_floor: Relevance below which a memory counts as unrelated; 0 disables.
        cap_at_relevance: Below the floor, cap the raised score at the relevance (weighted formula);
            otherwise such a memory gets no boost (rank fusion).
    """
    if multiplier <= 1.0 or not len(base):
        return no_boost(base)
    rows = np.flatnonzero((times == times.max()) & update_wording & (base > 0.0))
    raised = base[rows] * multiplier
    if relevance_floor > 0.0:
        limit = relevance[rows] if cap_at_relevance else base[rows]
        raised = np.where(relevance[rows] < relevance_floor, np.minimum(raised, limit), raised)
    higher = raised > base[rows]
    rows = rows[higher]
    coefficients = raised[higher] / base[rows]
    scores = base.copy()
    # The recorded coefficient is what replay multiplies by, so it is what counts here too. Where the
    # cap binds below the base score, the base score stands.
    scores[rows] = base[rows] * coefficients
    return Boost(scores, rows, coefficients)
