"""A bounded cache of rendered lines; the caller owns it and hands it to the packing stage."""

from __future__ import annotations

from typing import Any

from stages.known_rows import KnownRows
from stages.lines import Line

__all__ = ["LineCache"]


class LineCache(dict[Any, Line]):
    """Keeps lines in two generations, so that a hit is a plain dictionary look-up.

    The dictionary itself is the young generation. When it holds half of a limit it becomes the old one
    and the old one is dropped; a line asked for by ``cache[key]`` that is found in the old generation
    moves back. Lines in use thus survive. Write with ``cache[key] = line`` only. Safe to share between
    threads: a race can only lose an entry, which is then rendered again.
    """

    def __init__(self, entries: int = 50_000, *, characters: int = 64 << 20) -> None:
        """Make an empty cache.

        Args:
            entries: Most lines kept.
            characters: Most characters of line text kept; a line longer than half of it is not kept.
        """
        super().__init__()
        self._entries = max(1, entries // 2)
        self._characters = characters // 2
        self._old: dict[Any, Line] = {}
        self.known = KnownRows()
        """Lines by row of the memories that requests keep asking about."""
        self.starts: dict[tuple[str, str], dict[str, tuple[str, int]]] = {}
        """Encoding and format -> reference -> how a line with it starts, and what that costs."""
        self._size = 0

    def __missing__(self, key: Any) -> Line:
        line = self._old.get(key)
        if line is None:
            raise KeyError(key)
        self[key] = line
        return line

    def __setitem__(self, key: Any, line: Line) -> None:
        size = len(line.text)
        if size > self._characters:
            return
        if self._size + size > self._characters or len(self) >= self._entries:
            self._old, self._size = dict(self), 0
            self.clear()
        replaced = self.get(key)
        super().__setitem__(key, line)
        self._size += size - (0 if replaced is None else len(replaced.text))
