"""A pure step of the flow in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.whereabouts import whereabouts

__all__ = ["StageActor"]


class StageActor:
    """Computes what it is handed.

    Args:
        compute: Returns the packed result of a packed step and its inputs.
    """

    def __init__(self, compute: Callable[[bytes], bytes]) -> None:
        self._compute = compute

    def ready(self) -> dict[str, Any]:
        """Return which process this is, and on which node."""
        return whereabouts()

    def compute(self, asked: bytes) -> bytes:
        """Return the packed result."""
        return self._compute(asked)
