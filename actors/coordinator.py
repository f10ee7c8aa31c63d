"""A memory inside the cluster, for processes that are connected to the cluster but do not see the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.whereabouts import whereabouts

__all__ = ["CoordinatorActor"]


class CoordinatorActor:
    """Passes verbs on.

    Args:
        memory: Opens the memory.
        encode: Makes the bytes that travel of what ``retrieve`` gives; memory texts are sent once.
    """

    def __init__(self, memory: Callable[[], Any], encode: Callable[[Any], bytes]) -> None:
        self._memory = memory()
        self._encode = encode

    def ready(self) -> dict[str, Any]:
        """Return which process this is, and on which node."""
        return whereabouts()

    def retrieve(self, query: str, arguments: dict[str, Any]) -> bytes:
        """Return the encoded answer; errors as the memory's."""
        return self._encode(self._memory.retrieve(query, **arguments))

    def call(self, verb: str, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return what another verb of the memory gives; errors as the memory's."""
        return getattr(self._memory, verb)(*positional, **named)
