"""Shared behaviour of the settings models."""

from __future__ import annotations

import difflib
import math
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

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
    """A frozen group of settings; unknown keys are refused and the nearest valid key is named.

    Whatever is wrong is an :class:`InvalidSettings` that names the path, such as ``packing.vector_k``,
    also when a group is built directly.
    """

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

    @field_validator("*", mode="wrap")
    @classmethod
    def _name_the_path(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        name = str(info.field_name)
        try:
            found = handler(value)
        except InvalidSettings as error:
            raise _inside(error, name) from None
        except ValidationError as error:
            raise _refused(error, name) from None
        # pydantic would read True as 1 and "yes" as true: more likely a slip than a wish.
        if any(isinstance(value, kind) != isinstance(found, kind) for kind in (bool, str)):
            raise InvalidSettings(argument=name, given=value, allowed=f"a value of type {type(found).__name__}")
        return found

    @classmethod
    def parse(cls, data: Any, *, at: str = "") -> Self:
        """Return settings from a mapping.

        Args:
            data: Field by field; what it leaves out is the product default.
            at: Path of ``data`` itself, for messages.

        Raises:
            InvalidSettings: naming the first key that is wrong.
        """
        try:
            return cls.model_validate(data)
        except InvalidSettings as error:
            raise _inside(error, at) from None
        except ValidationError as error:
            raise _refused(error, at) from None

    def checked(self, *, at: str = "") -> Self:
        """Return these settings validated again: ``model_copy`` and ``model_construct`` check nothing.

        Raises:
            InvalidSettings: naming the first key that is wrong.
        """
        return self.parse(self.model_dump(warnings=False), at=at)


def _inside(error: InvalidSettings, where: str) -> InvalidSettings:
    fields = dict(error.fields)
    return InvalidSettings(**fields | {"argument": ".".join(filter(None, (where, fields["argument"])))})


def _refused(error: ValidationError, where: str) -> InvalidSettings:
    first = error.errors(include_url=False)[0]
    # "[key]" is how pydantic says that the key of a map, and not its value, is wrong.
    path = [where, *(str(part) for part in first["loc"] if part != "[key]")]
    message = first["msg"]
    rest = message.removeprefix("Input should be ")
    allowed = f"a value that is {rest}" if rest != message else f"another value: {message}"
    return InvalidSettings(argument=".".join(filter(None, path)) or "settings", given=first["input"], allowed=allowed)
