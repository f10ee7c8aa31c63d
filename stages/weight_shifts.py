"""Query-specific changes of the additive weights (weighted formula only; digest a §6.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.settings import ScoringSettings
from stages.recency import SHIFTED_LAMBDA

__all__ = ["MULTIPLIER_NAMES", "additive_weights", "is_neutral", "shifted_weights"]

MULTIPLIER_NAMES = ("semantic", "lexical", "graph", "recency", "salience", "confidence")
"""Names of the six learned multipliers, in the order of the weights."""

_MULTIPLIER_RANGE = (0.25, 4.0)
_CURRENT_STATE_RECENCY = 0.25
_EPISODIC_RECENCY = 0.20


def additive_weights(scoring: ScoringSettings) -> dict[str, float]:
    """Return the six additive weights and ``recency_lambda`` as configured."""
    weights = {f"w_{name}": getattr(scoring, f"w_{name}") for name in MULTIPLIER_NAMES}
    return {**weights, "recency_lambda": scoring.recency_lambda}


def is_neutral(multipliers: Mapping[str, float] | None) -> bool:
    """Return whether these multipliers change nothing.

    Raises:
        InvalidRequest: an unknown name, or a number that is not in [0.25, 4].
    """
    for name, value in (multipliers or {}).items():
        if name not in MULTIPLIER_NAMES:
            raise InvalidRequest(argument="multipliers", given=name, allowed=f"names among {MULTIPLIER_NAMES}")
        low, high = _MULTIPLIER_RANGE
        if not (math.isfinite(value) and low <= value <= high):
            raise InvalidRequest(argument=f"multipliers.{name}", given=value, allowed=f"a number from {low} to {high}")
    return all(value == 1.0 for value in (multipliers or {}).values())


def shifted_weights(
    scoring: ScoringSettings,
    *,
    analysis: QueryAnalysis | None,
    current: bool,
    pool_has_update: bool,
    multipliers: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Return the weights that this question is scored with.

    In order: a question that names the class of its answer gives the lexical weight to the cosine;
    a current-state question moves weight from both channels to recency (instead), a question about
    a recent episode less of it (on top); learned multipliers come last.

    Args:
        scoring: The configured weights.
        analysis: The question, or None for none of these shifts.
        current: It is scored as a current-state question, gate included.
        pool_has_update: A candidate has update wording.
        multipliers: Learned multiplier a weight; a missing name counts 1.

    Returns:
        ``w_semantic`` ... ``w_confidence`` and ``recency_lambda`` (per day).

    Raises:
        InvalidRequest: multipliers out of range, of unknown name, or on negative weights.
    """
    weights = additive_weights(scoring)
    if current:
        if _move_to_recency(weights, _CURRENT_STATE_RECENCY):
            weights["recency_lambda"] = max(weights["recency_lambda"], SHIFTED_LAMBDA)
    elif analysis is not None:
        if analysis.implicit_pattern and analysis.answer_class_pattern and not pool_has_update:
            weights["w_semantic"] += weights["w_lexical"]
            weights["w_lexical"] = 0.0
        if analysis.recent_episodic:
            _move_to_recency(weights, _EPISODIC_RECENCY)
    if not is_neutral(multipliers):
        _multiply(weights, multipliers or {})
    return weights


def _move_to_recency(weights: dict[str, float], target: float) -> bool:
    """Raise the recency weight towards ``target`` at the channels' cost, in proportion; tell if it changed."""
    channels = weights["w_semantic"] + weights["w_lexical"]
    moved = min(target - weights["w_recency"], channels)
    if moved <= 0.0 or channels <= 0.0:
        return False
    for name in ("w_semantic", "w_lexical"):
        weights[name] -= moved * (weights[name] / channels)
    weights["w_recency"] += moved
    return True


def _multiply(weights: dict[str, float], multipliers: Mapping[str, float]) -> None:
    names = [f"w_{name}" for name in MULTIPLIER_NAMES]
    negative = [name for name in names if weights[name] < 0.0]
    if negative:
        raise InvalidRequest(
            argument="multipliers",
            given=dict(multipliers),
            allowed=f"none while scoring.{negative[0]} is negative: make that weight 0 or more",
        )
    for name, weight in zip(MULTIPLIER_NAMES, names, strict=True):
        weights[weight] *= multipliers.get(name, 1.0)
    total = sum(weights[name] for name in names)
    for name in names:
        weights[name] /= total
