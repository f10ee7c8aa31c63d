"""Numbers and JSON values of callers, checked so that whatever is accepted can be read back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from prme_ray.model.errors import InvalidRequest
from prme_ray.model.text import check_text

__all__ = ["JSON_DEPTH", "is_number", "json_object"]

JSON_DEPTH = 64
"""Deepest nesting of a caller's JSON values; readers of JSON give up at about 200."""
_INTEGER_BITS = 1024
_LARGEST = sys.float_info.max


def is_number(value: Any, low: float, high: float = _LARGEST) -> bool:
    """Return whether ``value`` is a finite number from ``low`` to ``high``; a bool is none."""
    # Compared, never converted: an int may be too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= min(high, _LARGEST)


def json_object(value: Any, argument: str, item: int | None = None) -> dict[str, Any]:
    """Return a deep copy of a caller's mapping, of plain JSON types.

    Args:
        value: A mapping of JSON values. Tuples count as lists.
        argument: Name of the argument, for messages.
        item: Its position in a ``store_many``.

    Raises:
        InvalidText: a text or a key has NUL or a lone surrogate, or a key is no text.
        InvalidRequest: not a mapping, not JSON, not finite, or nested deeper than :data:`JSON_DEPTH`.
    """
    if not isinstance(value, Mapping):
        raise InvalidRequest(argument=argument, given=type(value).__name__, allowed="a mapping of JSON values")
    return {_key(key, argument, item): _plain(inner, argument, item, JSON_DEPTH) for key, inner in value.items()}


def _key(value: Any, argument: str, item: int | None) -> str:
    return str.__str__(check_text(value, f"{argument} key", item))


def _plain(value: Any, argument: str, item: int | None, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(check_text(value, argument, item))
    if isinstance(value, int) and value.bit_length() <= _INTEGER_BITS:
        return int(value)
    if isinstance(value, float) and is_number(value, -_LARGEST):
        return float(value)
    if isinstance(value, dict | list | tuple):
        if depth == 0:
            raise InvalidRequest(argument=argument, given="deeper nesting", allowed=f"up to {JSON_DEPTH} levels")
        if isinstance(value, dict):
            return {_key(key, argument, item): _plain(inner, argument, item, depth - 1) for key, inner in value.items()}
        return [_plain(inner, argument, item, depth - 1) for inner in value]
    raise InvalidRequest(
        argument=argument,
        given=f"{value!r:.40}" if isinstance(value, float) else type(value).__name__,
        allowed="JSON values only: text, finite numbers of up to 1024 bits, true, false, none, lists and mappings",
    )
