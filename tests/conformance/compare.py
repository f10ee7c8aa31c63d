"""Compares what a stage gave with what a golden case expects."""

from __future__ import annotations

from typing import Any

TOLERANCE = 1e-12
_BY_ID = frozenset(
    {".levels", ".entry_costs", ".relevance", ".candidates_generated", ".backend_failures", ".ranking", ".scores"}
)
"""Mappings whose keys are data, ids and paths: a key too many is as wrong as one that is missing."""


def difference(actual: Any, expected: Any, where: str = "") -> str | None:  # noqa: PLR0911 - one return a kind of value
    """Return the first difference as text, or ``None``.

    Numbers agree within 1e-12. Fields of ``actual`` that the case does not expect are ignored.
    """
    if isinstance(expected, bool) or isinstance(actual, bool) or expected is None or actual is None:
        return None if actual is expected or actual == expected else f"{where}: got {actual!r}, expected {expected!r}"
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        same = abs(actual - expected) <= TOLERANCE
        return None if same else f"{where}: got {actual!r}, expected {expected!r}"
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected:
            if key not in actual:
                return f"{where}.{key}: missing"
            found = difference(actual[key], expected[key], f"{where}.{key}")
            if found:
                return found
        further = sorted(actual.keys() - expected.keys()) if where in _BY_ID else []
        return f"{where}: {further} not expected" if further else None
    if isinstance(expected, list) and isinstance(actual, list | tuple):
        for position, (one, other) in enumerate(zip(actual, expected, strict=False)):
            found = difference(one, other, f"{where}[{position}]")
            if found:
                return found
        if len(actual) != len(expected):
            return f"{where}: {len(actual)} items, expected {len(expected)}"
        return None
    return None if actual == expected else f"{where}: got {actual!r}, expected {expected!r}"
