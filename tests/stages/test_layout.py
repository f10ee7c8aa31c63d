from prme_ray.tokens import counter
from stages.layout import Layout
from stages.lines import Line

COUNT = counter("cl100k_base").count


class Costs:
    lines = None

    def count(self, text: str) -> int:
        return COUNT(text)


def a_line(text: str, *, speaker: bool = False) -> Line:
    return Line(text, COUNT(text + "\n"), COUNT(text), speaker, blank=False)


def layout(available: int = 1000, *, sections=(3,) * 9, links=None, notices=()) -> Layout:
    return Layout(
        Costs(),
        available=available,
        context_format="reader",
        citations=False,
        notices=notices,
        sections=sections,
        links=links or {},
    )


def test_the_total_follows_every_change() -> None:
    """The running total is the finished context's count with a break after every line."""
    grown = layout(sections=[3, 0, 3, 0], notices=("A notice.",))
    for row, speaker in enumerate([False, True, False, True]):
        assert grown.add(row, a_line(f'- "number {row}"', speaker=speaker), "full")
        assert grown.total == COUNT(grown.context() + "\n")
    for row in (1, 3, 0, 2):
        assert ('"speaker": ' in grown.context()) == any(grown.lines[kept].speaker for kept in grown.lines)
        grown.remove(row)
        assert grown.total == COUNT(grown.context() + "\n")
    assert grown.context() == "A notice."


def test_the_last_line_break_is_not_counted() -> None:
    """Without its break a line may cost less or more than with it; either way the exact count decides."""
    texts = ['- "a"', '- "\')->__(\'\\""', '- "x [~\\":"', '- "' + ' +#+#+#+"']
    differences = set()
    for text in texts:
        whole = layout()
        assert whole.add(0, a_line(text), "full")
        exact = COUNT(whole.context())
        differences.add(whole.total - exact)
        assert layout(exact).add(0, a_line(text), "full")
        assert not layout(exact - 1).add(0, a_line(text), "full")
    assert len(differences) > 1


def test_a_refused_record_leaves_no_trace() -> None:
    tight = layout(60)
    assert tight.add(0, a_line('- "a"'), "full")
    before = (tight.total, tight.context())
    assert not tight.add(1, a_line('- "' + "word " * 50 + '"', speaker=True), "full")
    assert (tight.total, tight.context()) == before


def test_neighbours_stand_beside_their_trigger_in_session_order() -> None:
    beside = layout(links={1: (3, 2), 2: (3, -1), 5: (6, 1)})
    for row in (1, 4, 2, 5, 3):
        assert beside.add(row, a_line(f'- "{row}"'), "full")
    # Trigger 3 leads its group at the place of the first member packed; trigger 6 is not packed.
    assert beside.sections() == [(3, [2, 3, 1, 4, 5])]
    assert beside.in_window(3)
    assert not beside.in_window(4)


def test_neighbours_of_a_trigger_in_another_section_stand_together() -> None:
    apart = layout(sections=[0, 3, 3, 3], links={1: (0, 2), 2: (0, -1)})
    for row in (1, 3, 0, 2):
        assert apart.add(row, a_line(f'- "{row}"'), "full")
    assert apart.sections() == [(3, [2, 1, 3]), (0, [0])]
