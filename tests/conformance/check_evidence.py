"""Golden file ``evidence``: projection and augmentation; the source look-up is a plain one over the store."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from prme_ray.model.enums import NodeType, RetrievalMode, SourceType
from prme_ray.model.settings.packing import PackingSettings
from prme_ray.model.tables import records
from stages.expand_evidence import evidence_refs, expand_evidence
from stages.filter import filter_epistemic, filter_time, filter_types
from tests.conformance.tables import nodes_table, result, scored_table, time

_ACTIVE = {"tentative", "stable", "contested"}
_BOUNDS = ("time_from", "time_to", "knowledge_at", "event_time_from", "event_time_to")
_THRESHOLD = 0.30


def _direct(given: dict[str, Any], wanted: list[str]) -> list[dict[str, Any]]:
    return [
        item
        for item in given["store"]
        if item["id"] in wanted
        and item.get("user_id", "owner-1") == given["user_id"]
        and item.get("lifecycle_state", "tentative") in _ACTIVE
        and (given["scopes"] is None or item.get("scope", "personal") in given["scopes"])
    ]


def _eligible(given: dict[str, Any], wanted: list[str]) -> pa.Table:
    excluded, allowed = given["exclude_node_types"] or (), given["source_types"]
    found = filter_time(nodes_table(_direct(given, wanted)), **{name: time(given[name]) for name in _BOUNDS})
    found, _ = filter_types(
        found,
        exclude_node_types=frozenset(NodeType(name) for name in excluded),
        source_types=None if allowed is None else frozenset(SourceType(name) for name in allowed),
    )
    return filter_epistemic(found, mode=RetrievalMode(given["mode"]), unverified_threshold=_THRESHOLD)[0]


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Run the stage on one case."""
    given = case["given"]
    packing = PackingSettings(**given["config"])
    scored = scored_table(given["scored"])
    sources = _eligible(given, evidence_refs(scored, packing))
    found = expand_evidence(scored, sources, packing=packing)
    return {
        "results": [result(row) for row in records(found.table)],
        "added": list(found.added),
        "removed": list(found.removed),
    }
