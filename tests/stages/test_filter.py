"""What a request may see; the reasons are those of digest a section 5 with decision 7."""

from datetime import UTC, datetime

import pytest

from prme_ray.model.enums import NodeType, RetrievalMode, SourceType
from stages.filter import default_reasons, filter_epistemic, filter_time, filter_types
from tests.stages.pool import nodes, number, numbers

NO_BOUNDS = dict.fromkeys(("time_from", "time_to", "knowledge_at", "event_time_from", "event_time_to"))
DAY = {n: datetime(2026, 3, n, tzinfo=UTC) for n in range(1, 10)}


def conditional(n, state):
    metadata = {"condition": "if it rains"} if state is None else {"condition": "x", "condition_state": state}
    return {"n": n, "epistemic_type": "conditional", "metadata": metadata}


MIXED = nodes(
    {"n": 1, "epistemic_type": "hypothetical"},
    {"n": 2, "epistemic_type": "deprecated"},
    {"n": 3, "epistemic_type": "unverified", "confidence": 0.30},
    {"n": 4, "epistemic_type": "unverified", "confidence": 0.31},
    {"n": 5, "lifecycle_state": "superseded"},
    {"n": 6, "lifecycle_state": "archived"},
    {"n": 7, "lifecycle_state": "deprecated"},
    conditional(8, None),
    conditional(9, "true"),
    conditional(10, "TRUE"),
    {"n": 11, "lifecycle_state": "contested"},
    conditional(12, "expired"),
    conditional(13, True),
    {"n": 14, "lifecycle_state": "archived", "epistemic_type": "hypothetical"},
)
REASONS = {
    1: "epistemic_filtered:hypothetical",
    2: "epistemic_filtered:deprecated",
    3: "unverified_below_threshold:0.30<=0.30",
    5: "lifecycle_filtered:superseded",
    6: "lifecycle_filtered:archived",
    7: "lifecycle_filtered:deprecated",
    8: "condition_filtered:unknown",
    10: "condition_filtered:unknown",
    12: "condition_filtered:expired",
    13: "condition_filtered:unknown",
    14: "lifecycle_filtered:archived",
}


def reasons(excluded):
    return {number(row["node_id"]): row["reason"] for row in excluded.to_pylist()}


def test_default_drops_by_the_first_rule_that_matches():
    kept, excluded = filter_epistemic(MIXED, mode=RetrievalMode.DEFAULT, unverified_threshold=0.30)
    assert reasons(excluded) == REASONS
    assert list(reasons(excluded)) == sorted(REASONS)
    assert numbers(kept) == [4, 9, 11]
    assert excluded.column("composite_score").null_count == excluded.num_rows


@pytest.mark.parametrize("mode", [RetrievalMode.EXPLICIT, RetrievalMode.AUDIT])
def test_other_modes_drop_nothing(mode):
    kept, excluded = filter_epistemic(MIXED, mode=mode, unverified_threshold=0.30)
    assert kept is MIXED
    assert excluded.num_rows == 0


def test_audit_can_name_what_default_would_drop():
    assert default_reasons(MIXED, unverified_threshold=0.30) == [REASONS.get(n) for n in range(1, 15)]


def test_the_threshold_is_a_setting_and_shown_with_two_decimals():
    table = nodes({"n": 1, "epistemic_type": "unverified", "confidence": 0.456})
    assert default_reasons(table, unverified_threshold=0.5) == ["unverified_below_threshold:0.46<=0.50"]
    assert default_reasons(table, unverified_threshold=0.45) == [None]


@pytest.mark.parametrize("table", [nodes(), nodes(1, 2)])
def test_a_pool_without_suspects_is_returned_as_it_is(table):
    assert filter_epistemic(table, mode=RetrievalMode.DEFAULT, unverified_threshold=0.3)[0] is table


def test_the_node_type_names_the_reason_before_the_source():
    table = nodes(
        {"n": 1, "node_type": "fact", "source_type": "tool_output"},
        {"n": 2, "source_type": "tool_output"},
        {"n": 3, "source_type": "user_stated"},
    )
    kept, excluded = filter_types(
        table, exclude_node_types=frozenset({NodeType.FACT}), source_types=frozenset({SourceType.USER_STATED})
    )
    assert numbers(kept) == [3]
    assert reasons(excluded) == {1: "node_type_filtered:fact", 2: "source_type_filtered:tool_output"}


def test_no_sources_allowed_is_not_the_same_as_no_filter():
    table = nodes(1, 2)
    assert filter_types(table, exclude_node_types=frozenset(), source_types=None)[0] is table
    kept, excluded = filter_types(table, exclude_node_types=frozenset(), source_types=frozenset())
    assert (kept.num_rows, excluded.num_rows) == (0, 2)


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [
        ({}, [1, 2, 3, 4]),
        # The validity of 1 ends exactly at the bound, which is exclusive; 3 is an entity, 4 never ends.
        ({"time_from": DAY[5]}, [2, 3, 4]),
        ({"time_from": DAY[4]}, [1, 2, 3, 4]),
        # Valid from the bound on is inside; entities are spared.
        ({"time_to": DAY[3]}, [1, 3, 4]),
        ({"knowledge_at": DAY[3]}, [1, 4]),
        # 2 happened on day 2 though it was told on day 4; 3 has no event time and counts as told.
        ({"event_time_to": DAY[2]}, [2]),
        ({"event_time_from": DAY[4], "event_time_to": DAY[4]}, [3]),
        ({"time_to": DAY[1], "knowledge_at": DAY[1]}, []),
    ],
)
def test_time_bounds(bounds, kept):
    table = nodes(
        {"n": 1, "created_at": "2026-03-03T00:00:00Z", "valid_to": "2026-03-05T00:00:00Z"},
        {"n": 2, "created_at": "2026-03-04T00:00:00Z", "event_time": "2026-03-02T00:00:00Z"},
        {"n": 3, "created_at": "2026-03-04T00:00:00Z", "valid_to": "2026-03-04T12:00:00Z", "node_type": "entity"},
        {"n": 4, "created_at": "2026-03-03T00:00:00Z"},
    )
    assert numbers(filter_time(table, **{**NO_BOUNDS, **bounds})) == kept


def test_a_bound_is_exact_to_the_microsecond():
    table = nodes({"n": 1, "created_at": "2026-03-03T00:00:00.000001Z"})
    assert filter_time(table, **{**NO_BOUNDS, "knowledge_at": DAY[3]}).num_rows == 0
    assert filter_time(table, **{**NO_BOUNDS, "knowledge_at": DAY[3].replace(microsecond=1)}) is table
