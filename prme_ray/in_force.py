"""The settings a request is answered with, and what is worked out from them once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from prme_ray.model.settings import Settings
from prme_ray.model.settings.scoring import ScoringSettings
from prme_ray.steps.values import Tools
from prme_ray.tokens import counter
from stages.line_cache import LineCache

__all__ = ["InForce", "in_force", "scoring_version"]


@dataclass(frozen=True, slots=True)
class InForce:
    """Settings in force.

    Attributes:
        settings: The settings.
        canonical: Those of them that can change an answer, as JSON text.
        fingerprint: SHA-256 of that text.
        scoring_version: That of ``settings.scoring``.
        disabled: Channels that are off.
        tools: Token counter and cache of lines.
    """

    settings: Settings
    canonical: str
    fingerprint: str
    scoring_version: str
    disabled: frozenset[str]
    tools: Tools

    def version_of(self, scoring: ScoringSettings) -> str:
        """Return the version of a request's scoring settings."""
        return self.scoring_version if scoring is self.settings.scoring else scoring_version(scoring)


def in_force(settings: Settings) -> InForce:
    """Return settings with what follows from them.

    Raises:
        TokenizerUnavailable: the token encoding cannot be loaded offline.
    """
    canonical = settings.canonical()
    return InForce(
        settings=settings,
        canonical=canonical,
        fingerprint=hashlib.sha256(canonical.encode()).hexdigest(),
        scoring_version=scoring_version(settings.scoring),
        disabled=frozenset(settings.disabled_channels),
        tools=Tools(counter(settings.packing.tokenizer), LineCache()),
    )


def scoring_version(scoring: ScoringSettings) -> str:
    """Return 12 hex digits over every scoring value in a fixed order (digest a §6.1)."""
    text = json.dumps(scoring.model_dump(mode="json"), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
