"""Builds the product's tables from the neutral records of golden files (shared/golden/README.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from prme_ray.model.enums import (
    Adjustment,
    DecayProfile,
    EpistemicType,
    LifecycleState,
    NodeType,
    Path,
    Scope,
    SourceType,
    code,
    path_names,
)
from prme_ray.model.nodes import Node, node_table
from prme_ray.model.tables import CANDIDATE, LINEAGE, SCORED, refer, texts
from prme_ray.model.times import from_micros, instant

_EPOCH = "2020-01-01T00:00:00Z"


def time(value: str | None) -> datetime | None:
    """Return a golden time as an aware datetime."""
    return instant(value, "golden")


def node(given: dict[str, Any]) -> Node:
    """Return a golden node as a product node; fields a case leaves out get harmless values."""
    created = given.get("created_at", _EPOCH)
    return Node(
        id=given["id"],
        content=given.get("content", ""),
        node_type=NodeType(given.get("node_type", "note")),
        session_id=given.get("session_id"),
        scope=Scope(given.get("scope", "personal")),
        epistemic_type=EpistemicType(given.get("epistemic_type", "asserted")),
        source_type=SourceType(given.get("source_type", "user_stated")),
        lifecycle_state=LifecycleState(given.get("lifecycle_state", "tentative")),
        decay_profile=DecayProfile(given.get("decay_profile", "medium")),
        confidence=given.get("confidence", 0.5),
        salience=given.get("salience", 0.5),
        confidence_base=given.get("confidence_base", 0.5),
        salience_base=given.get("salience_base", 0.5),
        reinforcement_boost=given.get("reinforcement_boost", 0.0),
        created_at=time(created),
        updated_at=time(given.get("updated_at", created)),
        event_time=time(given.get("event_time")),
        valid_from=time(given.get("valid_from", created)),
        valid_to=time(given.get("valid_to")),
        last_reinforced_at=time(given.get("last_reinforced_at", created)),
        superseded_by=given.get("superseded_by"),
        pinned=given.get("pinned", False),
        evidence_refs=tuple(given.get("evidence_refs", ())),
        metadata=given.get("metadata"),
    )


def nodes_table(given: list[dict[str, Any]]) -> pa.Table:
    """Return a NODE table of golden nodes, in their order."""
    return node_table([node(item) for item in given])


def _mask(paths: list[str]) -> int:
    return sum(Path(path).bit for path in paths)


def candidates_table(given: list[dict[str, Any]]) -> pa.Table:
    """Return a CANDIDATE table of golden candidates (before scoring)."""
    size = len(given)
    columns = {
        "node": refer(nodes_table([item["node"] for item in given]), np.arange(size)),
        "paths": [_mask(item["paths"]) for item in given],
        "path_count": [item["path_count"] for item in given],
        "semantic_score": [item.get("semantic_score", 0.0) for item in given],
        "lexical_score": [item.get("lexical_score", 0.0) for item in given],
        "graph_proximity": [item.get("graph_proximity", 0.0) for item in given],
    }
    return _table(columns, CANDIDATE, size)


def _table(columns: dict[str, Any], schema: pa.Schema, size: int) -> pa.Table:
    return pa.Table.from_arrays([_array(columns.get(field.name), field, size) for field in schema], schema=schema)


def _array(values: Any, field: pa.Field, size: int) -> Any:
    if values is None:
        return pa.nulls(size, field.type) if field.nullable else pa.array([0.0] * size, field.type)
    if isinstance(values, pa.Array):
        return values
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else pa.array(values, field.type)


def scored_table(given: list[dict[str, Any]]) -> pa.Table:
    """Return a SCORED table of golden scored candidates, in their rank order."""
    table = candidates_table(given)
    provenance = [item.get("provenance") or {} for item in given]
    link = [item.get("session_context_link") or {} for item in given]
    own = [item["node"]["id"] for item in given]
    columns: dict[str, Any] = {name: table.column(name) for name in table.schema.names} | {
        "composite_score": [item["composite_score"] for item in given],
        "context_relevance": [item.get("context_relevance", 0.0) for item in given],
        "semantic_relevance": [item.get("semantic_relevance") for item in given],
        "has_own_trace": [True] * len(given),
        "reranker_score": [item.get("reranker_score") for item in given],
        "session_trigger_id": [item.get("trigger_id") for item in link],
        "session_offset": [item.get("offset") for item in link],
        "contradicts_id": [None] * len(given),
        "adjustments": [
            [
                {
                    "kind": code(Adjustment(step["kind"])),
                    "coefficient": step["coefficient"],
                    "source_node_id": step["source_node_id"],
                    "neural_score": step.get("neural_score"),
                }
                for step in item.get("adjustments", ())
            ]
            for item in provenance
        ],
    }
    lineage = {
        "formula_version": [item.get("formula_version", 2) for item in provenance],
        "base_node_id": [item.get("base_node_id", name) for item, name in zip(provenance, own, strict=True)],
        "base_score": [
            item.get("base_score", row["composite_score"]) for item, row in zip(provenance, given, strict=True)
        ],
        "trace_semantic": [
            item.get("semantic_similarity", row.get("semantic_score", 0.0))
            for item, row in zip(provenance, given, strict=True)
        ],
    }
    columns["lineage"] = refer(_table(lineage, LINEAGE, len(given)), np.arange(len(given)))
    return _table(columns, SCORED, len(given))


def windows_table(nodes: pa.Table, trigger_ids: list[str], offsets: list[int]) -> pa.Table:
    """Return session windows: references to the rows of a NODE table, triggers and offsets."""
    ids = texts(nodes, "node_id")
    firsts = [ids.index(node_id) for node_id in ids]
    return pa.table(
        {
            "node": refer(nodes, np.array(firsts, np.int32)),
            "trigger_id": pa.array(trigger_ids, pa.string()),
            "offset": pa.array(offsets, pa.int32()),
        }
    )


def adjustments(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the adjustments of a SCORED row in golden form."""
    steps = []
    for step in row["adjustments"]:
        item = {
            "kind": str(tuple(Adjustment)[step["kind"]]),
            "coefficient": step["coefficient"],
            "source_node_id": step["source_node_id"],
        }
        if step["neural_score"] is not None:
            item["neural_score"] = step["neural_score"]
        steps.append(item)
    return steps


def result(row: dict[str, Any]) -> dict[str, Any]:
    """Return a SCORED row as a golden "result" (expected candidate of a context stage)."""
    found: dict[str, Any] = {
        "id": row["node_id"],
        "composite_score": row["composite_score"],
        "paths": list(path_names(row["paths"])),
        "path_count": row["path_count"],
        "semantic_score": row["semantic_score"],
        "context_relevance": row["context_relevance"],
        "relevance": max(0.0, row["semantic_score"], row["trace_semantic"], row["context_relevance"]),
        "has_own_trace": row["has_own_trace"],
        "provenance": {
            "formula_version": row["formula_version"],
            "base_node_id": row["base_node_id"],
            "base_score": row["base_score"],
            "semantic_similarity": row["trace_semantic"],
            "adjustments": adjustments(row),
        },
    }
    if row["session_trigger_id"] is not None:
        found["session_context_link"] = {"trigger_id": row["session_trigger_id"], "offset": row["session_offset"]}
    if row["reranker_score"] is not None:
        found["reranker_score"] = row["reranker_score"]
    return found


def golden_time(value: int | None) -> str | None:
    """Return microseconds since the epoch in golden spelling."""
    if value is None:
        return None
    return from_micros(value).isoformat().replace("+00:00", "Z")
