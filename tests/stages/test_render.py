import json

from hypothesis import given, settings
from hypothesis import strategies as st

from prme_ray.model.enums import NodeType
from stages import render_auditable, render_compact
from stages.render import SECTIONS, assemble, has_references, header, section_codes
from stages.render_record import LEVELS, read
from tests.conformance.tables import nodes_table
from tests.stages.packing_cases import memory, node_id, table

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def record(content: str, **fields):
    return read(nodes_table([{"id": node_id(7), "content": content} | fields]))[0]


def test_sections_by_type_with_contested_first() -> None:
    kinds = [str(kind) for kind in NodeType]
    rows = table(*[memory(number, "x", node_type=kind) for number, kind in enumerate(kinds)])
    assert dict(zip(kinds, [SECTIONS[section] for section in section_codes(rows)], strict=True)) == {
        "entity": "entity_snapshots",
        "event": "provenance_refs",
        "fact": "stable_facts",
        "decision": "recent_decisions",
        "preference": "preferences",
        "task": "active_tasks",
        "summary": "summaries",
        "note": "stable_facts",
        "instruction": "system_instructions",
        "intent": "active_tasks",
    }
    disputed = table(memory(1, "x", node_type="task", lifecycle_state="contested"))
    assert [SECTIONS[section] for section in section_codes(disputed)] == ["contested_claims"]


def test_an_auditable_line() -> None:
    shown = record("I left.", event_time="2024-02-01T10:00:00Z", valid_from="2024-02-02T00:00:00Z", node_type="fact")
    assert json.loads(render_auditable.line(shown, "full")) == {
        "id": node_id(7),
        "type": "fact",
        "scope": "personal",
        "epistemic": "asserted",
        "memory_lifecycle": "tentative",
        "representation": "full",
        "event_time": "2024-02-01T10:00:00Z",
        "valid_from": "2024-02-02T00:00:00Z",
        "valid_to": None,
        "text": "I left.",
        "source_type": "user_stated",
    }
    named = record("I left.", metadata={"prme_speaker_v1": "Anna"})
    assert json.loads(render_auditable.line(named, "full"))["speaker"] == "Anna"


def test_a_compact_line_follows_its_declared_order() -> None:
    values = json.loads(render_compact.line(record("I left."), "structured", "m4"))
    fields = dict(zip(render_compact.FIELDS, values, strict=True))
    assert fields["ref"] == "m4"
    assert fields["text"] == "note: I left."
    assert ",".join(render_compact.FIELDS) in render_compact.header()


def test_levels_below_text_carry_no_content() -> None:
    shown = record("secret plan", confidence=0.625)
    assert [level for level in LEVELS if "secret" in render_auditable.line(shown, level)] == ["full", "structured"]
    key_value = json.loads(render_auditable.line(shown, "key_value"))["text"]
    assert key_value == f"id={node_id(7)}; type=note; confidence=0.62"
    assert json.loads(render_auditable.line(shown, "reference"))["text"] == f"note {node_id(7)}"


def test_references_stand_in_compact_lines_and_on_request_in_reader_lines() -> None:
    assert [has_references(form, citations=False) for form in ("reader", "compact", "auditable")] == [
        False,
        True,
        False,
    ]
    assert has_references("reader", citations=True)


def test_parts_of_a_context_in_order() -> None:
    text = assemble(notices=["n"], guidance="g", head="h", sections=[(3, ["- a", "- b"]), (0, ["- c"])])
    assert text == "n\ng\nh\n[stable_facts]\n- a\n- b\n[contested_claims]\n- c"
    assert assemble(notices=[], guidance=None, head=None, sections=[]) == ""


def test_headers_are_single_lines_that_call_the_text_data() -> None:
    for form in ("reader", "compact", "auditable"):
        text = header(form, citations=False, speakers=False)
        assert "\n" not in text
        assert "recorded data" in text
        assert text[-1] == "."


@settings(max_examples=60, deadline=None)
@given(TEXT, TEXT)
def test_any_text_stays_inside_its_line(content: str, name: str) -> None:
    shown = record(content, metadata={"prme_speaker_v1": name})
    for level in LEVELS:
        for written in (render_auditable.line(shown, level), render_compact.line(shown, level, "m1")):
            assert written.splitlines() == [written]
    assert json.loads(render_auditable.line(shown, "full"))["text"] == content
    assert json.loads(render_compact.line(shown, "full", "m1"))[-1] == content
