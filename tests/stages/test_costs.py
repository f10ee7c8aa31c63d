import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prme_ray.model.settings import PackingSettings
from prme_ray.tokens import counter
from stages.costs import CachedLines
from stages.line_cache import LineCache
from tests.stages.packing_cases import memory, table

TOKENS = counter("cl100k_base")
WAYS = 2
"""A line is counted with its line break, and without one for the end of a context."""


class Counting:
    """The real counter, counting its calls."""

    name, longest_token = TOKENS.name, TOKENS.longest_token

    def __init__(self, *, splits_after_digits: bool = TOKENS.splits_after_digits) -> None:
        self.calls = 0
        self.splits_after_digits = splits_after_digits

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


NUMBERED = [{"context_format": "compact"}, {"context_citations": True}]


@pytest.mark.parametrize("packing", NUMBERED)
def test_under_another_number_only_the_number_is_counted(packing) -> None:
    counting, cache = Counting(), LineCache()
    rows = table(memory(1, "I left"), memory(2, "You stayed"))
    lines(rows, counting, cache, references=["m1", "m2"], **packing)
    assert counting.calls == 2 * WAYS + 2
    found = lines(rows, counting, cache, references=["m2", "m1000"], **packing)
    assert counting.calls == 2 * WAYS + 3
    assert found == lines(rows, Counting(), {}, references=["m2", "m1000"], **packing)


@pytest.mark.parametrize("packing", NUMBERED)
def test_a_tokenizer_that_joins_digits_to_what_follows_counts_whole_lines(packing) -> None:
    counting, cache = Counting(splits_after_digits=False), LineCache()
    rows = table(memory(1, "I left"))
    for number in (1, 2):
        found = lines(rows, counting, cache, references=[f"m{number}"], **packing)
        assert counting.calls == number * WAYS
        assert found == lines(rows, Counting(), {}, references=[f"m{number}"], **packing)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.text(max_size=40), min_size=1, max_size=4),
    st.integers(1, 2_000),
    st.sampled_from(NUMBERED),
    st.sampled_from(["full", "structured", "key_value", "reference"]),
    st.sampled_from([None, "Anna 7", "]"]),
)
def test_kept_and_new_lines_cost_what_the_whole_line_costs(contents, first, packing, level, speaker) -> None:
    named = {} if speaker is None else {"metadata": {"prme_speaker_v1": speaker}}
    rows, cache = table(*[memory(number, text, **named) for number, text in enumerate(contents)]), LineCache()
    for start in (first, first + 7):
        references = [f"m{start + row}" for row in range(len(contents))]
        found = lines(rows, TOKENS, cache, references=references, level=level, **packing)
        assert [(line.tokens, line.last) for line in found] == [
            (TOKENS.count(line.text + "\n"), TOKENS.count(line.text)) for line in found
        ]
        assert found == lines(rows, Counting(), {}, references=references, level=level, **packing)
        if "context_format" in packing:
            assert [json.loads(line.text)[0] for line in found] == references


def test_a_text_too_long_for_the_budget_leaves_whole_lines() -> None:
    rows = table(memory(1, "a" * 12_801), memory(2, "b"))
    found = [
        lines(rows, Counting(), cache, references=["m1", "m2"], context_format="compact", token_budget=100)
        for cache in ({}, LineCache())
    ]
    assert found[0] == found[1]
