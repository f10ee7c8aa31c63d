"""Golden file ``rerank_blend``."""

from __future__ import annotations

from typing import Any

from prme_ray.model.settings.rerank import RerankSettings
from prme_ray.model.tables import records
from stages.rerank import rerank
from tests.conformance.tables import result, scored_table


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Run the stage on one case."""
    given = case["given"]
    chosen = RerankSettings(**{name: given[name] for name in ("policy", "prior_weight", "top_k")})
    found = rerank(
        scored_table(given["scored"]),
        given["neural_scores"],
        policy=chosen.policy,
        prior_weight=chosen.prior_weight,
        top_k=chosen.top_k,
    )
    rows = [result(row) for row in records(found)]
    return {
        "order": [row["id"] for row in rows],
        "results": [{"reranker_score": None, **row, "adjustments": row["provenance"]["adjustments"]} for row in rows],
    }
