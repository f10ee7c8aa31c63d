from stages.fill import Ladder, fill
from stages.layout import Layout
from stages.lines import Line, Lines
from tests.stages.packing_cases import memory, table

LEVELS = ("full", "reference")


class Given:
    """Costs by row and level; fixed lines and line breaks are free. Keeps which levels were asked for."""

    def __init__(self, **tokens: list[int]) -> None:
        self.tokens = tokens
        self.asked: list[str] = []

    def lines(self, rows, *, level, references):
        self.asked.append(level)
        costs = enumerate(self.tokens[level])
        return Lines.of([Line(f"{level}{row}", cost, cost, speaker=False, blank=False) for row, cost in costs])

    def count(self, text: str) -> int:
        level, row = text[:-1].strip("0123456789"), text.strip().lstrip("abcdefghijklmnopqrstuvwxyz")
        return self.tokens[level][int(row)] if level in self.tokens and row else 0


def filled(costs: Given, available: int, levels=LEVELS):
    count = len(costs.tokens["full"])
    rows = table(*[memory(number, "x") for number in range(count)])
    layout = Layout(
        costs,
        available=available,
        context_format="auditable",
        citations=False,
        notices=(),
        sections=[3] * count,
        links={},
    )
    ladder = Ladder(rows, costs, levels=levels, references=None)
    reasons = fill(layout, ladder, list(range(count)), [False] * count, None, frozenset())
    return layout.levels, reasons


def test_greedy_by_hand() -> None:
    """Room 100: 60 fits, 50 does not even as reference (45), 35 fits, then 5 of 5 are left."""
    levels, reasons = filled(Given(full=[60, 50, 35, 20, 5], reference=[9, 45, 9, 6, 5]), 100)
    assert levels == {0: "full", 2: "full", 4: "full"}
    assert reasons == {1: "budget", 3: "budget"}


def test_the_first_level_that_fits_is_taken() -> None:
    levels, reasons = filled(Given(full=[60, 50], reference=[9, 40]), 100)
    assert (levels, reasons) == ({0: "full", 1: "reference"}, {})


def test_lower_levels_are_not_rendered_while_everything_fits() -> None:
    costs = Given(full=[10, 10], reference=[1, 1])
    assert filled(costs, 20)[0] == {0: "full", 1: "full"}
    assert costs.asked == ["full"]


def test_every_row_gets_a_reason_when_nothing_more_can_fit() -> None:
    levels, reasons = filled(Given(full=[100, 90, 90, 90]), 100, levels=("full",))
    assert levels == {0: "full"}
    assert reasons == {1: "budget", 2: "budget", 3: "budget"}


class Saving(Given):
    """The second line costs three tokens less without its break."""

    def lines(self, rows, *, level, references):
        costs = [(10, 10), (12, 9), (11, 11)]
        return Lines.of([Line("full", with_break, last, speaker=False, blank=False) for with_break, last in costs])


def test_a_line_that_fits_only_without_its_break_is_packed() -> None:
    levels, reasons = filled(Saving(full=[0, 0, 0]), 20, levels=("full",))
    assert (levels, reasons) == ({0: "full", 1: "full"}, {2: "budget"})
