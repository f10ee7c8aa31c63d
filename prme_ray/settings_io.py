"""Settings from a file, from the environment and from code (decisions 2 and 3).

``Settings()`` is the product default everywhere; each source changes only what it names, and the
later one wins: file, then environment, then overrides. Nothing here runs on import, and
``Memory.open`` never reads the environment: a program that wants it calls :func:`load_settings`.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings import Settings
from prme_ray.model.settings.walk import FieldPath, Knob, flatten, knobs

__all__ = ["ALIASES", "PREFIX", "load_settings", "variable_name"]

PREFIX = "PRME_"
"""Every variable that begins so is ours, and is refused when it names no setting."""
ALIASES: Mapping[str, FieldPath] = {"PRME_DATABASE_URL": ("storage", "database_url")}
"""Second names of settings, where operators expect them."""


def load_settings(
    *,
    environ: Mapping[str, str] | None = None,
    file: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the product default, changed by a file, then the environment, then ``overrides``.

    Args:
        environ: Environment; that of the process when left out, ``{}`` for none. A setting has one
            name: ``PRME_`` and its path in upper case, joined by two underscores
            (``PRME_SCORING__FUSION``); ``storage.database_url`` is also ``PRME_DATABASE_URL``. Text is
            taken as it is; numbers, true and false, lists and maps are JSON, and ``null`` is JSON where
            a setting may be left empty. A list or a map is given whole. An empty value is refused:
            unset the variable to keep the default.
        file: TOML or JSON file, by its suffix, with the fields of :class:`Settings`.
        overrides: Nested mapping of fields, such as options of a command line.

    Raises:
        InvalidSettings: naming the variable, the path in the file or the key that is wrong.

    Example:
        >>> settings = load_settings(environ={"PRME_PACKING__VECTOR_K": "50"}, overrides={"link_entities": False})
        >>> settings.packing.vector_k, settings.packing.lexical_k, settings.link_entities
        (50, 500, False)
    """
    values: dict[FieldPath, Any] = {}
    spelled: dict[FieldPath, str] = {}
    if file is not None:
        given = _from_file(Path(file))
        values |= given
        spelled |= {path: f"{file}: {'.'.join(path)}" for path in given}
    variables = _from_environment(os.environ if environ is None else environ)
    values |= {knob.path: value for _, knob, value in variables}
    spelled |= {knob.path: name for name, knob, _ in variables}
    if overrides is not None:
        if not isinstance(overrides, Mapping):
            raise InvalidSettings(argument="overrides", given=overrides, allowed="a mapping of settings")
        given = flatten(overrides)
        values |= given
        spelled |= {path: ".".join(path) for path in given}
    try:
        return Settings.parse(_nested(values))
    except InvalidSettings as error:
        raise _renamed(error, spelled) from None


def variable_name(path: FieldPath) -> str:
    """Return the one name a setting has in the environment.

    Example:
        >>> variable_name(("packing", "vector_k"))
        'PRME_PACKING__VECTOR_K'
    """
    return PREFIX + "__".join(path).upper()


def _from_environment(environ: Mapping[str, str]) -> list[tuple[str, Knob, Any]]:
    by_path = {knob.path: knob for knob in knobs()}
    named = {variable_name(path): knob for path, knob in by_path.items()}
    named |= {name: by_path[path] for name, path in ALIASES.items()}
    found: list[tuple[str, Knob, Any]] = []
    for name in sorted(environ):
        if not name.startswith(PREFIX):
            continue
        if name not in named:
            members = [known for known in named if known.startswith(f"{name}__")]
            near = difflib.get_close_matches(name.upper(), members or named, 1, cutoff=0.0)[0]
            # The value stays out of the message: a variable meant for something else may be a secret.
            raise InvalidSettings(argument=name, given="…", allowed=f"a known variable, such as {near}, or unset it")
        knob, twin = named[name], variable_name(named[name].path)
        if name in ALIASES and environ.get(twin, environ[name]) != environ[name]:
            raise InvalidSettings(argument=name, given="…", allowed=f"the same as {twin}, or only one of the two")
        found.append((name, knob, _value(name, environ[name], knob)))
    return found


def _value(name: str, text: str, knob: Knob) -> Any:
    if not text:
        raise InvalidSettings(argument=name, given=text, allowed="a value, or unset it to keep the default")
    kinds = {option.get("type") for option in knob.schema.get("anyOf", [knob.schema])}
    if "string" in kinds and not ("null" in kinds and text == "null"):
        return text
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        example = json.dumps(knob.default, ensure_ascii=False)
        raise InvalidSettings(argument=name, given=text, allowed=f"JSON, such as {example}") from None


def _from_file(path: Path) -> dict[FieldPath, Any]:
    data = _read(path)
    try:
        return flatten(data)
    except InvalidSettings as error:
        raise InvalidSettings(**error.fields | {"argument": f"{path}: {error.argument}"}) from None


def _read(path: Path) -> dict[str, Any]:
    readers: dict[str, Callable[[str], Any]] = {
        ".toml": tomllib.loads,
        ".json": lambda text: json.loads(text, object_pairs_hook=_without_repeats),
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InvalidSettings(argument="file", given=str(path), allowed="a file named *.toml or *.json")
    try:
        data = reader(path.read_text("utf-8"))
    except OSError as error:
        allowed = f"a file that can be read ({error.strerror})"
        raise InvalidSettings(argument="file", given=str(path), allowed=allowed) from error
    except (ValueError, RecursionError) as error:
        allowed = f"valid {path.suffix[1:].upper()} in UTF-8 ({error})"
        raise InvalidSettings(argument="file", given=str(path), allowed=allowed) from error
    if not isinstance(data, dict):
        raise InvalidSettings(argument="file", given=str(path), allowed="one JSON object with the fields of Settings")
    return data


def _without_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands there twice")
        found[key] = value
    return found


def _nested(values: Mapping[FieldPath, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in values.items():
        group = tree
        for name in path[:-1]:
            group = group.setdefault(name, {})
        group[path[-1]] = value
    return tree


def _renamed(error: InvalidSettings, spelled: Mapping[FieldPath, str]) -> InvalidSettings:
    # "packing.vector_k" becomes the variable, or the place in the file, that it was given in.
    for path, name in spelled.items():
        dotted = ".".join(path)
        rest = error.argument[len(dotted) :]
        if error.argument.startswith(dotted) and (not rest or rest[0] in ".["):
            return InvalidSettings(**error.fields | {"argument": name + rest})
    return error
