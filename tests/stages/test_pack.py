import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prme_ray.model.errors import PrmeRayError
from prme_ray.model.settings import PackingSettings
from prme_ray.tokens import counter
from stages.costs import CachedLines
from stages.line_cache import LineCache
from stages.pack import levels_allowed, pack
from stages.render import assemble, header, section_codes
from stages.render_reader import line
from stages.render_record import read
from tests.stages.packing_cases import memory, node_id, numbers, packed, table

count = counter("cl100k_base").count
TWO = ["VECTOR", "LEXICAL"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(["!" * 40, ':+:"', "漢字" * 9])
MEMORIES = st.lists(
    st.tuples(
        TEXT,
        st.sampled_from(["note", "task", "event", "instruction"]),
        st.sampled_from(["", "Anna"]),
        st.integers(0, 3),
    ),
    max_size=8,
)


def memories(drawn):
    return [
        memory(
            number, content, score / 3, node_type=kind, metadata={"prme_speaker_v1": name}, paths=TWO[: 1 + number % 2]
        )
        for number, (content, kind, name, score) in enumerate(drawn)
    ]


def test_tiers_come_before_scores() -> None:
    """Golden example 10."""
    found = packed(
        memory(6, "single", 0.99),
        memory(5, "multi", 0.10, paths=TWO),
        memory(4, "episode", 0.3, paths=["EPISODE_CONTEXT"]),
        memory(3, "pin", 0.0, pinned=True),
        memory(2, "task", 0.2, node_type="task"),
        memory(1, "instruction", 0.05, node_type="instruction"),
    )
    assert numbers(found.included) == [1, 2, 3, 4, 5, 6]
    assert {name: numbers(ids) for name, ids in found.sections.items()} == {
        "system_instructions": [1],
        "active_tasks": [2],
        "stable_facts": [3, 4, 5, 6],
    }


@pytest.mark.parametrize("budget", [0, 50, 100])
def test_a_budget_that_the_overhead_eats(budget: int) -> None:
    """Golden example 5."""
    found = packed(memory(1, "a"), memory(2, " "), token_budget=budget)
    assert (found.context, found.tokens_used, found.budget_remaining) == ("", 0, 0)
    assert found.excluded == {node_id(1): "budget", node_id(2): "no_text"}


def test_notices_that_do_not_fit_leave_nothing() -> None:
    """Golden example 6."""
    given = {"overhead_tokens": 0, "notices": ("word " * 30,), "guidance": "read well"}
    found = packed(memory(1, "a", pinned=True), token_budget=10, **given)
    assert (found.context, found.tokens_used, found.coverage_notice, found.context_guidance) == ("", 0, None, None)
    assert found.excluded == {node_id(1): "notice_did_not_fit"}
    assert found.budget_overflow == [node_id(1)]
    assert packed(memory(1, "a"), token_budget=10, **given).budget_overflow == []


def test_a_notice_alone_is_the_context() -> None:
    """Golden example 7; guidance is about records and needs one."""
    found = packed(overhead_tokens=0, token_budget=100, notices=("hello world",), guidance="read well")
    assert (found.context, found.tokens_used, found.coverage_notice) == ("hello world", 2, "hello world")
    assert found.context_guidance is None


def test_guidance_never_displaces_a_record() -> None:
    without = packed(memory(1, "I moved to Leeds"), overhead_tokens=0)
    exact = without.tokens_used + count("read well\n")
    roomy = packed(memory(1, "I moved to Leeds"), overhead_tokens=0, token_budget=exact, guidance="read well")
    tight = packed(memory(1, "I moved to Leeds"), overhead_tokens=0, token_budget=exact - 1, guidance="read well")
    assert roomy.context == "read well\n" + without.context
    assert (roomy.tokens_used, roomy.budget_remaining, roomy.context_guidance) == (exact, 0, "read well")
    assert (tight.context, tight.context_guidance) == (without.context, None)


def test_a_small_record_still_fits_behind_a_large_one() -> None:
    rows = [
        memory(1, "long " * 300, 0.9),
        memory(2, "short", 0.8),
        memory(3, "long " * 300, 0.7),
        memory(4, "brief", 0.1),
    ]
    found = packed(*rows, token_budget=200)
    assert numbers(found.included) == [2, 4]
    assert found.excluded == {node_id(1): "budget", node_id(3): "budget"}
    assert found.budget_overflow == []


def test_levels_fall_until_one_fits() -> None:
    """Golden example 11: without its text a record is small; a level that needs text keeps it out."""
    long = memory(1, "word " * 500, pinned=True)
    given = {"context_format": "auditable", "token_budget": 200, "overhead_tokens": 0}
    found = packed(long, **given)
    assert found.levels == {node_id(1): "key_value"}
    assert json.loads(found.context.splitlines()[-1])["representation"] == "key_value"
    refused = packed(long, min_fidelity="structured", **given)
    assert refused.excluded == {node_id(1): "budget"}
    assert refused.budget_overflow == [node_id(1)]


def test_levels_allowed() -> None:
    assert levels_allowed("reader", "reference") == ("full",)
    assert levels_allowed("auditable", "prose") == ("full",)
    assert levels_allowed("compact", "structured") == ("full", "structured")
    assert levels_allowed("auditable", "reference") == ("full", "structured", "key_value", "reference")


def test_blank_text_needs_a_level_without_text() -> None:
    """Golden example 12."""
    assert packed(memory(1, "   ")).excluded == {node_id(1): "no_text"}
    assert packed(memory(1, "   "), context_format="compact").included == [node_id(1)]


def test_references_count_all_inputs_and_name_packed_ones() -> None:
    """Golden example 14, with a third record too large for the budget: its number stays unused."""
    rows = [memory(1, "A", 0.9), memory(3, "B", 0.95), memory(2, "long " * 500, 0.99)]
    found = packed(*rows, context_citations=True, token_budget=250)
    assert [text.split("]")[0] for text in found.context.splitlines()[-2:]] == ["- [m3", "- [m1"]
    assert found.references == {"m1": node_id(1), "m3": node_id(3)}
    assert packed(*rows).references == {}


def test_session_neighbours() -> None:
    """Golden example 17."""
    rows = [
        memory(1, "trigger", 0.5, paths=TWO),
        memory(2, "after", 0.3, paths=["SESSION_CONTEXT"], link=(1, 1)),
        memory(3, "before", 0.3, paths=["SESSION_CONTEXT"], link=(1, -1)),
        memory(4, "other", 0.4, paths=TWO),
        memory(5, "single", 0.45),
    ]
    lines = {
        mode: numbers(packed(*rows, session_context_packing=mode).sections["stable_facts"])
        for mode in (None, "trigger_tier", "adjacent")
    }
    assert lines == {None: [1, 4, 5, 2, 3], "trigger_tier": [1, 4, 2, 3, 5], "adjacent": [3, 1, 2, 4, 5]}


def test_a_trigger_that_was_not_selected_is_ignored() -> None:
    rows = [memory(2, "after", 0.3, paths=["SESSION_CONTEXT"], link=(1, 1)), memory(5, "single", 0.45)]
    assert numbers(packed(*rows, session_context_packing="adjacent").included) == [5, 2]


def test_of_equal_ids_the_first_counts() -> None:
    found = packed(memory(1, "first", 0.2), memory(2, "x", 0.5), memory(1, "second", 0.9))
    assert numbers(found.included) == [2, 1]
    assert "second" not in found.context


def test_required_records_come_first_in_their_own_order() -> None:
    rows = table(memory(1, "a", 0.9, pinned=True), memory(2, "b", 0.1), memory(3, "c", 0.2))
    packing = PackingSettings()
    costs = CachedLines(packing, counter("cl100k_base"), {}, owner="ada")
    found = pack(
        rows, packing=packing, token_budget=4096, min_fidelity="full", costs=costs, required=[node_id(3), node_id(2)]
    )
    assert numbers(found.included) == [3, 2, 1]


def test_a_text_of_a_hundred_thousand_characters_is_left_out_quickly() -> None:
    found = packed(memory(1, "a" * 100_000, 0.9), memory(2, " " * 600_000 + "x", 0.8), memory(3, "short", 0.1))
    assert numbers(found.included) == [3]
    assert list(found.excluded.values()) == ["budget", "budget"]


def test_a_tokenizer_that_does_not_count_line_by_line_is_found_out() -> None:
    class Odd:
        def __init__(self) -> None:
            self.inner = CachedLines(PackingSettings(), counter("cl100k_base"), {}, owner="ada")
            self.lines = self.inner.lines

        def count(self, text: str) -> int:
            return self.inner.count(text) * (10 if text.count("\n") > 2 else 1)

    rows = table(*[memory(number, "some words " * 9) for number in range(9)])
    with pytest.raises(PrmeRayError, match="are available"):
        pack(rows, packing=PackingSettings(), token_budget=300, min_fidelity="full", costs=Odd())


def by_rendering_everything(rows, order, available: int):
    """The packing rule written as it is stated: render the whole context for every try."""
    records, sections = read(rows), section_codes(rows).tolist()
    included: list[int] = []

    def context(chosen: list[int]) -> str:
        lines = {row: line(records[row]) for row in chosen}
        head = header("reader", citations=False, speakers=any(speaker for _, speaker in lines.values()))
        groups = {section: [] for section in dict.fromkeys(sections[row] for row in chosen)}
        for row in chosen:
            groups[sections[row]].append(lines[row][0])
        return assemble(notices=["A notice."], guidance=None, head=head if chosen else None, sections=groups.items())

    for row in order:
        if count(context([*included, row])) <= available:
            included.append(row)
    return included, context(included)


@settings(max_examples=60, deadline=None)
@given(MEMORIES, st.integers(3, 260))
def test_the_same_as_rendering_the_whole_context_for_every_try(drawn, available: int) -> None:
    given_memories = memories(drawn)
    every = packed(*given_memories, notices=("A notice.",), fold_repeated_text=False)
    rows = table(*given_memories)
    found = packed(
        *given_memories, notices=("A notice.",), fold_repeated_text=False, overhead_tokens=0, token_budget=available
    )
    included, context = by_rendering_everything(rows, numbers(every.included), available)
    assert numbers(found.included) == included
    assert found.context == context
    assert found.tokens_used == count(context) == available - found.budget_remaining


@settings(max_examples=60, deadline=None)
@given(
    MEMORIES,
    st.integers(0, 400),
    st.sampled_from(["reader", "compact", "auditable"]),
    st.sampled_from(["full", "structured", "key_value", "reference"]),
)
def test_the_budget_holds_and_every_record_is_accounted_for(drawn, budget: int, form: str, fidelity: str) -> None:
    found = packed(
        *memories(drawn), context_format=form, min_fidelity=fidelity, token_budget=budget, overhead_tokens=20
    )
    assert found.tokens_used == count(found.context) <= max(0, budget - 20)
    assert not found.context.endswith("\n")
    assert sorted([*found.included, *found.excluded]) == [node_id(row) for row in range(len(drawn))]
    assert sorted(value for ids in found.sections.values() for value in ids) == sorted(found.included)
    heads = 1 if found.included else 0
    assert len(found.context.splitlines()) == heads + len(found.sections) + len(found.included)


@settings(max_examples=20, deadline=None)
@given(
    MEMORIES,
    st.randoms(use_true_random=False),
    st.sampled_from([{}, {"context_citations": True}, {"context_format": "compact"}, {"context_format": "auditable"}]),
)
def test_the_order_of_rows_and_a_warm_cache_change_nothing(drawn, random, form) -> None:
    given_memories, cache = memories(drawn), LineCache()
    first = packed(*given_memories, token_budget=220, **form)
    # Other memories before them in the order of ids: every number is another one.
    packed(*given_memories[len(drawn) // 2 :], cache=cache, **form)
    random.shuffle(given_memories)
    assert packed(*given_memories, cache=cache, token_budget=220, **form) == first


def test_empty() -> None:
    found = packed()
    assert (found.context, found.tokens_used, found.budget_remaining) == ("", 0, 3996)
    assert np.size(found.included) == 0
