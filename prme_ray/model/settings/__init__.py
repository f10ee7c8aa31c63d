"""The settings tree. ``Settings()`` is the product default everywhere (decision 2)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from prme_ray.model.enums import EpistemicType, Scope, SourceType
from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings.base import SettingsModel
from prme_ray.model.settings.cluster import ClusterSettings
from prme_ray.model.settings.packing import PackingSettings
from prme_ray.model.settings.rerank import ReformulationSettings, RerankSettings
from prme_ray.model.settings.runtime import EncoderSettings, StorageSettings
from prme_ray.model.settings.scoring import EPISTEMIC_WEIGHTS, ScoringSettings

__all__ = [
    "EPISTEMIC_WEIGHTS",
    "NOT_IN_FINGERPRINT",
    "ClusterSettings",
    "EncoderSettings",
    "PackingSettings",
    "ScoringSettings",
    "Settings",
    "StorageSettings",
]

_Unit = Annotated[float, Field(ge=0, le=1, strict=True)]
_Channel = Literal["GRAPH", "VECTOR", "LEXICAL", "PINNED"]
_Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]

# Left out of the fingerprint: they change where and how fast an answer is made, never the answer.
# A model file is known by its SHA-256, not by its path.
NOT_IN_FINGERPRINT: dict[str, Any] = {
    "storage": True,
    "cluster": True,
    "log_retrievals": True,
    "strict_receipts": True,
    "encoder": {"model_path", "cache_entries", "workers"},
}


class Settings(SettingsModel):
    """Everything that can be set.

    Example:
        >>> Settings().scoring.fusion
        'rrf'
        >>> Settings(packing={"token_budget": 1024}).packing.vector_k
        500
    """

    scoring: ScoringSettings = Field(default_factory=ScoringSettings)
    """Score formulas and weights."""
    packing: PackingSettings = Field(default_factory=PackingSettings)
    """Candidate limits, context stages and packing."""
    rerank: RerankSettings = Field(default_factory=RerankSettings)
    """Cross-encoder order of the best candidates."""
    reformulation: ReformulationSettings = Field(default_factory=ReformulationSettings)
    """Alternate wordings of a question."""
    scope_scoring: dict[Scope, ScoringSettings] = Field(default_factory=dict)
    """Scoring of requests for exactly one scope; an entry is whole and takes nothing from ``scoring``."""
    query_intent_order: Literal["entity_first", "temporal_first"] = "entity_first"
    """Which intents are tried first (RFC §3)."""
    temporal_languages: tuple[_Language, ...] = ("en",)
    """Languages dates are parsed in; empty: detect."""
    unverified_confidence_threshold: _Unit = 0.30
    """DEFAULT mode drops unverified memories up to this stored confidence."""
    epistemic_weights: dict[EpistemicType, _Unit] = Field(default_factory=lambda: dict(EPISTEMIC_WEIGHTS))
    """Weight an epistemic type, for results and for hints (decision 11)."""
    confidence_overrides: dict[str, _Unit] = Field(default_factory=dict)
    """Cells "epistemic:source" of the initial-confidence matrix."""
    embedding_mismatch_policy: Literal["fallback", "reject"] = "fallback"
    """Stored vectors of another encoder: answer without the vector channel, or refuse (decision 13)."""
    disabled_channels: tuple[_Channel, ...] = ()
    """Channels switched off by policy."""
    scope_disabled_channels: dict[Scope, tuple[_Channel, ...]] = Field(default_factory=dict)
    """The same for one scope: whatever a request asks for, these channels find nothing in it."""
    link_entities: bool = True
    """Plain store adds names and sessions to the graph."""
    log_retrievals: bool = True
    """Append a RETRIEVAL_REQUEST record for every request (RFC §10)."""
    strict_receipts: bool = False
    """Answer only when the record is durable, and fail where it cannot be (decision 23)."""
    encoder: EncoderSettings = Field(default_factory=EncoderSettings)
    """The built-in encoder."""
    storage: StorageSettings = Field(default_factory=StorageSettings)
    """Files, memory and maintenance."""
    cluster: ClusterSettings = Field(default_factory=ClusterSettings)
    """Actors, where the flow runs on Ray."""

    @field_validator("scope_scoring", mode="before")
    @classmethod
    def _scope_by_scope(cls, value: Any) -> Any:
        # Parsed one by one, so that an error names its scope.
        if not isinstance(value, Mapping):
            return value
        return {
            scope: inner
            if isinstance(inner, ScoringSettings)
            else ScoringSettings.parse(inner, at=f"scope_scoring.{scope}")
            for scope, inner in value.items()
        }

    @model_validator(mode="after")
    def _strict_needs_records(self) -> Settings:
        if self.strict_receipts and not self.log_retrievals:
            raise InvalidSettings(
                argument="strict_receipts", given=True, allowed="False, or log_retrievals=True: nothing is recorded"
            )
        return self

    @field_validator("disabled_channels")
    @classmethod
    def _each_channel_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(set(value)))

    @field_validator("scope_disabled_channels")
    @classmethod
    def _each_channel_of_a_scope_once(cls, value: dict[Scope, tuple[str, ...]]) -> dict[Scope, tuple[str, ...]]:
        return {scope: tuple(sorted(set(channels))) for scope, channels in value.items()}

    @field_validator("confidence_overrides")
    @classmethod
    def _known_cells(cls, value: dict[str, float]) -> dict[str, float]:
        for key, confidence in value.items():
            epistemic, _, source = key.partition(":")
            if epistemic not in list(EpistemicType) or source not in list(SourceType):
                raise InvalidSettings(
                    argument=f"confidence_overrides.{key}",
                    given=confidence,
                    allowed="keys such as 'asserted:user_stated' (epistemic type, colon, source type)",
                )
        return value

    def scoring_for(self, scopes: Collection[Scope] | None) -> ScoringSettings:
        """Return the scoring settings of a request for these scopes; ``None``: all of them."""
        if scopes is None or len(scopes) != 1:
            return self.scoring
        return self.scope_scoring.get(next(iter(scopes)), self.scoring)

    def closed_scopes(self) -> dict[str, frozenset[Scope]]:
        """Return, for each channel that may not search everywhere, the scopes closed to it."""
        channels = {channel for channels in self.scope_disabled_channels.values() for channel in channels}
        return {
            channel: frozenset(scope for scope, off in self.scope_disabled_channels.items() if channel in off)
            for channel in sorted(channels)
        }

    def canonical(self) -> str:
        """Return every setting that can change an answer, as JSON with sorted keys."""
        payload = self.model_dump(mode="json", exclude=NOT_IN_FINGERPRINT)
        return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def fingerprint(self) -> str:
        """Return 64 hex digits over every setting that can change an answer."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()
