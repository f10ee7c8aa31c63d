"""Word lists written as running text, which stays readable where a list of literals would not."""

from __future__ import annotations

__all__ = ["words"]


def words(text: str) -> frozenset[str]:
    """Return the set of the words of ``text``, which are separated by white space."""
    return frozenset(text.split())
