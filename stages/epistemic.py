"""Epistemic weights of candidates (RFC-0003 through RFC-0005 §7, digest a §1.2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from prme_ray.model.enums import ConditionState, EpistemicType, code
from prme_ray.model.settings import EPISTEMIC_WEIGHTS
from prme_ray.model.tables import codes, column
from stages.numeric import Floats

__all__ = ["epistemic_weights"]

_MISSING = 0.7
_CONDITIONAL = code(EpistemicType.CONDITIONAL)
# What a conditional memory weighs as, by the truth of its condition.
_WEIGHS_AS: dict[str | None, EpistemicType] = {
    None: EpistemicType.HYPOTHETICAL,
    ConditionState.UNKNOWN: EpistemicType.HYPOTHETICAL,
    ConditionState.TRUE: EpistemicType.ASSERTED,
    ConditionState.FALSE: EpistemicType.DEPRECATED,
    ConditionState.EXPIRED: EpistemicType.DEPRECATED,
}


def epistemic_weights(candidates: pa.Table, weights: Mapping[EpistemicType, float] | None) -> Floats:
    """Return each candidate's epistemic weight.

    A conditional memory weighs as its raw ``condition_state`` says; any other text there leaves it
    its own type's weight.

    Args:
        candidates: CANDIDATE table.
        weights: Weight a type; a missing type weighs 0.7. ``None``: the built-in table.
    """
    by_type = EPISTEMIC_WEIGHTS if weights is None else weights
    table = np.array([by_type.get(kind, _MISSING) for kind in EpistemicType], np.float64)
    kinds = codes(candidates, "epistemic_type")
    found: Floats = table[kinds]
    conditional = np.flatnonzero(kinds == _CONDITIONAL)
    if len(conditional):
        states = column(candidates, "condition_state").take(pa.array(conditional)).to_pylist()
        found[conditional] = [table[code(_WEIGHS_AS.get(state, EpistemicType.CONDITIONAL))] for state in states]
    return found
