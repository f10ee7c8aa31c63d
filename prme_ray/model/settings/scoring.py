"""Stage 5 settings: both score formulas (RFC §7, digest a §6)."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from prme_ray.model.enums import EpistemicType, NodeType
from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings.base import SettingsModel

__all__ = ["EPISTEMIC_WEIGHTS", "ScoringSettings"]

EPISTEMIC_WEIGHTS: dict[EpistemicType, float] = {
    EpistemicType.OBSERVED: 1.0,
    EpistemicType.ASSERTED: 0.9,
    EpistemicType.INFERRED: 0.7,
    EpistemicType.HYPOTHETICAL: 0.3,
    EpistemicType.CONDITIONAL: 0.5,
    EpistemicType.DEPRECATED: 0.1,
    EpistemicType.UNVERIFIED: 0.5,
}
"""Built-in epistemic weights (digest a §1.2). In a caller's map a missing type weighs 0.7."""

_SUM_TOLERANCE = 1e-6
_ADDITIVE = ("w_semantic", "w_lexical", "w_graph", "w_recency", "w_salience", "w_confidence")
_FUSION_ONLY = ("rrf_k", "rrf_recency_boost", "rrf_tie_break")
_DEFAULT_RANK_CONSTANT = 60


def _default_boosts() -> dict[NodeType, float]:
    return {
        NodeType.FACT: 1.15,
        NodeType.PREFERENCE: 1.15,
        NodeType.DECISION: 1.15,
        NodeType.SUMMARY: 1.1,
        NodeType.INSTRUCTION: 1.15,
    }


class ScoringSettings(SettingsModel):
    """Weights of the score. Field order is the order of the canonical receipt."""

    w_semantic: float = 0.25
    """Weight of the cosine (weighted formula). The six additive weights sum to 1."""
    w_lexical: float = 0.20
    """Weight of the normalised BM25."""
    w_graph: float = 0.20
    """Weight of the graph proximity."""
    w_recency: float = 0.10
    """Weight of the recency factor."""
    w_salience: float = 0.10
    """Weight of the effective salience."""
    w_confidence: float = 0.15
    """Weight of the effective confidence."""
    w_epistemic: float = 0.05
    """Recorded in receipts; the epistemic weight multiplies and is not added (decision 1)."""
    w_paths: float = 0.0
    """Recorded in receipts; the path score only breaks ties."""
    recency_lambda: Annotated[float, Field(ge=0)] = 0.02
    """Decay of recency, per day."""
    temporal_boost: Annotated[float, Field(ge=0)] = 0.15
    """Weight of temporal affinity on temporal questions."""
    node_type_boost: dict[NodeType, Annotated[float, Field(strict=True)]] = Field(default_factory=_default_boosts)
    """Factor a node type; a missing type counts 1. Negative ones need the weighted formula."""
    relevance_floor: Annotated[float, Field(ge=0)] = 0.35
    """Weighted: cap where cosine + BM25 is smaller. Fusion: below it no current-update boost. 0 disables."""
    current_update_multiplier: Annotated[float, Field(ge=1, le=2)] = 1.30
    """Boost of the newest memory worded as an update, on current-state questions. 1 disables."""
    fusion: Literal["rrf", "weighted"] = "rrf"
    """Score formula: reciprocal rank fusion (2) or the weighted sum (1)."""
    rrf_k: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Rank constant; 60 under rank fusion unless given. Dropped under the weighted formula."""
    rrf_recency_boost: Annotated[float, Field(gt=0, le=4)] | None = 0.25
    """Weight of recency as a pool-relative factor, on current-state questions only. None disables."""
    rrf_tie_break: Literal["event_time"] | None = "event_time"
    """Order of equal fused scores: newest stated time first. None: by path count and id."""
    recency_time: Literal["event_time"] | None = None
    """Weighted formula: measure recency from when a memory was stated, not updated."""

    @model_validator(mode="before")
    @classmethod
    def _drop_stray(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        data = dict(data)
        if data.get("fusion", "rrf") == "weighted":
            for key in _FUSION_ONLY:
                if data.get(key) is not None:
                    warnings.warn(f"scoring.{key} has no effect with fusion='weighted'; dropped", stacklevel=2)
                data[key] = None
        else:
            if data.get("recency_time") == "event_time":
                warnings.warn("scoring.recency_time has no effect with fusion='rrf'; dropped", stacklevel=2)
                data["recency_time"] = None
            if data.get("rrf_k") is None:
                data["rrf_k"] = _DEFAULT_RANK_CONSTANT
        return data

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> ScoringSettings:
        total = sum(getattr(self, name) for name in _ADDITIVE)
        if abs(total - 1.0) > _SUM_TOLERANCE:
            raise InvalidSettings(
                argument="w_*",
                given=round(total, 9),
                allowed=f"additive weights that sum to 1 (±{_SUM_TOLERANCE}): change one of {', '.join(_ADDITIVE)}",
            )
        return self

    @model_validator(mode="after")
    def _fused_boosts_are_not_negative(self) -> ScoringSettings:
        for kind, boost in self.node_type_boost.items():
            if self.fusion == "rrf" and boost < 0:
                raise InvalidSettings(
                    argument=f"node_type_boost.{kind}", given=boost, allowed="0 or more, or fusion='weighted'"
                )
        return self
