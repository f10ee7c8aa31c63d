"""Rendered lines: one, those of a table's rows, and those known of an array of memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["KnownLines", "Line", "Lines"]

_UNKNOWN = -1


class Line(NamedTuple):
    """One rendered record.

    Attributes:
        text: The line, without its line break.
        tokens: Tokens of the line with its line break.
        last: Tokens of the line without one, as it stands at the end of a context.
        speaker: It shows a reader speaker.
        blank: The memory's content is blank after trimming.
    """

    text: str
    tokens: int
    last: int
    speaker: bool
    blank: bool


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of n rows: one is read by its row number, what all cost are arrays.

    Attributes:
        tokens: Tokens of each line with its line break, shape (n,).
        blank: Whether each memory's content is blank, shape (n,).
        saved: Tokens that each line saves where it stands last, without its break, shape (n,).
    """

    _pool: Sequence[Line | None]
    _places: list[int]
    tokens: npt.NDArray[np.int64]
    blank: npt.NDArray[np.bool_]
    saved: npt.NDArray[np.int64]
    _starts: Sequence[str] | None = None

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Lines:
        """Return these lines, one a row."""
        tokens = np.array([line.tokens for line in lines], np.int64)
        blank = np.array([line.blank for line in lines], np.bool_)
        saved = np.array([line.tokens - line.last for line in lines], np.int64)
        return cls(lines, list(range(len(lines))), tokens, blank, saved)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Line]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, row: int) -> Line:
        line: Line = self._pool[self._places[row]]  # type: ignore[assignment]
        if self._starts is None:
            return line
        tokens = int(self.tokens[row])
        return Line(self._starts[row] + line.text, tokens, tokens - line.tokens + line.last, line.speaker, line.blank)

    def after(self, starts: Sequence[str], tokens: npt.NDArray[np.int64]) -> Lines:
        """Return these lines, each behind a start of its own; a text is put together when it is read.

        Args:
            starts: Start of each line.
            tokens: Tokens of each start, which must be what the line grows by, shape (n,).
        """
        return replace(self, tokens=self.tokens + tokens, _starts=starts)


class KnownLines:
    """Lines of an array of memories, filled in as they are rendered. Safe to share between threads.

    Args:
        size: Number of memories.
    """

    def __init__(self, size: int) -> None:
        self._lines: list[Line | None] = [None] * size
        self._tokens = np.full(size, _UNKNOWN, np.int64)
        self._blank = np.zeros(size, np.bool_)
        self._saved = np.zeros(size, np.int64)

    def missing(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """Return the places in ``rows`` of memories whose line is not known."""
        return np.flatnonzero(self._tokens[rows] == _UNKNOWN)

    def put(self, row: int, line: Line) -> None:
        """Keep the line of a memory."""
        # The token count comes last: whoever sees it finds the rest.
        self._lines[row] = line
        self._blank[row] = line.blank
        self._saved[row] = line.tokens - line.last
        self._tokens[row] = line.tokens

    def at(self, rows: npt.NDArray[Any]) -> Lines:
        """Return the lines of these memories; all of them must be known."""
        return Lines(self._lines, rows.tolist(), self._tokens[rows], self._blank[rows], self._saved[rows])
