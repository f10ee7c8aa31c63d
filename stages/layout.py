"""Where packed records stand, and what the context costs while it grows.

The running total adds up lines counted each with its line break. That sum is exact for tiktoken's
encodings: none of their split patterns joins a line break with non-white space after it, and no line
starts with white space. Only the last line stands without a break in the finished context; that is
settled by counting it alone whenever the difference could decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prme_ray.model.settings.packing import ContextFormat
from stages.costs import LineCosts
from stages.lines import Line, Lines
from stages.render import assemble, header, label

__all__ = ["SLACK", "Layout"]

SLACK = 16
"""More tokens than a final line break ever adds or saves (measured for cl100k: -3 to 2)."""


class Layout:
    """The packed records by section, in line order, within ``available`` tokens.

    Attributes:
        total: Tokens of the context with a line break after every line.
        levels: Packed row -> representation level, in packing order.
        lines: Packed row -> line.
    """

    def __init__(
        self,
        costs: LineCosts,
        *,
        available: int,
        context_format: ContextFormat,
        citations: bool,
        notices: Sequence[str],
        sections: Sequence[int],
        links: Mapping[int, tuple[int, int]],
    ) -> None:
        """Start with the notices only.

        Args:
            costs: Counts text.
            available: Most tokens of the context.
            context_format: Line format.
            citations: Whether reader lines carry references.
            notices: Lines that come first and cannot be left out.
            sections: Section of every row.
            links: Session neighbour -> (trigger, offset) where neighbours stand beside their trigger.
        """
        self._costs = costs
        self._available = available
        self._notices = notices
        self._section_of = sections
        self._links = links
        self._triggers = {trigger for trigger, _ in links.values()}
        self._rows: dict[int, list[int]] = {}
        self._speakers = 0
        self._fixed: dict[str, int] = {}
        self._headers = [header(context_format, citations=citations, speakers=speakers) for speakers in (False, True)]
        self._header_costs: list[int | None] = [None, None]
        self.lines: dict[int, Line] = {}
        self.levels: dict[int, str] = {}
        self.total = sum(costs.count(notice + "\n") for notice in notices)
        self._guidance: str | None = None

    @property
    def room(self) -> int:
        """Tokens that a further record's line may have at most."""
        return self._available - self.total + SLACK

    def notices_fit(self) -> bool:
        """Return whether the notices alone stay within the budget."""
        return not self._notices or self._costs.count("\n".join(self._notices)) <= self._available

    def add(self, row: int, line: Line, level: str) -> bool:
        """Insert a record if the whole context stays within the budget; return whether it did."""
        if line.tokens > self.room:
            return False
        if not self._links:
            # Without windows a record goes to the end of its section, so what it would cost is known.
            section = self._section_of[row]
            growth = self._growth(section, line)
            over = self.total + growth - self._available
            if over > SLACK or (over >= -SLACK and over + self._ending(section, line) > 0):
                return False
            self._enter(row, line, level, growth)
            return True
        self._insert(row, line, level)
        if self._fits():
            return True
        self._take_out(row)
        return False

    def extend(self, rows: Sequence[int], lines: Lines, level: str) -> int:
        """Add records one after the other while they fit beyond doubt; return how many were added.

        The rest is left to :meth:`add`. This is the same walk with its lookups done once: most of a
        context is filled while no last line can matter.

        Args:
            rows: Rows in the order in which they are added.
            lines: Line of every row, by row.
            level: Level of the lines.
        """
        if self._links:
            return 0
        limit = self._available - SLACK
        sections, packed, total = self._section_of, self._rows, self.total
        for place, row in enumerate(rows):
            line, section = lines[row], sections[row]
            known = section in packed and (self._speakers or not line.speaker)
            total += line.tokens if known else self._growth(section, line)
            if total > limit:
                return place
            if known:
                # As _enter does it; the call would cost as much as all the rest.
                self.total = total
                packed[section].append(row)
                self.lines[row] = line
                self.levels[row] = level
                self._speakers += line.speaker
            else:
                self._enter(row, line, level, total - self.total)
        return len(rows)

    def remove(self, row: int) -> None:
        """Take a record out again. A line saves more tokens than the new last line's break can cost."""
        self._take_out(row)

    def add_guidance(self, text: str) -> bool:
        """Put a line on how to read the records above them, if it fits beside them."""
        cost = self._count(text + "\n")
        if not self.lines or cost > self.room:
            return False
        self._guidance = text
        self.total += cost
        if self._fits():
            return True
        self._guidance = None
        self.total -= cost
        return False

    def in_window(self, row: int) -> bool:
        """Return whether the row is held beside a trigger, or is one."""
        return row in self._links or row in self._triggers

    def sections(self) -> list[tuple[int, list[int]]]:
        """Return the sections in order of their first packed record, rows in line order."""
        return [(section, self._arranged(rows)) for section, rows in self._rows.items()]

    def context(self) -> str:
        """Return the whole context."""
        sections = self.sections()
        return assemble(
            notices=self._notices,
            guidance=self._guidance,
            head=self._header() if sections else None,
            sections=[(section, [self.lines[row].text for row in rows]) for section, rows in sections],
        )

    def _insert(self, row: int, line: Line, level: str) -> None:
        self._enter(row, line, level, self._growth(self._section_of[row], line))

    def _enter(self, row: int, line: Line, level: str, growth: int) -> None:
        self.total += growth
        self._rows.setdefault(self._section_of[row], []).append(row)
        self.lines[row] = line
        self.levels[row] = level
        self._speakers += line.speaker

    def _growth(self, section: int, line: Line) -> int:
        """Return what the total grows by when the line joins the section."""
        grown = line.tokens
        if section not in self._rows:
            grown += self._count(label(section) + "\n")
        if not self.lines:
            return grown + self._header_tokens(line.speaker)
        if line.speaker and not self._speakers:
            # The first line that shows a speaker brings the header that explains them.
            grown += self._header_tokens(shown=True) - self._header_tokens(shown=False)
        return grown

    def _ending(self, section: int, line: Line) -> int:
        """Return what the last line, once the line has joined the section, saves without its break."""
        if section in self._rows and (last := next(reversed(self._rows))) != section:
            line = self.lines[self._rows[last][-1]]
        return line.last - line.tokens

    def _take_out(self, row: int) -> None:
        section = self._section_of[row]
        self.total -= self._header_tokens(self._speakers > 0)
        self._rows[section].remove(row)
        if not self._rows[section]:
            del self._rows[section]
            self.total -= self._count(label(section) + "\n")
        line = self.lines.pop(row)
        del self.levels[row]
        self._speakers -= line.speaker
        self.total -= line.tokens
        if self.lines:
            self.total += self._header_tokens(self._speakers > 0)

    def _fits(self) -> bool:
        over = self.total - self._available
        if abs(over) > SLACK:
            return over < 0
        last = self.lines[self._arranged(self._rows[next(reversed(self._rows))])[-1]] if self._rows else None
        return last is None or over + last.last - last.tokens <= 0

    def _header(self) -> str:
        return self._headers[self._speakers > 0]

    def _header_tokens(self, shown: bool) -> int:
        cost = self._header_costs[shown]
        if cost is None:
            cost = self._header_costs[shown] = self._costs.count(self._headers[shown] + "\n")
        return cost

    def _count(self, text: str) -> int:
        found = self._fixed.get(text)
        if found is None:
            found = self._fixed[text] = self._costs.count(text)
        return found

    def _arranged(self, rows: list[int]) -> list[int]:
        """Return a section's rows with session neighbours beside their trigger, in session order.

        Neighbours of a trigger that is packed in another section stand together too. A group stands
        where its first packed member stands; a neighbour without a packed trigger stays where it is.
        """
        if not self._links:
            return rows
        groups: dict[int, list[int]] = {}
        for row in rows:
            trigger = self._links[row][0] if row in self._links else row
            groups.setdefault(trigger if trigger in self.lines else row, []).append(row)
        return [row for members in groups.values() for row in self._by_offset(members)]

    def _by_offset(self, members: Iterable[int]) -> list[int]:
        return sorted(members, key=lambda row: (self._links[row][1] if row in self._links else 0, row))
