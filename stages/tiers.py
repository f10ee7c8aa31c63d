"""Who is packed first: priority tiers, and the order inside them (RFC §8, digest b §1.5, §1.6)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import ACTIVE_STATES, PINNABLE_STATES, LifecycleState, NodeType, Path, code
from prme_ray.model.ordering import ordered_by_place
from prme_ray.model.tables import bools, codes, floats, ints, shorts

__all__ = ["CONTEXT", "GUARANTEED", "INSTRUCTION", "MULTIPATH", "OTHER", "REQUIRED", "priority_order", "tier_codes"]

Tiers = npt.NDArray[np.int8]

REQUIRED, INSTRUCTION, GUARANTEED, CONTEXT, MULTIPATH, OTHER = -1, 0, 1, 2, 3, 4
"""Tiers, packed in this order. GUARANTEED: pins, tasks and intents. CONTEXT: episode and evidence context."""

_CONTEXT_BITS = Path.EPISODE_CONTEXT.bit | Path.EVIDENCE_CONTEXT.bit
_MULTIPLE = 2
_PINNED_SALIENCE = 1.0


def _states(members: tuple[LifecycleState, ...]) -> npt.NDArray[np.bool_]:
    return np.isin(np.arange(len(LifecycleState)), [code(state) for state in members])


# Whether an open task or intent: by type, then state.
_OPEN = np.zeros((len(NodeType), len(LifecycleState)), np.bool_)
_OPEN[code(NodeType.TASK)] = _states(PINNABLE_STATES)
_OPEN[code(NodeType.INTENT)] = _states(ACTIVE_STATES)
_INSTRUCTION = code(NodeType.INSTRUCTION)


def tier_codes(table: pa.Table, *, triggers: dict[int, int]) -> Tiers:
    """Return each row's tier, shape (n,).

    Args:
        table: ``SCORED`` rows.
        triggers: Row of a session neighbour -> row of its trigger; empty where session neighbours
            have no tier of their own. A neighbour of a trigger in the multi-path tier or above joins
            the multi-path tier.
    """
    kinds, states = codes(table, "node_type"), codes(table, "lifecycle_state")
    tiers = np.where(ints(table, "path_count") >= _MULTIPLE, MULTIPATH, OTHER).astype(np.int8)
    tiers[(shorts(table, "paths") & _CONTEXT_BITS) != 0] = CONTEXT
    pins = bools(table, "pinned") | (floats(table, "salience") == _PINNED_SALIENCE)
    tiers[pins | _OPEN[kinds, states]] = GUARANTEED
    tiers[kinds == _INSTRUCTION] = INSTRUCTION
    if triggers:
        raised = [row for row, trigger in triggers.items() if tiers[row] == OTHER and tiers[trigger] <= MULTIPATH]
        tiers[raised] = MULTIPATH
    return tiers


def priority_order(
    table: pa.Table,
    *,
    tiers: Tiers,
    ordering: Literal["balanced", "density", "score"],
    tokens: npt.NDArray[np.int64],
    packable: npt.NDArray[np.bool_],
    id_rank: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Return the rows in the order in which they are tried: tier, value, id.

    Args:
        table: ``SCORED`` rows.
        tiers: Their tiers.
        ordering: Value inside the multi-path tier: score, score ÷ tokens (``density``), or score ÷
            tokens to the power ¼ with the best scored record in front (``balanced``).
        tokens: Tokens of each row's full line.
        packable: False where the text is blank and text is required: never the front record.
        id_rank: Place of each row's id among all ids.
    """
    scores = floats(table, "composite_score")
    values = scores
    if ordering != "score":
        costs = np.maximum(tokens, 1).astype(np.float64)
        # Square roots are exact to the last bit on every machine; a general power is not.
        divisor = costs if ordering == "density" else np.sqrt(np.sqrt(costs))
        values = np.where(tiers == MULTIPATH, scores / divisor, scores)
    if ordering == "balanced":
        eligible = packable & (ints(table, "path_count") >= _MULTIPLE) & (tiers >= CONTEXT)
        rows = np.flatnonzero(eligible)
        if len(rows):
            best = rows[scores[rows] == scores[rows].max()]
            values[best[np.argmin(id_rank[best])]] = np.inf
    return ordered_by_place([tiers, -values], places=id_rank)
