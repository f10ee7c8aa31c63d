"""Writes the table of settings: ``python -m jobs.settings_table [--output FILE] [--check]``.

Everything but the introduction comes from the settings models: names, defaults, limits, sentences.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from prme_ray.model.settings import NOT_IN_FINGERPRINT, Settings
from prme_ray.model.settings.walk import Knob, group_of, knobs
from prme_ray.settings_io import ALIASES, variable_name

__all__ = ["main", "settings_table"]

_OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "settings.md"


def _left_out() -> list[str]:
    found: list[str] = []
    for name, part in NOT_IN_FINGERPRINT.items():
        found += [name] if part is True else [f"{name}.{inner}" for inner in sorted(part)]
    return found


def _aliases() -> str:
    pairs = (f"`{name}` is a second name of `{variable_name(path)}`" for name, path in ALIASES.items())
    return f"{'; '.join(pairs)}."


_INTRODUCTION = f"""\
# Settings

Written by `python -m jobs.settings_table`; change the models in `prme_ray/model/settings` and run it again.

`Settings()` is the product default everywhere: in code, in files and in the environment. Each source
changes only what it names.

* **In code**: `Memory.open(path, settings={{"packing": {{"token_budget": 1024}}}})`, or a `Settings` object.
  The environment is not read.
* **From outside**: `load_settings(file=..., environ=..., overrides=...)`. The later one wins: file, then
  environment, then overrides. The jobs do this; `--settings FILE` names their file.
* **File**: TOML or JSON with the names below, one table or object a group. TOML has no `null`; where a
  setting is to be empty, use JSON or the environment.
* **Environment**: the one name in the table. Text is taken as it is; numbers, `true` and `false`, lists
  and maps are JSON, and `null` is JSON where a setting may be empty. Lists and maps are given whole. An
  empty value is refused: unset the variable to keep the default.

An unknown key, or an unknown variable with the prefix `PRME_`, is refused: the error `InvalidSettings` names
it and the nearest known one. {_aliases()}

`scope_scoring` gives a scope its own score: a request for exactly that one scope uses its entry, every
other request uses `scoring`, and the `weights` of a request win over both. An entry is whole: what it
leaves out is the product default, not the value in `scoring`.

`Settings.fingerprint()` covers every setting that can change an answer. Left out, because they only change
where and how fast an answer is made: {", ".join(f"`{name}`" for name in _left_out())}.
"""
_KINDS = {"boolean": "`true` or `false`", "string": "text", "integer": "whole number", "number": "number"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table, or with ``--check`` say whether the file is up to date; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m jobs.settings_table", description="Write the table of settings.")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="file to write; docs/settings.md when left out")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the file is out of date")
    options = parser.parse_args(arguments)
    text = settings_table()
    if options.check:
        current = options.output.exists() and options.output.read_text("utf-8") == text
        print(f"{options.output}: {'up to date' if current else 'out of date: run python -m jobs.settings_table'}")
        return 0 if current else 1
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, "utf-8")
    print(f"{options.output}: {len(knobs())} settings")
    return 0


def settings_table() -> str:
    """Return the page in Markdown: an introduction, then one table a group."""
    parts = [_INTRODUCTION]
    ordered = sorted(knobs(), key=lambda knob: len(knob.path) > 1)  # single settings first, groups in tree order
    for prefix, members in groupby(ordered, key=lambda knob: knob.path[:-1]):
        parts.append(_group(prefix, list(members)))
    return "\n".join(parts)


def _group(prefix: tuple[str, ...], members: Sequence[Knob]) -> str:
    kind: Any = Settings
    for name in prefix:
        kind = group_of(kind, name)
    title = f"`{'.'.join(prefix)}`" if prefix else "Top level"
    about = "Settings outside any group." if kind is Settings else " ".join((kind.__doc__ or "").split())
    rows = [
        f"| `{knob.path[-1]}` | {_code(knob.default)} | {_allowed(knob.schema)} | {_cell(knob.meaning)} "
        f"| `{variable_name(knob.path)}` |"
        for knob in members
    ]
    head = ["| Setting | Default | Allowed | Meaning | Variable |", "|---|---|---|---|---|"]
    return "\n".join([f"## {title}\n", f"{_cell(about)}\n", *head, *rows, ""])


def _allowed(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_allowed(option) for option in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{choice}`" for choice in schema.get("enum", [schema.get("const")]))
    kind = schema["type"]
    if kind == "null":
        return "`null`"
    if kind == "array":
        return f"list of {_allowed(schema['items'])}"
    if kind == "object":
        return _map(schema)
    limits = _limits(schema)
    return f"{_KINDS[kind]}{limits and ' '}{limits}"


def _map(schema: Mapping[str, Any]) -> str:
    if "properties" in schema:
        return f"{schema['title']}"
    keys = _allowed(schema["propertyNames"]) if "propertyNames" in schema else "text"
    return f"map; keys: {keys}; values: {_allowed(schema['additionalProperties'])}"


def _limits(schema: Mapping[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, pattern = schema.get("maximum"), schema.get("pattern")
    if pattern is not None:
        return f"like {_code(pattern)}"
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    words = [f"of at least {low:g}"] if low is not None else []
    words += [f"above {above:g}"] if above is not None else []
    words += [f"up to {high:g}"] if high is not None else []
    return ", ".join(words)


def _code(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    # References to the specification mean nothing to readers of the page; reStructuredText code
    # becomes Markdown code; a bar would end the cell.
    text = re.sub(r" \([^()]*\b(?:decision|digest) [^()]*\)", "", text)
    return re.sub(r"(?::\w+:)?`+([^`]+)`+", r"`\1`", text).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
