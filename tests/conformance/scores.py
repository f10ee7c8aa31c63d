"""Runs a golden score case and puts the outcome in golden form; shared by both formulas' checks."""

from __future__ import annotations

import warnings
from typing import Any

from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import EpistemicType, Intent
from prme_ray.model.settings import ScoringSettings
from prme_ray.model.tables import records
from stages.query_wording import with_wording
from stages.score import score
from tests.conformance.tables import adjustments, candidates_table, time

_TRACE = {
    "semantic_similarity": "trace_semantic",
    "lexical_relevance": "trace_lexical",
    "graph_proximity": "trace_graph",
    "recency_factor": "trace_recency",
    "salience": "trace_salience",
    "confidence": "trace_confidence",
    "epistemic_weight": "trace_epistemic",
    "path_score": "trace_path",
    "temporal_affinity": "trace_temporal",
    "node_type_boost": "trace_node_type",
    "composite_score": "base_score",
}
_RANK_FUSION = {
    "semantic_rank": "semantic_rank",
    "lexical_rank": "lexical_rank",
    "epistemic_factor": "epistemic_factor",
    "node_type_factor": "node_type_factor",
    "temporal_factor": "temporal_factor",
    "recency_boost_factor": "recency_factor",
    "tie_break": "tie_break",
}


def settings(weights: dict[str, Any]) -> ScoringSettings:
    """Return golden weights as settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ScoringSettings.model_validate(weights)


def analysis(given: dict[str, Any] | None) -> QueryAnalysis | None:
    """Return a golden query analysis with its wording worked out."""
    if given is None:
        return None
    return with_wording(
        given["query"],
        intent=Intent(given["intent"]),
        time_from=time(given["time_from"]),
        time_to=time(given["time_to"]),
        aggregation=given["is_aggregation"],
    )


def scored_case(case: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of the case's scoring in golden form."""
    given = case["given"]
    weights = given["epistemic_weights"]
    found = score(
        candidates_table(given["candidates"]),
        analysis=analysis(given["query_analysis"]),
        scoring=settings(given["weights"]),
        reference_time=time(given["reference_time"]),
        epistemic_weights=None if weights is None else {EpistemicType(key): weights[key] for key in weights},
        multipliers=given.get("ranking_multipliers"),
    )
    rows = records(found.table)
    return {
        "order": [row["node_id"] for row in rows],
        "current_state_applied": found.current_state,
        "update_wording_ids": sorted(row["node_id"] for row in records(found.table) if row["update_wording"]),
        "applied_weights": found.applied,
        "results": [
            {
                "id": row["node_id"],
                "composite_score": row["composite_score"],
                "trace": {name: row[column] for name, column in _TRACE.items()},
                "adjustments": adjustments(row),
                "rank_fusion": {name: row[column] for name, column in _RANK_FUSION.items()},
            }
            for row in rows
        ],
    }
