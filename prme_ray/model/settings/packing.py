"""Stage 2 limits, context stages and stage 6 settings (digest a §8.2, digest b §1.1)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings.base import SettingsModel

__all__ = ["ContextFormat", "MinFidelity", "PackingSettings"]

ContextFormat = Literal["reader", "compact", "auditable"]
MinFidelity = Literal["full", "prose", "structured", "key_value", "reference"]

_Count = Annotated[int, Field(ge=0)]
_Positive = Annotated[int, Field(ge=1)]
_Decay = Annotated[float, Field(gt=0, le=1)]


class PackingSettings(SettingsModel):
    """Candidate limits, context expansion and packing. Field order follows the canonical receipt."""

    multipath_ordering: Literal["balanced", "density", "score"] = "balanced"
    """Order inside the multi-path tier: score over token cost to the power ¼, ÷ cost, or score alone."""
    context_guidance_mode: Literal["off", "temporal", "all"] = "temporal"
    """Which questions get a line on how to read the records, where it fits."""
    context_format: ContextFormat = "reader"
    """Line format of the packed context."""
    context_citations: bool = False
    """Reader lines carry references ``[m1]``; needs the reader format."""
    token_budget: _Count = 4096
    """Tokens the caller can spend on the context; a request may override it."""
    tokenizer: Annotated[str, Field(min_length=1)] = "cl100k_base"
    """tiktoken encoding that counts."""
    min_fidelity: MinFidelity = "reference"
    """Lowest representation a record may be packed at; a request may override it."""
    overhead_tokens: _Count = 100
    """Tokens of the budget kept for the caller."""
    graph_max_candidates: _Count = 150
    """Most nodes from the graph channel."""
    vector_k: _Count = 500
    """Most nodes from the vector channel."""
    lexical_k: _Count = 500
    """Most nodes from the lexical channel."""
    graph_max_hops: Annotated[int, Field(ge=1, le=3)] = 3
    """Traversal depth; the RFC's hard limit is 3."""
    min_edge_confidence: Annotated[float, Field(ge=0, le=1)] = 0.40
    """Edges below it are not followed (decision 5)."""
    pinned_limit: _Count = 500
    """Most pinned nodes, and most tasks and intents, looked up directly."""
    cross_scope_top_n: _Count = 5
    """Most hints from outside the requested scopes."""
    session_context_window: _Count = 3
    """Turns each side of a trigger that are considered; 0 disables."""
    session_context_top_k: _Count = 20
    """Best candidates that trigger session context."""
    session_context_score_decay: _Decay = 0.85
    """Share of the trigger's weighted score a neighbour inherits."""
    session_context_rank_fusion_score_decay: _Decay | None = 0.6
    """The same for fused scores; None: use the one above."""
    session_context_packing: Literal["trigger_tier", "adjacent"] | None = None
    """Whether session neighbours count as multi-path, and stand beside their trigger."""
    fold_repeated_text: bool = True
    """Reader format: leave out a record whose text stands in another record of the same source."""
    episode_context_top_k: _Count = 0
    """Episodes routed to; 0 disables."""
    episode_context_local_k: _Positive = 8
    """Most records of one episode."""
    episode_context_score_decay: _Decay = 0.95
    """Share of the episode's best score its records inherit."""
    evidence_projection_top_k: _Count = 0
    """Evidence groups replaced by their sources; 0 disables. Excludes augmentation."""
    evidence_projection_max_sources: _Positive = 1
    """Most sources of one group."""
    evidence_projection_score_decay: _Decay = 1.0
    """Share of the group's best score its sources inherit."""
    evidence_augmentation_top_k: _Count = 0
    """Evidence groups that get their sources beside them; 0 disables."""
    evidence_augmentation_max_sources: _Positive = 1
    """Most sources of one group."""
    evidence_augmentation_score_decay: _Decay = 0.99
    """Share of the group's best score its sources inherit."""
    evidence_augmentation_anchor_policy: Literal["all", "non_entity"] = "all"
    """Whether entity nodes may lead a group."""
    aggregation_k_multiplier: Annotated[float, Field(gt=0)] = 3.0
    """Widening of the three limits on count and list questions."""
    aggregation_k_max: _Count = 2000
    """Most candidates a widened channel gives."""

    @model_validator(mode="after")
    def _exclusive_options(self) -> PackingSettings:
        if self.evidence_projection_top_k and self.evidence_augmentation_top_k:
            raise InvalidSettings(
                argument="evidence_augmentation_top_k",
                given=self.evidence_augmentation_top_k,
                allowed="0 while evidence_projection_top_k is on: they exclude each other",
            )
        if self.context_citations and self.context_format != "reader":
            raise InvalidSettings(
                argument="context_citations",
                given=True,
                allowed=f"False with context_format={self.context_format!r}, or context_format='reader'",
            )
        return self
