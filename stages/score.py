"""Stage 5: scores candidates by the configured formula (RFC §7)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa

from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import EpistemicType
from prme_ray.model.settings import ScoringSettings
from stages.score_rank_fusion import score_rank_fusion
from stages.score_table import Scored
from stages.score_weighted import score_weighted

__all__ = ["Scored", "score"]

_FORMULAS = {"rrf": score_rank_fusion, "weighted": score_weighted}


def score(
    candidates: pa.Table,
    *,
    analysis: QueryAnalysis | None,
    scoring: ScoringSettings,
    reference_time: datetime,
    epistemic_weights: Mapping[EpistemicType, float] | None = None,
    multipliers: Mapping[str, float] | None = None,
) -> Scored:
    """Score a pool by ``scoring.fusion``; arguments and errors are those of the two formulas."""
    return _FORMULAS[scoring.fusion](
        candidates,
        analysis=analysis,
        scoring=scoring,
        reference_time=reference_time,
        epistemic_weights=epistemic_weights,
        multipliers=multipliers,
    )
