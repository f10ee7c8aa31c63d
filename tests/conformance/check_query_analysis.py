"""Query analysis against the golden vectors.

The reference never produces DURATION and RECURRING signals; ours are reported beside the dated
ones: ``deviation`` leaves them out, and the product must then agree with the case.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from prme_ray.model.enums import TemporalType
from prme_ray.model.times import iso
from stages.analyze import analyze
from tests.conformance.tables import time

_DATED = {TemporalType.ABSOLUTE, TemporalType.RELATIVE}


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Return the analysis of the case's question in golden form."""
    given = case["given"]
    found = analyze(
        given["query"],
        reference_time=time(given["reference_time"]),
        intent_order=given["intent_order"],
        time_from=time(given.get("time_from")),
        time_to=time(given.get("time_to")),
    )
    return {
        "intent": str(found.intent),
        "entities": [entity.name for entity in found.entities],
        "temporal_signals": [
            {"type": str(signal.type), "value": signal.value, "resolved": _text(signal.resolved)}
            for signal in found.temporal_signals
        ],
        "time_from": _text(found.time_from),
        "time_to": _text(found.time_to),
        "is_aggregation": found.is_aggregation,
        "current_state": found.current_state,
        "explicit_wording": found.explicit_wording,
        "implicit_pattern": found.implicit_pattern,
        "recent_episodic": found.recent_episodic,
        "answer_class_pattern": found.answer_class_pattern,
    }


def deviation(case: dict[str, Any]) -> dict[str, Any] | None:
    """Return what decision 10 makes of a question with such signals: the same without them."""
    found = actual(case)
    dated = [signal for signal in found["temporal_signals"] if signal["type"] in _DATED]
    if len(dated) == len(found["temporal_signals"]):
        return None
    return {"decision": 10, "actual": found | {"temporal_signals": dated}, "expected": case["expect"]}


def _text(value: datetime | None) -> str | None:
    return None if value is None else iso(value)
