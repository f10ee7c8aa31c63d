"""Score formula 2: reciprocal rank fusion (RFC §7.2, digest a §6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import EpistemicType, Intent, NodeType, Path
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.settings import ScoringSettings
from prme_ray.model.tables import bools, codes, floats, shorts
from stages.affinity import temporal_affinity
from stages.current_update import boost_newest_updates, is_current_state, no_boost
from stages.epistemic import epistemic_weights as weigh_epistemic
from stages.formulas import fused_score, pool_relative
from stages.numeric import Floats, competition_ranks
from stages.recency import SHIFTED_LAMBDA, changed_times, days_between, recency, stated_times
from stages.score_table import Scored, channel_scores, path_scores, ranked
from stages.weight_shifts import additive_weights, is_neutral

__all__ = ["score_rank_fusion"]

_FORMULA = 2
_VECTOR, _LEXICAL = Path.VECTOR.bit, Path.LEXICAL.bit

Mask = npt.NDArray[np.bool_]


def score_rank_fusion(
    candidates: pa.Table,
    *,
    analysis: QueryAnalysis | None,
    scoring: ScoringSettings,
    reference_time: datetime,
    epistemic_weights: Mapping[EpistemicType, float] | None = None,
    multipliers: Mapping[str, float] | None = None,
) -> Scored:
    """Score candidates by rank fusion and sort them.

    ``(1/(k + semantic rank) + 1/(k + lexical rank)) x (k + 1)/2 x epistemic x node type x temporal
    [x recency]``, rounded to 10 decimals, ``[- tie_break x 1e-11]``; then the current-update step.
    Ranks and factors are relative to the pool, so it must be whole: merged over every shard.

    Args:
        candidates: CANDIDATE table: the whole pool.
        analysis: The question; ``None`` scores without any question-specific term.
        scoring: Settings with ``fusion="rrf"``.
        reference_time: The request's clock. Not read: ages count from the pool's newest memory. It
            is an argument so that both formulas are called alike.
        epistemic_weights: Weight a type; ``None`` for the built-in table.
        multipliers: Learned multipliers; only neutral ones are allowed here.

    Raises:
        InvalidRequest: non-finite channel scores, a negative weight in the pool, or multipliers
            other than 1.
    """
    del reference_time
    if not is_neutral(multipliers):
        raise InvalidRequest(
            argument="multipliers",
            given=dict(multipliers or {}),
            allowed="none under rank fusion: leave them out, or set scoring.fusion='weighted'",
        )
    semantic, lexical = channel_scores(candidates)
    epistemic = weigh_epistemic(candidates, epistemic_weights)
    node_type = np.array([scoring.node_type_boost.get(kind, 1.0) for kind in NodeType])[codes(candidates, "node_type")]
    _refuse_negative(epistemic, "epistemic_weights")
    _refuse_negative(node_type, "scoring.node_type_boost")
    updates = bools(candidates, "update_wording")
    current = is_current_state(analysis, pool_has_update=bool(updates.any()))

    paths = shorts(candidates, "paths")
    on_semantic = ((paths & _VECTOR) != 0) | (semantic > 0.0)
    on_lexical = ((paths & _LEXICAL) != 0) | (lexical > 0.0)
    on_channel = on_semantic | on_lexical
    constant = _rank_constant(scoring)
    semantic_rank = _ranks(semantic, on_semantic)
    lexical_rank = _ranks(lexical, on_lexical)

    epistemic_factor = _pool_relative(epistemic, on_channel)
    node_type_factor = _pool_relative(node_type, on_channel)
    affinity: Floats | float = 0.0
    temporal_factor: Floats | float = 1.0 if on_channel.any() else 0.0
    if analysis is not None and analysis.intent is Intent.TEMPORAL and scoring.temporal_boost > 0.0:
        affinity = temporal_affinity(candidates, time_from=analysis.time_from, time_to=analysis.time_to)
        temporal_factor = _pool_relative(1.0 + scoring.temporal_boost * affinity, on_channel)
    factors = [epistemic_factor, node_type_factor, temporal_factor]

    applied = additive_weights(scoring)
    recent: Floats | float = 0.0
    recency_factor: Floats | None = None
    if current and scoring.rrf_recency_boost is not None and len(semantic):
        stated = stated_times(candidates)
        applied["recency_lambda"] = max(scoring.recency_lambda, SHIFTED_LAMBDA)
        age = days_between(int(stated.max()), stated)
        recent = recency(age, decay=applied["recency_lambda"], doubled=updates)
        recency_factor = _pool_relative(1.0 + scoring.rrf_recency_boost * recent, on_channel)
        factors.append(recency_factor)
    tie_break: Floats | None = None
    if scoring.rrf_tie_break is not None:
        tie_break = _places(stated_times(candidates), on_channel)
    base = fused_score(constant, semantic_rank, lexical_rank, factors=factors, tie_break=tie_break)

    boost = no_boost(base)
    if current:
        boost = boost_newest_updates(
            base,
            times=changed_times(candidates),
            update_wording=updates,
            relevance=semantic + lexical,
            multiplier=scoring.current_update_multiplier,
            relevance_floor=scoring.relevance_floor,
            cap_at_relevance=False,
        )
    table = ranked(
        candidates,
        formula=_FORMULA,
        base=base,
        boost=boost,
        path_score=path_scores(candidates),
        columns={
            "trace_semantic": semantic,
            "trace_lexical": lexical,
            "trace_graph": floats(candidates, "graph_proximity"),
            "trace_recency": recent,
            "trace_salience": 0.0,
            "trace_confidence": 0.0,
            "trace_epistemic": epistemic,
            "trace_temporal": affinity,
            "trace_node_type": node_type,
            "semantic_rank": semantic_rank,
            "lexical_rank": lexical_rank,
            "epistemic_factor": epistemic_factor,
            "node_type_factor": node_type_factor,
            "temporal_factor": temporal_factor,
            "recency_factor": recency_factor,
            "tie_break": tie_break,
        },
    )
    return Scored(table=table, current_state=current, applied=applied)


def _rank_constant(scoring: ScoringSettings) -> int:
    if scoring.rrf_k is None:
        raise InvalidRequest(argument="scoring.rrf_k", given=None, allowed="1 to 10000 with scoring.fusion='rrf'")
    return scoring.rrf_k


def _refuse_negative(weights: Floats, argument: str) -> None:
    if (weights < 0.0).any():
        raise InvalidRequest(
            argument=argument,
            given=float(weights.min()),
            allowed="weights of 0 or more under rank fusion: raise it, or set scoring.fusion='weighted'",
        )


def _ranks(values: Floats, on_channel: Mask) -> npt.NDArray[np.int32]:
    """Return competition ranks among the on-channel candidates, 0 for the others."""
    ranks = np.zeros(len(values), np.int32)
    ranks[on_channel] = competition_ranks(values[on_channel])
    return ranks


def _pool_relative(values: Floats, on_channel: Mask) -> Floats:
    """Return values over their largest on-channel value; see :func:`pool_relative`."""
    return pool_relative(values, float(values[on_channel].max(initial=0.0)))


def _places(stated: npt.NDArray[np.int64], on_channel: Mask) -> Floats:
    """Return each on-channel candidate's place by stated time, newest 0, as a fraction of their number."""
    places = np.zeros(len(stated))
    count = int(on_channel.sum())
    places[on_channel] = (competition_ranks(stated[on_channel]) - 1) / max(count, 1)
    return places
