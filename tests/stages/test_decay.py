import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.decay import effective_salience_confidence
from tests.stages.scoring_pool import REF, candidate, pool


def decayed(**node):
    fields = {"salience_base": 0.5, "confidence_base": 0.8, **node}
    salience, confidence = effective_salience_confidence(pool(candidate(1, **fields)), reference_time=REF)
    return float(salience[0]), float(confidence[0])


@pytest.mark.parametrize(
    ("kind", "profile", "age", "expected"),
    [
        ("observed", "slow", 100, (0.3032653299, 0.8)),
        ("observed", "slow", 180, (0.2032848299, 0.5101025213)),
        ("asserted", "medium", 30, (0.2744058180, 0.5926545765)),
        ("unverified", "rapid", 10, (0.0676676416, 0.2943035529)),
    ],
)
def test_decay_by_profile_and_age(kind, profile, age, expected):
    assert decayed(epistemic_type=kind, decay_profile=profile, age=age) == pytest.approx(expected, abs=1e-9)


def test_reinforcement_fades_at_its_own_rate():
    found = decayed(salience_base=0.9, reinforcement_boost=0.3, age=10)
    assert found == pytest.approx((0.8472215101, 0.7238699344), abs=1e-9)


@pytest.mark.parametrize(
    "exempt",
    [
        {"pinned": True},
        {"decay_profile": "permanent"},
        {"lifecycle_state": "archived"},
        {"lifecycle_state": "deprecated"},
    ],
)
def test_exempt_memories_keep_their_bases(exempt):
    assert decayed(age=1000, reinforcement_boost=0.4, **exempt) == (0.5, 0.8)


@given(base=st.floats(0, 1), boost=st.floats(0, 50), age=st.floats(-10, 5000))
def test_effective_values_stay_in_range(base, boost, age):
    salience, confidence = decayed(salience_base=base, confidence_base=base, reinforcement_boost=boost, age=age)
    assert 0.0 <= salience <= 1.0
    assert 0.0 <= confidence <= base


def test_an_empty_pool():
    salience, confidence = effective_salience_confidence(pool(), reference_time=REF)
    assert len(salience) == len(confidence) == 0
