"""The settings tree. ``Settings()`` is the product default everywhere (decision 2)."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from prme_ray.model.enums import EpistemicType, SourceType
from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings.base import SettingsModel
from prme_ray.model.settings.packing import PackingSettings
from prme_ray.model.settings.runtime import EncoderSettings, StorageSettings
from prme_ray.model.settings.scoring import EPISTEMIC_WEIGHTS, ScoringSettings

__all__ = ["EPISTEMIC_WEIGHTS", "EncoderSettings", "PackingSettings", "ScoringSettings", "Settings", "StorageSettings"]

_Unit = Annotated[float, Field(ge=0, le=1)]

# Left out of the fingerprint: they change where and how fast an answer is made, never the answer.
# A model file is known by its SHA-256, not by its path.
_NOT_IN_FINGERPRINT: dict[str, Any] = {
    "storage": True,
    "log_retrievals": True,
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
    query_intent_order: Literal["entity_first", "temporal_first"] = "entity_first"
    """Which intents are tried first (RFC §3)."""
    temporal_languages: tuple[str, ...] = ("en",)
    """Languages dates are parsed in; empty: detect."""
    unverified_confidence_threshold: _Unit = 0.30
    """DEFAULT mode drops unverified memories up to this stored confidence."""
    epistemic_weights: dict[EpistemicType, _Unit] = Field(default_factory=lambda: dict(EPISTEMIC_WEIGHTS))
    """Weight an epistemic type, for results and for hints (decision 11)."""
    confidence_overrides: dict[str, _Unit] = Field(default_factory=dict)
    """Cells "epistemic:source" of the initial-confidence matrix."""
    embedding_mismatch_policy: Literal["fallback", "reject"] = "fallback"
    """Stored vectors of another encoder: answer without the vector channel, or refuse (decision 13)."""
    disabled_channels: tuple[Literal["GRAPH", "VECTOR", "LEXICAL", "PINNED"], ...] = ()
    """Channels switched off by policy."""
    link_entities: bool = True
    """Plain store adds names and sessions to the graph."""
    log_retrievals: bool = True
    """Append a RETRIEVAL_REQUEST record for every request (RFC §10)."""
    encoder: EncoderSettings = Field(default_factory=EncoderSettings)
    """The built-in encoder."""
    storage: StorageSettings = Field(default_factory=StorageSettings)
    """Files, memory and maintenance."""

    @field_validator("confidence_overrides")
    @classmethod
    def _known_cells(cls, value: dict[str, float]) -> dict[str, float]:
        for key in value:
            epistemic, _, source = key.partition(":")
            if epistemic not in list(EpistemicType) or source not in list(SourceType):
                raise InvalidSettings(
                    argument="confidence_overrides",
                    given=key,
                    allowed="keys such as 'asserted:user_stated' (epistemic type, colon, source type)",
                )
        return value

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Settings:
        """Return settings from a mapping.

        Raises:
            InvalidSettings: naming the first key that is wrong.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "settings"
            raise InvalidSettings(argument=where, given=first["input"], allowed=_allowed(first["msg"])) from None

    def fingerprint(self) -> str:
        """Return 64 hex digits over every setting that can change an answer."""
        payload = self.model_dump(mode="json", exclude=_NOT_IN_FINGERPRINT)
        canonical = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


def _allowed(message: str) -> str:
    rest = message.removeprefix("Input should be ")
    return f"a value that is {rest}" if rest != message else f"another value: {message}"
