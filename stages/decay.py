"""Virtual decay: salience and confidence as they stand at the reference time (RFC §7, digest a §6.2).

Nothing is written back; the stored bases plus the clock of the request give the same values for ever.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa

from prme_ray.model.enums import DecayProfile, EpistemicType, LifecycleState, code
from prme_ray.model.tables import bools, codes, floats, times
from prme_ray.model.times import micros
from stages.numeric import Floats, exp
from stages.recency import days_between

__all__ = ["DECAY_RATES", "effective_salience_confidence"]

DECAY_RATES: dict[DecayProfile, float] = {
    DecayProfile.PERMANENT: 0.0,
    DecayProfile.SLOW: 0.005,
    DecayProfile.MEDIUM: 0.020,
    DecayProfile.FAST: 0.070,
    DecayProfile.RAPID: 0.200,
}
"""Decay of salience per day (digest a §1.1); confidence decays at half the rate."""

_RATES = np.array([DECAY_RATES[profile] for profile in DecayProfile])
_REINFORCEMENT_RATE = 0.10
_OBSERVED_GRACE_DAYS = 180.0


def effective_salience_confidence(candidates: pa.Table, *, reference_time: datetime) -> tuple[Floats, Floats]:
    """Return effective salience and confidence, a value a row, in [0, 1].

    Pinned, permanent, archived and deprecated memories keep their bases. The confidence of an
    observed memory holds for its first 180 days and then takes the whole decay since day 0.

    Args:
        candidates: CANDIDATE table.
        reference_time: The request's clock, aware.
    """
    age = days_between(micros(reference_time), times(candidates, "last_reinforced_at"))
    rate = _RATES[codes(candidates, "decay_profile")]
    salience_base = floats(candidates, "salience_base")
    confidence_base = floats(candidates, "confidence_base")
    boost = floats(candidates, "reinforcement_boost")

    salience = salience_base * exp(-rate * age) + boost * exp(-_REINFORCEMENT_RATE * age)
    confidence = confidence_base * exp(-0.5 * rate * age)

    state = codes(candidates, "lifecycle_state")
    exempt = (
        bools(candidates, "pinned")
        | (codes(candidates, "decay_profile") == code(DecayProfile.PERMANENT))
        | (state == code(LifecycleState.ARCHIVED))
        | (state == code(LifecycleState.DEPRECATED))
    )
    fresh_observation = (codes(candidates, "epistemic_type") == code(EpistemicType.OBSERVED)) & (
        age < _OBSERVED_GRACE_DAYS
    )
    return (
        np.where(exempt, salience_base, np.clip(salience, 0.0, 1.0)),
        np.where(exempt | fresh_observation, confidence_base, np.clip(confidence, 0.0, 1.0)),
    )
