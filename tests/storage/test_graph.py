from collections import deque

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from prme_ray.model.enums import EdgeType, LifecycleState, Scope
from prme_ray.model.errors import InvalidRequest
from storage.graph import PROXIMITY
from storage.records import Filters
from tests.storage.log_rows import uuid
from tests.storage.owner_rows import at, entity, ids, link, memory, numbers, state_of

LOOSE = {"hops": 3, "k": 150, "min_confidence": 0.0}


def reach(view, *names, filters=None, **changes):
    mask = view.eligible(filters or Filters())
    table = view.graph(names, **{**LOOSE, **changes}, eligible=mask)
    return dict(zip(numbers(table), table.column("signal").to_pylist(), strict=True))


def chain_of(*between):
    """Entity 1 named Ada, then memories 2, 3, … in a row; ``between`` changes memory 2."""
    first = between[0] if between else memory(2, "first")
    return [entity(1, "Ada"), first, memory(3, "second"), memory(4, "third"), memory(5, "fourth")]


EDGES = [link(10, 1, 2), link(11, 3, 2), link(12, 3, 4), link(13, 4, 5)]


def test_proximity_falls_with_hops_and_edges_count_both_ways():
    view = state_of(*chain_of(), *EDGES).view()
    assert reach(view, "ada") == {4: 0.4, 3: 0.7, 2: 1.0}  # newest first: equal confidence
    assert reach(view, "ada", hops=1) == {2: 1.0}
    assert reach(view, "ada", k=2) == {4: 0.4, 3: 0.7}
    assert reach(view, "ada", k=0) == reach(view, "nobody") == reach(view) == reach(view, " ", "") == {}
    with pytest.raises(InvalidRequest, match="1 to 3"):
        reach(view, "ada", hops=4)


@pytest.mark.parametrize(
    ("middle", "filters"),
    [
        (memory(2, "first", lifecycle_state=LifecycleState.ARCHIVED), None),
        (memory(2, "first", scope=Scope.PROJECT), Filters(scopes=frozenset({Scope.PERSONAL}))),
        (memory(2, "first", valid_to=at(20)), Filters(time_from=at(30))),
        (entity(2, "hub", structural=True, lifecycle_state=LifecycleState.ARCHIVED), None),
    ],
)
def test_no_path_leads_through_what_the_request_may_not_see(middle, filters):
    assert reach(state_of(*chain_of(middle), *EDGES).view(), "ada", filters=filters) == {}


def test_audit_goes_through_superseded_memories_and_returns_them():
    view = state_of(*chain_of(memory(2, "first", lifecycle_state=LifecycleState.SUPERSEDED)), *EDGES).view()
    assert reach(view, "ada", filters=Filters(include_inactive=True)) == {4: 0.4, 3: 0.7, 2: 1.0}


def test_a_hub_carries_paths_and_is_never_returned():
    hub = entity(2, "hub", structural=True, scope=Scope.SYSTEM)
    view = state_of(*chain_of(hub), *EDGES).view()
    assert reach(view, "ada", filters=Filters(scopes=frozenset({Scope.PERSONAL}))) == {4: 0.4, 3: 0.7}
    assert reach(view, "hub") == {1: 1.0, 3: 1.0, 4: 0.7, 5: 0.4}


@pytest.mark.parametrize(
    ("fields", "arguments", "open_"),
    [
        ({"confidence": 0.39}, {"min_confidence": 0.4}, False),
        ({"confidence": 0.4}, {"min_confidence": 0.4}, True),
        ({"valid_from": at(10), "valid_to": at(20)}, {"at": at(10)}, True),
        ({"valid_from": at(10), "valid_to": at(20)}, {"at": at(20)}, False),
        ({"valid_from": at(10)}, {"at": at(9)}, False),
        ({"valid_from": at(10), "valid_to": at(20)}, {}, True),
        ({}, {"filters": Filters(at=at(9))}, False),
        ({}, {"filters": Filters(knowledge_at=at(10))}, True),
        ({"created_at": at(99)}, {"filters": Filters(knowledge_at=at(10))}, False),
    ],
)
def test_each_edge_of_a_path_is_checked(fields, arguments, open_):
    view = state_of(entity(1, "Ada"), memory(2, "first"), link(10, 1, 2, **fields)).view()
    assert reach(view, "Ada", **arguments) == ({2: 1.0} if open_ else {})


