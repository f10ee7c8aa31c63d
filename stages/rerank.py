"""Cross-encoder scores, opt-in, on the best prefix of the list (digest a section 6.7).

The model runs outside: this stage only blends what it returned, and records both steps in the
lineage, so that a receipt replays without the model. What the settings may say is checked where they are
made (:mod:`prme_ray.model.settings.rerank`), once.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import PINNABLE_STATES, Adjustment, NodeType, code
from prme_ray.model.errors import EncoderRejected
from prme_ray.model.settings.rerank import RerankPolicy
from prme_ray.model.tables import bools, codes, column, floats, ints, ranks_of, replace, take
from stages.columns import Rows, by_score
from stages.lineage import append_adjustments

__all__ = ["rerank"]

_MULTI_PATH = 2


def rerank(
    scored: pa.Table, neural: Mapping[str, float], *, policy: RerankPolicy, prior_weight: float, top_k: int
) -> pa.Table:
    """Reorder the first ``top_k`` rows by ``(1 - p) * neural + p * own``.

    Args:
        scored: SCORED, best first.
        neural: One cross-encoder score in [0, 1] for each id of the prefix, and no other.
        policy: ``legacy``: blended scores as they are. Envelope: the prefix keeps its set of scores, dealt
            out anew. Anchored: the best ordinary memory found on several paths keeps the first place.
        prior_weight: p, the share of a memory's own score, in [0, 1].
        top_k: Length of the prefix; 0 changes nothing.

    Returns:
        SCORED; rows behind the prefix keep their scores and places, so that under ``legacy`` the list
        need not fall all the way.

    Raises:
        EncoderRejected: a missing, foreign, non-finite or out-of-range cross-encoder score.
    """
    size = min(top_k, scored.num_rows)
    ids = column(scored, "node_id").slice(0, size)
    values = _checked(neural, ids.to_pylist())
    if not size:
        return scored
    ranks = ranks_of(column(scored, "node"))
    # -0.0 would be written into the lineage as another number than 0.0.
    weight = abs(float(prior_weight))
    composite = floats(scored, "composite_score").copy()
    blended = (1.0 - weight) * values + weight * composite[:size]
    order = by_score(blended, ranks[:size])
    rows = np.arange(size)
    steps = append_adjustments(
        column(scored, "adjustments"),
        rows,
        count=scored.num_rows,
        kind=Adjustment.NEURAL_BLEND,
        coefficients=np.full(size, weight),
        sources=ids,
        neural=values,
    )
    if policy == "legacy":
        composite[:size] = blended
    else:
        if policy == "anchored_score_envelope":
            order = _anchor_first(scored, order)
        dealt = np.empty(size)
        dealt[order] = np.sort(composite[:size])[::-1]
        composite[:size] = dealt
        steps = append_adjustments(
            steps,
            rows,
            count=scored.num_rows,
            kind=Adjustment.NEURAL_RANK_ASSIGNMENT,
            coefficients=dealt,
            sources=ids,
        )
        # Rows that had equal scores still have them: only the id can order them.
        order = by_score(dealt, ranks[:size])
    reranker = floats(scored, "reranker_score").copy()
    reranker[:size] = values
    table = replace(
        scored,
        composite_score=composite,
        adjustments=steps,
        reranker_score=pa.array(reranker, mask=np.isnan(reranker)),
    )
    return take(table, np.concatenate([order, np.arange(size, scored.num_rows)]))


def _checked(neural: Mapping[str, float], ids: list[str]) -> npt.NDArray[np.float64]:
    """Return the prefix's cross-encoder scores, shape (k,)."""
    if len(neural) != len(ids) or any(node_id not in neural for node_id in ids):
        detail = f"it scored {len(neural)} memories, asked were {len(ids)}, and the ids have to be the same"
        raise EncoderRejected(model="cross-encoder", detail=detail)
    for node_id in ids:
        value = neural[node_id]
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= 1:
            detail = f"it gave {value!r} for {node_id}, allowed is a finite number from 0 to 1"
            raise EncoderRejected(model="cross-encoder", detail=detail)
    return np.array([neural[node_id] for node_id in ids], dtype=np.float64)


def _anchor_first(scored: pa.Table, order: Rows) -> Rows:
    """Move the best ordinary multi-path memory of the whole list to the front, where the prefix holds it.

    Memories that packing puts first anyway (instructions, pins, open tasks and intents) are not ordinary.
    """
    kinds = codes(scored, "node_type")
    open_states = [code(state) for state in PINNABLE_STATES]
    is_open = np.isin(codes(scored, "lifecycle_state"), open_states)
    special = (
        (kinds == code(NodeType.INSTRUCTION))
        | bools(scored, "pinned")
        | (floats(scored, "salience") == 1.0)
        | (np.isin(kinds, [code(NodeType.TASK), code(NodeType.INTENT)]) & is_open)
    )
    ordinary = np.flatnonzero(~special & (ints(scored, "path_count") >= _MULTI_PATH))
    if not len(ordinary):
        return order
    scores = floats(scored, "composite_score")[ordinary]
    best = ordinary[by_score(scores, ranks_of(column(scored, "node"))[ordinary])[0]]
    if best >= len(order):
        return order
    return np.concatenate([[best], order[order != best]])
