import numpy as np

from stages.lines import KnownLines, Line, Lines

ONE, TWO = Line("- one", 3, 2, speaker=True, blank=False), Line("-", 2, 1, speaker=False, blank=True)


def test_lines_are_read_by_row_and_what_they_cost_as_arrays() -> None:
    lines = Lines.of([ONE, TWO])
    assert (len(lines), list(lines), lines[1]) == (2, [ONE, TWO], TWO)
    assert (lines.tokens.tolist(), lines.blank.tolist()) == ([3, 2], [False, True])
    assert lines.saved.tolist() == [1, 1]


def test_known_lines_are_answered_in_any_order_and_the_others_named() -> None:
    known = KnownLines(4)
    known.put(2, ONE)
    known.put(0, TWO)
    assert known.missing(np.array([3, 2, 1, 0])).tolist() == [0, 2]
    lines = known.at(np.array([0, 2, 0]))
    assert (list(lines), lines.tokens.tolist(), lines.blank.tolist()) == (
        [TWO, ONE, TWO],
        [2, 3, 2],
        [True, False, True],
    )
    assert len(Lines.of([])) == len(known.at(np.array([], np.int64))) == 0


def test_a_start_of_its_own_is_put_before_each_line_and_paid_for() -> None:
    lines = Lines.of([ONE, TWO]).after(["5", "66"], np.array([1, 2]))
    assert list(lines) == [
        Line("5- one", 4, 3, speaker=True, blank=False),
        Line("66-", 4, 3, speaker=False, blank=True),
    ]
    assert lines.tokens.tolist() == [4, 4]
