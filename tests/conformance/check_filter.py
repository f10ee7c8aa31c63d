"""Golden file ``filter``; the shape of ``given`` tells what a case asks for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from prme_ray.model.enums import LifecycleState, RetrievalMode
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.request import make_request
from prme_ray.model.settings import Settings
from prme_ray.model.tables import texts
from stages.filter import filter_epistemic, filter_time, filter_types
from tests.conformance.tables import nodes_table, time

_THRESHOLD = 0.30
_BOUNDS = ("time_from", "time_to", "knowledge_at", "event_time_from", "event_time_to")


def _outcome(kept: pa.Table, excluded: pa.Table) -> dict[str, Any]:
    return {
        "kept": texts(kept, "node_id"),
        "excluded": [{"id": row["node_id"], "reason": row["reason"]} for row in excluded.to_pylist()],
    }


def _types(given: dict[str, Any]) -> dict[str, Any]:
    """Return a case's type filters as a checked request holds them."""
    request = make_request(
        "q",
        request_id="r",
        tenant="golden",
        owner="owner-1",
        now=datetime(2026, 1, 1, tzinfo=UTC),
        settings=Settings(),
        exclude_node_types=given.get("exclude_node_types"),
        source_types=given.get("source_types"),
    )
    return {"exclude_node_types": request.exclude_node_types, "source_types": request.source_types}


def _valid(given: dict[str, Any]) -> bool:
    try:
        _types(given)
    except InvalidRequest:
        return False
    return True


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Run the stage on one case."""
    given = case["given"]
    if "nodes" not in given:
        return {"valid": _valid(given)}
    nodes = nodes_table(given["nodes"])
    if "knowledge_at" in given:
        kept = filter_time(nodes, **{name: time(given[name]) for name in _BOUNDS})
        return {"kept": texts(kept, "node_id")}
    if "mode" not in given:
        return _outcome(*filter_types(nodes, **_types(given)))
    threshold = _THRESHOLD if given["unverified_threshold"] is None else given["unverified_threshold"]
    return _outcome(*filter_epistemic(nodes, mode=RetrievalMode(given["mode"]), unverified_threshold=threshold))


def deviation(case: dict[str, Any]) -> dict[str, Any] | None:
    """Return what decision 7 makes of a case with memories in the lifecycle state ``deprecated``.

    With those in another state the product must agree with the case, and as given it must drop them
    first. Where the file spells the result out itself, that must be the same.
    """
    given = case["given"]
    if given.get("mode") != RetrievalMode.DEFAULT:
        return None
    states = {item["id"]: item.get("lifecycle_state") for item in given.get("nodes", ())}
    dropped = {name for name, state in states.items() if state == LifecycleState.DEPRECATED}
    if not dropped:
        return None
    others = [item | {"lifecycle_state": "stable"} if item["id"] in dropped else item for item in given["nodes"]]
    reasons = {item["id"]: item["reason"] for item in case["expect"].get("excluded", ())}
    reasons |= dict.fromkeys(dropped, f"lifecycle_filtered:{LifecycleState.DEPRECATED}")
    decided = {
        "kept": [name for name in case["expect"].get("kept", ()) if name not in dropped],
        "excluded": [{"id": name, "reason": reasons[name]} for name in states if name in reasons],
    }
    found = actual(case)
    return {
        "decision": 7,
        "actual": {"otherwise": actual(case | {"given": given | {"nodes": others}}), "decided": found, "stated": found},
        "expected": {
            "otherwise": case["expect"],
            "decided": decided,
            "stated": case.get("expect_with_deviation", decided),
        },
    }
