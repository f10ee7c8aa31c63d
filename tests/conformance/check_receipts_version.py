"""Which version of the receipt states the settings, and which packing settings it leaves out."""

from __future__ import annotations

from typing import Any

from prme_ray.model.receipts import recorded_packing, version_for
from prme_ray.model.settings import PackingSettings
from tests.conformance.scores import settings

_FORMULA = ("fusion", "rrf_recency_boost", "rrf_tie_break", "recency_time")
_RECORDED = (
    "session_context_packing",
    "session_context_rank_fusion_score_decay",
    "fold_repeated_text",
    "context_format",
    "context_guidance_mode",
    "context_citations",
)


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Return the version that is written and the packing settings it records."""
    given = case["given"]
    scoring = settings({name: given[name] for name in _FORMULA})
    packing = PackingSettings.model_validate(given["packing"])
    version = version_for(
        scoring,
        packing,
        rank_assignment=given["rank_assignment"],
        min_score_skipped=given["min_score_skipped"],
        execution=given["execution"],
    )
    recorded = recorded_packing(packing, version=version, fused=scoring.fusion == "rrf")
    return {"schema_version": version, "recorded": {name: recorded.get(name) for name in _RECORDED}}
