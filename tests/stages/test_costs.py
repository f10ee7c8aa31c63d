from prme_ray.model.settings import PackingSettings
from prme_ray.tokens import counter
from stages.costs import CachedLines
from tests.stages.packing_cases import memory, table

TOKENS = counter("cl100k_base")
WAYS = 2
"""A line is counted with its line break, and without one for the end of a context."""


class Counting:
    """The real counter, counting its calls."""

    name, longest_token = TOKENS.name, TOKENS.longest_token

    def __init__(self) -> None:
        self.calls = 0

    def count(self, text: str) -> int:
        self.calls += 1
        return TOKENS.count(text)


def lines(rows, counting, cache, *, owner="ada", level="full", references=None, **packing):
    costs = CachedLines(PackingSettings(**packing), counting, cache, owner=owner)
    return list(costs.lines(rows, level=level, references=references))


def test_a_line_is_rendered_and_counted_once() -> None:
    counting, cache = Counting(), {}
    rows = table(memory(1, "I left"), memory(2, "You stayed"))
    first = lines(rows, counting, cache)
    assert [line.text for line in first] == ['- "I left"', '- "You stayed"']
    assert [line.tokens for line in first] == [TOKENS.count('- "I left"\n'), TOKENS.count('- "You stayed"\n')]
    assert [line.last for line in first] == [TOKENS.count('- "I left"'), TOKENS.count('- "You stayed"')]
    assert lines(rows, counting, cache) == first
    assert counting.calls == 2 * WAYS
    assert lines(table(memory(2, "You stayed"), memory(3, "New")), counting, cache)[0] == first[1]
    assert counting.calls == 3 * WAYS


def test_whatever_a_line_depends_on_is_part_of_its_key() -> None:
    counting, cache = Counting(), {}
    rows = table(memory(1, "I left"))
    lines(rows, counting, cache)
    changed = table(memory(1, "I came back", updated_at="2020-01-02T00:00:00Z"))
    assert lines(changed, counting, cache)[0].text == '- "I came back"'
    foreign = table(memory(1, "another owner's text"))
    assert lines(foreign, counting, cache, owner="bob")[0].text == '- "another owner\'s text"'
    assert lines(rows, counting, cache, references=["m4"])[0].text == '- [m4] "I left"'
    assert lines(rows, counting, cache, references=["m5"])[0].text == '- [m5] "I left"'
    for level in ("full", "reference"):
        assert (
            f'"representation":"{level}"'
            in lines(rows, counting, cache, level=level, context_format="auditable")[0].text
        )
    assert counting.calls == 7 * WAYS


def test_a_text_too_long_for_any_encoding_of_it_is_neither_counted_nor_kept() -> None:
    counting, cache = Counting(), {}
    rows = table(memory(1, "a" * 12_801), memory(2, "a" * 12_800))
    too_long, counted = lines(rows, counting, cache, token_budget=100)
    assert (too_long.text, counted.text[:4]) == ("", '- "a')
    assert too_long.tokens > 10**9
    assert (counting.calls, len(cache)) == (WAYS, 1)


def test_flags() -> None:
    named = memory(1, " ", metadata={"prme_speaker_v1": "Anna"})
    assert [(line.speaker, line.blank) for line in lines(table(named, memory(2, "x")), Counting(), {})] == [
        (True, True),
        (False, False),
    ]
