"""Which parts of an owner a process keeps in memory: a channel's own, or all of them."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ALL_PARTS", "Part"]


class Part(StrEnum):
    """A part of an owner's state.

    What decides whom a request may see (scope, state, validity) is no part: every process has it,
    so every channel filters inside its own index.
    """

    RECORDS = "records"
    """Every column of the memories; without it only their ids are kept."""
    VECTORS = "vectors"
    TEXT = "text"
    EDGES = "edges"


ALL_PARTS: frozenset[Part] = frozenset(Part)
