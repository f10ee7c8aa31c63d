"""Score formula 1: the weighted sum (RFC §7, digest a §6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import pyarrow as pa

from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import EpistemicType, Intent, NodeType
from prme_ray.model.settings import ScoringSettings
from prme_ray.model.tables import bools, codes, floats, times
from prme_ray.model.times import NO_TIME, micros
from stages.affinity import temporal_affinity
from stages.current_update import boost_newest_updates, is_current_state, no_boost
from stages.decay import effective_salience_confidence
from stages.epistemic import epistemic_weights as weigh_epistemic
from stages.formulas import weighted_score
from stages.numeric import Floats
from stages.recency import changed_times, days_between, recency, stated_times
from stages.score_table import Scored, channel_scores, path_scores, ranked
from stages.weight_shifts import shifted_weights

__all__ = ["score_weighted"]

_FORMULA = 1


def score_weighted(
    candidates: pa.Table,
    *,
    analysis: QueryAnalysis | None,
    scoring: ScoringSettings,
    reference_time: datetime,
    epistemic_weights: Mapping[EpistemicType, float] | None = None,
    multipliers: Mapping[str, float] | None = None,
) -> Scored:
    """Score candidates by the weighted formula and sort them.

    ``((sum of weight x signal) x epistemic [+ temporal_boost x affinity]) x node type``, capped at
    cosine + BM25 where that is below the relevance floor, rounded to 10 decimals; then the
    current-update step. A memory found by neither text channel therefore scores 0 by default.

    Args:
        candidates: CANDIDATE table: the whole pool, since recency and the update step look at it.
        analysis: The question; ``None`` scores without any question-specific term.
        scoring: Settings with ``fusion="weighted"``.
        reference_time: The request's clock, aware.
        epistemic_weights: Weight a type; ``None`` for the built-in table.
        multipliers: Learned multiplier a weight, each in [0.25, 4].

    Raises:
        InvalidRequest: non-finite channel scores; bad multipliers.
    """
    semantic, lexical = channel_scores(candidates)
    updates = bools(candidates, "update_wording")
    pool_has_update = bool(updates.any())
    current = is_current_state(analysis, pool_has_update=pool_has_update)
    weights = shifted_weights(
        scoring, analysis=analysis, current=current, pool_has_update=pool_has_update, multipliers=multipliers
    )
    stated_only = scoring.recency_time == "event_time"
    if current:
        clock = stated_times(candidates) if stated_only else changed_times(candidates)
        newest = int(clock.max(initial=NO_TIME))
        recent = recency(days_between(newest, clock), decay=weights["recency_lambda"], doubled=updates)
    else:
        clock = stated_times(candidates) if stated_only else times(candidates, "updated_at")
        recent = recency(days_between(micros(reference_time), clock), decay=weights["recency_lambda"])
    salience, confidence = effective_salience_confidence(candidates, reference_time=reference_time)
    epistemic = weigh_epistemic(candidates, epistemic_weights)
    node_type = np.array([scoring.node_type_boost.get(kind, 1.0) for kind in NodeType])[codes(candidates, "node_type")]
    graph = floats(candidates, "graph_proximity")

    affinity: Floats | float = 0.0
    if analysis is not None and analysis.intent is Intent.TEMPORAL and scoring.temporal_boost > 0.0:
        affinity = temporal_affinity(candidates, time_from=analysis.time_from, time_to=analysis.time_to)
    base = weighted_score(
        weights,
        {
            "semantic": semantic,
            "lexical": lexical,
            "graph": graph,
            "recency": recent,
            "salience": salience,
            "confidence": confidence,
        },
        epistemic=epistemic,
        temporal=scoring.temporal_boost * affinity,
        node_type=node_type,
        relevance_floor=scoring.relevance_floor,
    )

    boost = no_boost(base)
    if current:
        boost = boost_newest_updates(
            base,
            times=clock,
            update_wording=updates,
            relevance=semantic + lexical,
            multiplier=scoring.current_update_multiplier,
            relevance_floor=scoring.relevance_floor,
            cap_at_relevance=True,
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
            "trace_graph": graph,
            "trace_recency": recent,
            "trace_salience": salience,
            "trace_confidence": confidence,
            "trace_epistemic": epistemic,
            "trace_temporal": affinity,
            "trace_node_type": node_type,
        },
    )
    return Scored(table=table, current_state=current, applied=weights)
