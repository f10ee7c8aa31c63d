import numpy as np
import pytest

from stages.tiers import priority_order, tier_codes
from tests.stages.packing_cases import memory, table

TWO = ["VECTOR", "LEXICAL"]


def order(rows, ordering, tokens, tiers=None, packable=None) -> list[int]:
    count = rows.num_rows
    found = priority_order(
        rows,
        tiers=tier_codes(rows, triggers={}) if tiers is None else tiers,
        ordering=ordering,
        tokens=np.array(tokens),
        packable=np.ones(count, bool) if packable is None else np.array(packable),
        id_rank=np.arange(count),
    )
    return found.tolist()


def test_tiers() -> None:
    rows = table(
        memory(0, "x", node_type="instruction", pinned=True),
        memory(1, "x", pinned=True),
        memory(2, "x", salience=1.0),
        memory(3, "x", salience=0.999),
        memory(4, "x", node_type="task", lifecycle_state="stable"),
        memory(5, "x", node_type="task", lifecycle_state="contested"),
        memory(6, "x", node_type="intent", lifecycle_state="contested"),
        memory(7, "x", node_type="intent", lifecycle_state="superseded"),
        memory(8, "x", paths=["VECTOR", "EPISODE_CONTEXT"]),
        memory(9, "x", paths=["EVIDENCE_CONTEXT"]),
        memory(10, "x", paths=TWO),
        memory(11, "x", paths=["SESSION_CONTEXT"]),
    )
    assert tier_codes(rows, triggers={}).tolist() == [0, 1, 1, 4, 1, 4, 1, 4, 2, 2, 3, 4]


def test_a_session_neighbour_joins_a_trigger_of_the_multipath_tier_or_above() -> None:
    rows = table(memory(0, "x", pinned=True), memory(1, "x"), memory(2, "x"), memory(3, "x"), memory(4, "x", paths=TWO))
    assert tier_codes(rows, triggers={2: 0, 3: 1}).tolist() == [1, 4, 3, 4, 3]
    assert tier_codes(rows, triggers={2: 4, 0: 4}).tolist() == [1, 4, 3, 4, 3]


@pytest.mark.parametrize(
    ("ordering", "expected"), [("balanced", [0, 1, 2]), ("density", [1, 2, 0]), ("score", [0, 2, 1])]
)
def test_multipath_orderings(ordering: str, expected: list[int]) -> None:
    """Golden examples 8 and 9: quarter-power values .235, .394, .312 behind the front record."""
    rows = table(memory(0, "x", 0.90, paths=TWO), memory(1, "x", 0.80, paths=TWO), memory(2, "x", 0.85, paths=TWO))
    assert order(rows, ordering, [215, 17, 55]) == expected


def test_the_front_record_has_text_and_two_paths_and_ties_go_to_the_smaller_id() -> None:
    rows = table(*[memory(number, "x", score, paths=TWO) for number, score in enumerate([0.9, 0.8, 0.8, 0.7])])
    assert order(rows, "balanced", [10_000, 10_000, 10_000, 1], packable=[False, True, True, True]) == [1, 3, 0, 2]


def test_a_cost_of_zero_counts_as_one() -> None:
    rows = table(memory(0, "x", 0.8, paths=TWO), memory(1, "x", 0.9, paths=TWO))
    assert order(rows, "density", [0, 1]) == [1, 0]
    assert order(rows, "density", [0, 2]) == [0, 1]


def test_equal_values_are_ordered_by_id() -> None:
    rows = table(*[memory(number, "x", 0.5) for number in range(4)])
    assert order(rows, "score", [1, 1, 1, 1]) == [0, 1, 2, 3]
