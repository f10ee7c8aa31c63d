"""Memories as records and as rows."""

import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from prme_ray.model.enums import LifecycleState, NodeType, Scope, code
from prme_ray.model.nodes import SPEAKER_KEY, Node, node_rows, node_table, valid_speaker
from prme_ray.model.tables import NODE, times
from prme_ray.model.times import NO_TIME

AT = datetime(2026, 5, 4, 10, tzinfo=UTC)


def node(**fields):
    given = {"id": "n1", "content": "Tea at five", "created_at": AT, "updated_at": AT}
    return Node(**{**given, "valid_from": AT, "last_reinforced_at": AT, **fields})


def row(**fields):
    return node_table([node(**fields)]).to_pylist()[0]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Nora", "Nora"),
        ("  Inês  ", "Inês"),
        ("山田 太郎", "山田 太郎"),
        ("x" * 200, "x" * 200),
        ("x" * 201, None),
        ("", None),
        ("   ", None),
        ("a\nb", None),
        ("a\u2028b", None),
        ("a\u202eb", None),
        ("a\u2066b", None),
        ("a\x1bb", None),
        ("a\ud800", None),
        (7, None),
        (None, None),
    ],
)
def test_a_speaker_name_cannot_forge_a_line(given, shown):
    assert valid_speaker(given) == shown


def test_a_row_holds_codes_times_and_derived_columns():
    found = row(
        content="The office moved to Ghent in May 2026",
        node_type=NodeType.FACT,
        scope=Scope.SANDBOX,
        lifecycle_state=LifecycleState.CONTESTED,
        evidence_refs=("e2", "e1", "e2"),
        metadata={SPEAKER_KEY: " Nora ", "condition_state": "true", "note": "日本"},
    )
    assert (found["node_type"], found["scope"], found["lifecycle_state"]) == (
        code(NodeType.FACT),
        code(Scope.SANDBOX),
        code(LifecycleState.CONTESTED),
    )
    assert (found["created_at"], found["event_time"], found["valid_to"]) == (AT, None, None)
    assert found["evidence"] == "e1,e2"
    assert (found["speaker"], found["condition_state"]) == ("Nora", "true")
    assert json.loads(found["metadata"])["note"] == "日本"
    assert "日本" in found["metadata"]
    assert (found["dated"], found["update_wording"]) == (True, True)


def test_a_plain_row_has_nulls_and_no_evidence():
    found = row()
    assert (found["metadata"], found["speaker"], found["condition_state"], found["session_id"]) == (None,) * 4
    assert (found["evidence"], found["dated"], found["update_wording"]) == ("", False, False)


def test_a_condition_that_is_not_text_is_not_a_condition():
    assert row(metadata={"condition_state": True})["condition_state"] is None


def test_tables_keep_the_order_and_the_schema():
    table = node_table([node(id="b"), node(id="a", event_time=AT)])
    assert table.schema == NODE
    assert table.column("node_id").to_pylist() == ["b", "a"]
    assert times(table, "event_time").tolist()[0] == NO_TIME
    assert node_table([]).schema == NODE
    assert set(node_rows([])) == set(NODE.names)


def test_a_record_survives_json():
    before = node(metadata={"a": [1, None]}, evidence_refs=("e1",), event_time=AT)
    assert Node.model_validate_json(before.model_dump_json()) == before


@pytest.mark.parametrize(
    "fields", [{"confidence": 1.1}, {"salience": -0.1}, {"confidence": float("nan")}, {"colour": "red"}]
)
def test_values_out_of_range_and_unknown_fields_are_refused(fields):
    with pytest.raises(ValidationError):
        node(**fields)
