"""Shared behaviour of the settings models."""

from __future__ import annotations

import difflib
import math
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from prme_ray.model.errors import InvalidSettings

__all__ = ["SettingsModel", "finite"]


def finite(value: Any, where: str) -> None:
    """Refuse NaN and infinity anywhere inside ``value``.

    Raises:
        InvalidSettings: naming the path of the offending number.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidSettings(argument=where, given=value, allowed="a finite number")
    if isinstance(value, dict):
        for key, inner in value.items():
            finite(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            finite(inner, f"{where}[{position}]")


class SettingsModel(BaseModel):
    """A frozen group of settings; unknown keys are refused and the nearest valid key is named."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _known_finite_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        for key in data:
            if key not in cls.model_fields:
                near = difflib.get_close_matches(str(key), cls.model_fields, 1) or sorted(cls.model_fields)
                raise InvalidSettings(argument=str(key), given=data[key], allowed=f"a known key, such as {near[0]!r}")
        finite(data, "")
        return data
