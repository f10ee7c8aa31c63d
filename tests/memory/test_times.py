"""Instants are exact to the microsecond and bound what is found; refusals are in the tests of the verbs."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest

from tests.memory.tools import OWNER, Clock

KATHMANDU = timezone(timedelta(hours=5, minutes=45))
MOMENTS = [
    (datetime(2025, 3, 9, 2, 30, 0, 123456, tzinfo=UTC), datetime(2025, 3, 9, 2, 30, 0, 123456, tzinfo=UTC)),
    (datetime(2025, 1, 1, 0, 0, 0, 1, tzinfo=KATHMANDU), datetime(2024, 12, 31, 18, 15, 0, 1, tzinfo=UTC)),
    ("2026-02-28T23:59:59.999999-03:30", datetime(2026, 3, 1, 3, 29, 59, 999999, tzinfo=UTC)),
    ("2026-05-04T10:00:00Z", datetime(2026, 5, 4, 10, tzinfo=UTC)),
    ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ("1969-12-31T23:59:59.999999Z", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
]


@pytest.mark.parametrize(("given", "expected"), MOMENTS, ids=str)
def test_a_time_is_kept_exactly_everywhere(memory, opened, given, expected):
    stored = memory.store("a cat", owner=OWNER, event_time=given, valid_from=given)
    memory.close()
    memory = opened()
    node = memory.get(stored.node_id, owner=OWNER)
    assert node.event_time == node.valid_from == expected
    assert node.event_time.utcoffset() == timedelta(0)
    assert memory.get_event(stored.event_id, owner=OWNER).event_time == expected
    answer = memory.retrieve("cat", owner=OWNER, reference_time=given)
    assert answer.metadata.reference_time == expected
    assert answer.results[0].event_time == answer.results[0].valid_from == expected
    assert datetime.fromisoformat(answer.to_dict()["results"][0]["event_time"]) == expected


def test_two_admissions_never_have_one_time(opened):
    memory = opened(clock=Clock(step=timedelta(0)))
    stored = memory.store_many(["one", "two", "three"], owner=OWNER)
    created = [memory.get(item.node_id, owner=OWNER).created_at for item in stored]
    assert [later - earlier for earlier, later in pairwise(created)] == [timedelta(microseconds=1)] * 2


def found(memory, **bounds):
    return {candidate.content for candidate in memory.retrieve("cat", owner=OWNER, **bounds).results}


def test_validity_ends_exclusively_and_spares_entities_and_preferences(memory):
    window = {"valid_from": "2026-01-01T00:00:00Z", "valid_to": "2026-02-01T00:00:00Z"}
    memory.store("cat note", owner=OWNER, **window)
    memory.store("cat forever", owner=OWNER, valid_from="2026-01-01T00:00:00Z")
    memory.store_node("cat preference", owner=OWNER, node_type="preference", **window)
    memory.store_node("cat entity", owner=OWNER, node_type="entity", **window)
    exempt = {"cat preference", "cat entity"}
    assert found(memory, time_from="2026-02-01T00:00:00Z") == exempt | {"cat forever"}
    assert found(memory, time_from="2026-01-31T23:59:59.999999Z") == exempt | {"cat forever", "cat note"}
    assert found(memory, time_to="2026-01-01T00:00:00Z") == exempt | {"cat forever", "cat note"}
    assert found(memory, time_to="2025-12-31T23:59:59.999999Z") == exempt


def test_event_bounds_are_inclusive_and_fall_back_to_admission(memory):
    memory.store("cat then", owner=OWNER, event_time="2026-01-01T00:00:00Z")
    memory.store("cat now", owner=OWNER)
    memory.store_node("cat preference", owner=OWNER, node_type="preference", event_time="2026-01-01T00:00:00Z")
    both = {"cat then", "cat preference"}
    assert found(memory, event_time_from="2026-01-01T00:00:00Z", event_time_to="2026-01-01T00:00:00Z") == both
    assert found(memory, event_time_to="2026-01-01T00:00:00Z") == both
    assert found(memory, event_time_from="2026-01-01T00:00:00.000001Z") == {"cat now"}


def test_a_knowledge_cutoff_hides_what_came_later_and_says_so(memory):
    first = memory.store("cat one", owner=OWNER)
    memory.store_node("cat preference", owner=OWNER, node_type="preference")
    cutoff = memory.get(first.node_id, owner=OWNER).created_at
    answer = memory.retrieve("cat", owner=OWNER, knowledge_at=cutoff)
    assert answer.results.ids == [first.node_id]
    coverage = answer.metadata.historical_coverage
    assert (coverage.knowledge_at, coverage.semantics, coverage.exact_snapshot) == (cutoff, "ingestion_cutoff", False)
    assert answer.bundle.coverage_notice
    assert answer.bundle.context.startswith(answer.bundle.coverage_notice)
    assert memory.retrieve("cat", owner=OWNER).metadata.historical_coverage is None


def test_an_edge_that_had_ended_by_the_bound_leads_nowhere(opened):
    memory = opened(settings={"disabled_channels": ["VECTOR", "LEXICAL"], "link_entities": False})
    anna = memory.store_node("Anna", owner=OWNER, node_type="entity").node_id
    fact = memory.store_node("works as a baker", owner=OWNER, node_type="preference").node_id
    memory.store_edge(
        anna, fact, "has_fact", owner=OWNER, valid_from="2020-01-01T00:00:00Z", valid_to="2026-01-01T00:00:00Z"
    )

    def ask(**bounds):
        return memory.retrieve("what does Anna do", owner=OWNER, **bounds).results.ids

    assert ask() == ask(time_from="2025-12-31T00:00:00Z") == ask(time_to="2025-12-31T00:00:00Z") == [fact]
    assert ask(time_from="2026-01-01T00:00:00Z") == []
