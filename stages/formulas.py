"""Both score formulas as arithmetic alone: what a pool is scored with, and a receipt is replayed with.

The order of operations is part of a formula: it decides the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.numeric import Floats, round_score

__all__ = ["SIGNALS", "fused_score", "pool_relative", "weighted_score"]

SIGNALS = ("semantic", "lexical", "graph", "recency", "salience", "confidence")
"""Signals of the weighted formula in the order they are added; ``w_`` before each names its weight."""

_TIE_STEP = 1e-11


def weighted_score(
    weights: Mapping[str, Any],
    signals: Mapping[str, Floats],
    *,
    epistemic: Floats,
    temporal: Floats | float,
    node_type: Floats,
    relevance_floor: Floats | float,
) -> Floats:
    """Return base scores of formula 1 (digest a §6.2), rounded to 10 decimals, shape (n,).

    ``((sum of weight x signal) x epistemic + temporal) x node type``, at most semantic + lexical where
    that is below the relevance floor.

    Args:
        weights: ``w_semantic`` ... ``w_confidence``: numbers, or arrays of shape (n,).
        signals: The six of :data:`SIGNALS`, shape (n,).
        epistemic: Epistemic weights, shape (n,).
        temporal: Temporal boost x affinity; 0 where the question is not temporal.
        node_type: Boosts by node type, shape (n,).
        relevance_floor: 0 for none.
    """
    first, *others = SIGNALS
    score: Floats = weights[f"w_{first}"] * signals[first]
    for name in others:
        score = score + weights[f"w_{name}"] * signals[name]
    score = (score * epistemic + temporal) * node_type
    relevance = signals["semantic"] + signals["lexical"]
    capped = (relevance < relevance_floor) & (np.asarray(relevance_floor) > 0.0)
    return round_score(np.where(capped, np.minimum(score, relevance), score))


def fused_score(
    constant: int,
    semantic_rank: npt.NDArray[np.integer[Any]],
    lexical_rank: npt.NDArray[np.integer[Any]],
    *,
    factors: Sequence[Floats | float],
    tie_break: Floats | None,
) -> Floats:
    """Return base scores of formula 2 (RFC §7.2, digest a §6.3), shape (n,).

    ``(1/(k + semantic rank) + 1/(k + lexical rank)) x (k + 1)/2 x factors``, rounded to 10 decimals; then
    a positive score loses ``tie_break x 1e-11``.

    Args:
        constant: The rank constant k.
        semantic_rank: Ranks from 1, 0 off the channel, shape (n,).
        lexical_rank: Likewise.
        factors: Epistemic, node type, temporal and, where it applies, recency, in this order.
        tie_break: Places by stated time as a fraction of the pool; ``None`` where ties are not broken by it.
    """
    score: Floats = (_reciprocal(constant, semantic_rank) + _reciprocal(constant, lexical_rank)) * (constant + 1) / 2.0
    for factor in factors:
        score = score * factor
    base = round_score(score)
    return base if tie_break is None else np.where(base > 0.0, base - tie_break * _TIE_STEP, base)


def pool_relative(values: Floats, largest: float) -> Floats:
    """Return values over the pool's largest, at most 1; all 0 where that is not positive."""
    return np.minimum(values / largest, 1.0) if largest > 0.0 else np.zeros(len(values))


def _reciprocal(constant: int, ranks: npt.NDArray[np.integer[Any]]) -> Floats:
    return np.where(ranks > 0, 1.0 / (constant + ranks), 0.0)
