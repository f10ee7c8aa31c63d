"""Settings of the two options that need something of the caller's: a cross-encoder, a rewriter of questions.

Both are off by default. Switched on, they need ``cross_encoder=`` or ``reformulate=`` at ``Memory.open``:
no model for either is part of this package.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings.base import SettingsModel

__all__ = ["ReformulationSettings", "RerankPolicy", "RerankSettings"]

RerankPolicy = Literal["legacy", "score_envelope", "anchored_score_envelope"]

_PRIOR_WEIGHT = 0.3


class RerankSettings(SettingsModel):
    """Cross-encoder order of the best candidates (RFC §7.3, digest a §6.7)."""

    enabled: bool = False
    """Score the best candidates with the cross-encoder given to ``Memory.open``."""
    policy: RerankPolicy = "legacy"
    """legacy: blended scores as they are. score_envelope: the prefix keeps its set of scores, dealt out in
    the blended order. anchored_score_envelope: the same, and the best ordinary memory found on several
    paths keeps the first place."""
    top_k: Annotated[int, Field(ge=0, strict=True)] = 100
    """Candidates that are scored, best first; 0 changes nothing."""
    prior_weight: Annotated[float, Field(ge=0, le=1, strict=True)] = _PRIOR_WEIGHT
    """Share of a candidate's own score in the blend; another than 0.3 needs an envelope policy."""

    @field_validator("prior_weight")
    @classmethod
    def _one_zero(cls, value: float) -> float:
        return value + 0.0  # -0.0 would be another fingerprint, and another lineage, than 0.0

    @model_validator(mode="after")
    def _weight_fits_policy(self) -> RerankSettings:
        # Scores blended with another weight are on no scale that the stages behind know.
        if self.enabled and self.policy == "legacy" and self.prior_weight != _PRIOR_WEIGHT:
            raise InvalidSettings(
                argument="prior_weight",
                given=self.prior_weight,
                allowed=f"{_PRIOR_WEIGHT} with policy='legacy', or an envelope policy",
            )
        return self


class ReformulationSettings(SettingsModel):
    """Alternate wordings of a question, searched beside it (digest a §7.6)."""

    enabled: bool = False
    """Ask the ``reformulate`` given to ``Memory.open`` for other wordings of every question."""
    count: Annotated[int, Field(ge=1, le=5, strict=True)] = 2
    """Most other wordings of one question."""
    merge: Literal["new_only", "max_signals"] = "new_only"
    """new_only: memories that the question itself did not find are added. max_signals: paths are united
    and each signal's maximum counts; then a search that fails fails the request."""
