"""The greedy loop of packing: try records in order, keep what fits (digest b §1.7, §1.9)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stages.costs import LineCosts
from stages.fold import Folding
from stages.layout import SLACK, Layout
from stages.lines import Lines

__all__ = ["Ladder", "fill"]


class Ladder:
    """Every row's lines at the allowed levels; levels below full are rendered when first needed.

    Attributes:
        levels: Allowed levels, richest first.
        full: Lines at the richest level.
    """

    def __init__(
        self, table: pa.Table, costs: LineCosts, *, levels: tuple[str, ...], references: Sequence[str] | None
    ) -> None:
        self._table, self._costs, self._references = table, costs, references
        self.levels = levels
        self._lines: dict[str, Lines] = {}
        self._tokens: dict[str, list[int]] = {}
        self.full = self.lines(levels[0])

    def lines(self, level: str) -> Lines:
        """Return every row's line at a level."""
        if level not in self._lines:
            self._lines[level] = self._costs.lines(self._table, level=level, references=self._references)
        return self._lines[level]

    def tokens(self, level: str) -> list[int]:
        """Return what every row's line at a level costs."""
        if level not in self._tokens:
            self._tokens[level] = self.lines(level).tokens.tolist()
        return self._tokens[level]

    def most_saved(self) -> int:
        """Return the most tokens that a line can save where it stands last, without its break."""
        # Lower levels are not rendered to find out.
        return SLACK if len(self.levels) > 1 else int(self.full.saved.max(initial=0))

    def cheapest_from(self, order: list[int]) -> list[int]:
        """Return, for each place of the order, the fewest tokens any record from there on can cost."""
        least = self.full.tokens
        for level in self.levels[1:]:
            least = np.minimum(least, self.lines(level).tokens)
        return np.minimum.accumulate(least[order][::-1])[::-1].tolist()  # type: ignore[no-any-return]


def fill(
    layout: Layout,
    ladder: Ladder,
    order: list[int],
    blank: list[bool],
    folding: Folding | None,
    required: frozenset[int],
) -> dict[int, str]:
    """Pack rows greedily in this order.

    Args:
        layout: Takes the records that fit.
        ladder: Their lines.
        order: Rows in the order in which they are tried.
        blank: Rows that are left out because their text is blank.
        folding: Knows repeated text; ``None`` where nothing is folded.
        required: Rows that are never folded away.

    Returns:
        The reason of each row left out, in the order decided: ``no_text``, ``folded`` or ``budget``.
    """
    reasons: dict[int, str] = {}
    full, richest, lower = ladder.full, ladder.levels[0], ladder.levels[1:]
    tokens = ladder.tokens(richest)
    cheapest: list[int] | None = None
    ahead = layout.extend(order, full, richest) if folding is None and not any(blank) else 0
    # What most lines are refused by: the layout's own limit allows for more than these lines ever save.
    spare = SLACK - ladder.most_saved()
    tried, room = ahead, layout.room - spare
    for tried, row in enumerate(order[ahead:], ahead + 1):
        if blank[row]:
            reasons[row] = "no_text"
        elif folding is not None and row not in required and folding.covered(row):
            reasons[row] = "folded"
        elif tokens[row] <= room and layout.add(row, full[row], richest):
            if folding is not None:
                for covered in folding.add(row):
                    if covered not in required and not layout.in_window(covered):
                        layout.remove(covered)
                        folding.remove(covered)
                        reasons[covered] = "folded"
            room = layout.room - spare
        elif any(
            ladder.tokens(level)[row] <= room and layout.add(row, ladder.lines(level)[row], level) for level in lower
        ):
            room = layout.room - spare
        else:
            reasons[row] = "budget"
            if cheapest is None:
                cheapest = ladder.cheapest_from(order)
            if tried < len(order) and cheapest[tried] > room:
                break
    # Nothing from here on fits; only the reasons are still to be told apart.
    reasons.update(_reasons_left(order[tried:], blank, folding, required))
    return reasons


def _reasons_left(
    rows: list[int], blank: list[bool], folding: Folding | None, required: frozenset[int]
) -> dict[int, str]:
    if folding is None and not any(blank):
        return dict.fromkeys(rows, "budget")
    reasons: dict[int, str] = {}
    for row in rows:
        covered = folding is not None and row not in required and folding.covered(row)
        reasons[row] = "no_text" if blank[row] else "folded" if covered else "budget"
    return reasons
