import pytest

from prme_ray.model.enums import EpistemicType
from stages.epistemic import epistemic_weights
from tests.stages.scoring_pool import candidate, pool


def test_built_in_weights_of_every_type():
    table = pool(*(candidate(number, epistemic_type=kind.value) for number, kind in enumerate(EpistemicType)))
    # A conditional memory without a condition state weighs as a hypothetical one.
    assert epistemic_weights(table, None).tolist() == [1.0, 0.9, 0.7, 0.3, 0.3, 0.1, 0.5]


@pytest.mark.parametrize(
    ("state", "weight"),
    [("true", 0.9), ("unknown", 0.3), (None, 0.3), (7, 0.3), ("false", 0.1), ("expired", 0.1), ("TRUE", 0.5)],
)
def test_a_conditional_memory_weighs_as_its_condition(state, weight):
    table = pool(
        candidate(1, epistemic_type="conditional", metadata={"condition_state": state}),
        candidate(2, epistemic_type="observed", metadata={"condition_state": state}),
    )
    assert epistemic_weights(table, None).tolist() == [weight, 1.0]


def test_a_type_missing_from_the_callers_map_weighs_seven_tenths():
    table = pool(candidate(1, epistemic_type="observed"), candidate(2, epistemic_type="inferred"))
    assert epistemic_weights(table, {EpistemicType.INFERRED: 0.2}).tolist() == [0.7, 0.2]
