"""Every single setting of the tree, flat: for names of variables, for the table and for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings import Settings
from prme_ray.model.settings.base import SettingsModel

__all__ = ["FieldPath", "Knob", "flatten", "group_of", "knobs"]

FieldPath = tuple[str, ...]
"""Field names from the root, such as ``("packing", "vector_k")``."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting that is no group.

    Attributes:
        path: Field names from the root.
        schema: JSON schema of its value, references resolved one level deep.
        default: Value in ``Settings()``.
        meaning: Its sentence.
    """

    path: FieldPath
    schema: Mapping[str, Any]
    default: Any
    meaning: str

    @property
    def dotted(self) -> str:
        """Path as messages spell it: ``packing.vector_k``."""
        return ".".join(self.path)


def group_of(model: type[SettingsModel], name: str) -> type[SettingsModel] | None:
    """Return the group that field ``name`` of ``model`` is, or ``None`` for a single setting or no field."""
    field = model.model_fields.get(name)
    kind = None if field is None else field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, SettingsModel) else None


@cache
def knobs() -> tuple[Knob, ...]:
    """Return every setting, in the order of the tree."""
    return tuple(_walk(Settings(), ()))


def _walk(settings: SettingsModel, prefix: FieldPath) -> Iterator[Knob]:
    model = type(settings)
    schema = model.model_json_schema()
    for name, field in model.model_fields.items():
        value, path = getattr(settings, name), (*prefix, name)
        if isinstance(value, SettingsModel):
            yield from _walk(value, path)
        else:
            resolved = _resolved(schema["properties"][name], schema.get("$defs", {}))
            yield Knob(path, resolved, value, " ".join((field.description or "").split()))


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_resolved(inner, definitions) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return definitions[schema["$ref"].rpartition("/")[2]]
    return {key: _resolved(inner, definitions) for key, inner in schema.items()}


def flatten(
    data: Mapping[str, Any], model: type[SettingsModel] = Settings, prefix: FieldPath = ()
) -> dict[FieldPath, Any]:
    """Return what a nested mapping sets, by path; unknown names stay and are refused by ``Settings.parse``.

    Raises:
        InvalidSettings: a group is given something other than a mapping of its fields.
    """
    found: dict[FieldPath, Any] = {}
    for name, value in data.items():
        path = (*prefix, str(name))
        group = group_of(model, str(name))
        if group is None:
            found[path] = value
        elif isinstance(value, SettingsModel | Mapping):
            # A group given as an object is whole: it replaces every field.
            inner = value.model_dump() if isinstance(value, SettingsModel) else value
            found |= flatten(inner, group, path)
        else:
            raise InvalidSettings(argument=".".join(path), given=value, allowed="a mapping of its fields")
    return found
