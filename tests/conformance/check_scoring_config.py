"""Scoring settings against the golden vectors.

Golden settings are partial over the reference's bare-class defaults (weighted, no rank-fusion
terms); ours default to the product's (decision 2), so the class defaults are filled in here.
"""

from __future__ import annotations

import warnings
from typing import Any

from pydantic import ValidationError

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings import ScoringSettings

_CLASS_DEFAULTS = {"fusion": "weighted", "rrf_k": None, "rrf_recency_boost": None, "rrf_tie_break": None}


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Return whether the settings are valid, and all of them if so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stray settings of the other formula are dropped with a warning
        try:
            settings = ScoringSettings.model_validate({**_CLASS_DEFAULTS, **case["given"]["settings"]})
        except (InvalidSettings, ValidationError):
            return {"valid": False}
    return {"valid": True, "resolved": settings.model_dump(mode="json")}
