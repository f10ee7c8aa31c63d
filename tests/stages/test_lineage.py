"""Appending adjustments, against plain lists."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.enums import Adjustment, code
from prme_ray.model.tables import SCORED
from stages.lineage import append_adjustments

LISTS = SCORED.field("adjustments").type


def step(kind, coefficient, source, neural=None):
    return {"kind": code(kind), "coefficient": coefficient, "source_node_id": source, "neural_score": neural}


old_steps = st.lists(st.builds(step, st.just(Adjustment.CURRENT_UPDATE), st.floats(1, 2), st.just("old")), max_size=3)


@given(st.lists(st.tuples(old_steps, st.booleans()), max_size=8), st.integers(0, 3))
def test_each_chosen_list_gets_its_step_at_the_end(rows, cut):
    # A slice shares its parent's values: the offsets do not start at 0.
    lists = pa.array([steps for steps, _ in rows], LISTS).slice(min(cut, len(rows)))
    rows = rows[cut:]
    chosen = [row for row, (_, is_chosen) in enumerate(rows) if is_chosen]
    found = append_adjustments(
        lists,
        np.array(chosen, dtype=np.int64),
        count=len(rows),
        kind=Adjustment.SESSION_DECAY,
        coefficients=np.array([row / 10 for row in chosen]),
        sources=pa.array([f"trigger-{row}" for row in chosen], pa.string()),
    )
    found.validate(full=True)
    assert found.type == LISTS
    assert found.to_pylist() == [
        [*steps, step(Adjustment.SESSION_DECAY, row / 10, f"trigger-{row}")] if is_chosen else steps
        for row, (steps, is_chosen) in enumerate(rows)
    ]


def test_a_blend_keeps_the_neural_score():
    found = append_adjustments(
        pa.array([[]], LISTS),
        np.array([0]),
        count=1,
        kind=Adjustment.NEURAL_BLEND,
        coefficients=np.array([0.3]),
        sources=pa.array(["a"]),
        neural=np.array([0.9]),
    )
    assert found.to_pylist() == [[step(Adjustment.NEURAL_BLEND, 0.3, "a", 0.9)]]