def test_a_seed_is_returned_only_when_another_seed_reaches_it():
    view = state_of(entity(1, "Ada Byron"), entity(2, "ADA Lovelace"), entity(3, "Adam"), link(10, 1, 2)).view()
    assert reach(view, "ada b", "ada l") == {2: 1.0, 1: 1.0}
    assert reach(view, "ada b") == {2: 1.0}


def test_names_are_compared_without_case_in_one_spelling():
    view = state_of(entity(1, "STRASSE Ünal"), memory(2, "x"), link(10, 1, 2)).view()
    assert reach(view, "straße") == reach(view, "u\u0308nal") == {2: 1.0}


def test_at_most_100_seeds_the_newest_ones():
    rows = [row for seq in range(1, 103) for row in (entity(seq, "Ada"), memory(200 + seq, "x", created=seq))]
    edges = [link(400 + seq, seq, 200 + seq) for seq in range(1, 103)]
    assert sorted(reach(state_of(*rows, *edges).view(), "ada")) == list(range(203, 303))


def test_the_cut_is_by_confidence_then_age_then_id():
    rows = [
        entity(1, "Ada"),
        *(
            memory(seq, "x", confidence=c, created=t)
            for seq, c, t in [(2, 0.5, 9), (3, 0.9, 1), (4, 0.5, 9), (5, 0.5, 10)]
        ),
    ]
    view = state_of(*rows, *(link(20 + seq, 1, seq) for seq in (2, 3, 4, 5))).view()
    assert list(reach(view, "ada")) == [3, 5, 2, 4]


def test_an_edge_waits_for_its_ends_and_a_foreign_end_never_comes():
    state = state_of(entity(1, "Ada"), link(10, 1, 12), link(11, 1, 99))
    assert reach(state.view(), "ada") == {}
    state.apply([memory(12, "late")])
    assert reach(state.view(), "ada") == {12: 1.0}


@hypothesis_settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=25), st.sets(st.integers(1, 12), min_size=1)
)
def test_distances_equal_a_breadth_first_search_in_any_order_of_the_edges(pairs, named):
    rows = [entity(seq, "Ada" if seq in named else f"n{seq}") for seq in range(1, 13)]
    edges = [link(20 + place, *pair) for place, pair in enumerate(pairs)]
    turned = [link(20 + place, *pair) for place, pair in enumerate(reversed(pairs))]
    near: dict[int, set[int]] = {seq: set() for seq in range(1, 13)}
    for one, other in pairs:
        near[one].add(other)
        near[other].add(one)
    best: dict[int, int] = {}
    for seed in named:
        hops, queue = {seed: 0}, deque([seed])
        while queue:
            here = queue.popleft()
            for other in near[here] - hops.keys():
                hops[other] = hops[here] + 1
                queue.append(other)
        for other, distance in hops.items():
            if 1 <= distance <= 3:
                best[other] = min(best.get(other, 9), distance)
    expected = {seq: PROXIMITY[distance - 1] for seq, distance in best.items()}
    assert reach(state_of(*rows, *edges).view(), "ada") == expected
    assert reach(state_of(*rows, *turned).view(), "ada") == expected


def test_counterparts_prefer_outgoing_then_newest_then_id():
    contested = {"lifecycle_state": LifecycleState.CONTESTED}
    rows = [*(memory(seq, "x", **contested) for seq in (1, 2, 3, 4)), memory(5, "calm")]
    kind = EdgeType.CONTRADICTS
    edges = [
        link(10, 1, 2, kind=kind),
        link(11, 1, 3, kind=kind, created_at=at(50)),
        link(12, 1, 4, kind=kind, created_at=at(50)),
        link(13, 4, 1, kind=kind, created_at=at(99)),
        link(14, 2, 5),
        link(15, 5, 2, kind=kind, created_at=at(1)),
    ]
    found = state_of(*rows, *edges).view().contradictions([uuid("a", seq) for seq in (1, 2, 3, 4, 5, 77)])
    assert {int(one[-2:]): int(other[-2:]) for one, other in found.items()} == {1: 3, 2: 1, 3: 1, 4: 1}


def test_answers_are_channel_tables():
    view = state_of(*chain_of(), *EDGES).view()
    table = view.graph(["ada"], **LOOSE, eligible=view.eligible(Filters()))
    assert ids(table) == [uuid("a", seq) for seq in (4, 3, 2)]
