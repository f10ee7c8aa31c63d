"""Leaves out the columns that follow from others, and makes them again.

A column is left out only where working it out again gives the very same bits, which is tried on the
spot; else it is written like any other. The two formulas are frozen: receipts are replayed with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from prme_ray.model.settings.scoring import ScoringSettings
from prme_ray.model.tables import column, field_numbers, floats, parts
from prme_ray.records.columns import Column
from stages.formulas import SIGNALS, fused_score, pool_relative, weighted_score
from stages.score import Scored

__all__ = ["restored", "shortened"]

_FACTORS = ("epistemic_factor", "node_type_factor", "temporal_factor")


def shortened(columns: dict[str, Column], scoring: ScoringSettings, scored: Scored) -> dict[str, Any]:
    """Take columns out of ``columns``; return the rules that :func:`restored` needs to put them back.

    Args:
        columns: The selected candidates' columns; changed.
        scoring: Scoring settings in force.
        scored: The whole pool with its scores.
    """
    rules: dict[str, Any] = {}
    if not len(columns["base_score"]):
        return rules
    tries: list[tuple[str, dict[str, Any], dict[str, Column]]] = []
    if scoring.rrf_recency_boost is not None and not np.isnan(columns["recency_factor"]).any():
        boosts = 1.0 + scoring.rrf_recency_boost * floats(scored.table, "trace_recency")
        tries.append(("recency_factor", {"boost": scoring.rrf_recency_boost, "largest": float(boosts.max())}, {}))
    if not np.isnan(columns["tie_break"]).any():
        count = _on_channel(scored.table)
        places = np.rint(columns["tie_break"] * count).astype("<u4")
        tries.append(("tie_break", {"count": count}, {"tie_place": places}))
    if scoring.rrf_k is not None:
        tries.append(("base_score", {"constant": scoring.rrf_k}, {}))
    else:
        rule = {"weights": scored.applied, "temporal": scoring.temporal_boost, "floor": scoring.relevance_floor}
        tries.append(("base_score", rule, {}))
    for name, rule, instead in tries:
        made = _MADE[name](columns | instead, rule)
        if made.tobytes() == columns[name].tobytes():
            rules[name] = rule
            columns.update(instead)
    if "base_score" in rules:  # nothing is left to write the scores beside
        columns["score_change"] = columns.pop("score").view("<u8") ^ columns["base_score"].view("<u8")
    for name in rules:
        del columns[name]
    return rules


def restored(columns: Mapping[str, Column], rules: Mapping[str, Any]) -> dict[str, Column]:
    """Return the columns with those that were left out."""
    found = dict(columns)
    for name, make in _MADE.items():
        if name in rules:
            found[name] = make(found, rules[name])
    found.pop("tie_place", None)
    if "base_score" in rules:
        found["score"] = (found.pop("score_change") ^ found["base_score"].view("<u8")).view("<f8")
    return found


def _on_channel(table: pa.Table) -> int:
    """Return how many of a pool the vector or the lexical channel found."""
    _, lineages = parts(column(table, "lineage"))
    semantic, lexical = (field_numbers(lineages, name, 0) for name in ("semantic_rank", "lexical_rank"))
    return int(((semantic > 0) | (lexical > 0)).sum())


def _recency_factor(columns: Mapping[str, Column], rule: Mapping[str, Any]) -> Column:
    return pool_relative(1.0 + rule["boost"] * columns["trace_recency"], rule["largest"])


def _tie_break(columns: Mapping[str, Column], rule: Mapping[str, Any]) -> Column:
    places: Column = columns["tie_place"] / max(rule["count"], 1)
    return places


def _base_score(columns: Mapping[str, Column], rule: Mapping[str, Any]) -> Column:
    return _fused(columns, rule) if "constant" in rule else _weighted(columns, rule)


def _weighted(columns: Mapping[str, Column], rule: Mapping[str, Any]) -> Column:
    return weighted_score(
        rule["weights"],
        {name: columns[f"trace_{name}"] for name in SIGNALS},
        epistemic=columns["trace_epistemic"],
        temporal=rule["temporal"] * columns["trace_temporal"],
        node_type=columns["trace_node_type"],
        relevance_floor=rule["floor"],
    )


def _fused(columns: Mapping[str, Column], rule: Mapping[str, Any]) -> Column:
    recency, ties = columns["recency_factor"], columns["tie_break"]
    factors = [columns[name] for name in _FACTORS] + ([] if np.isnan(recency).any() else [recency])
    return fused_score(
        rule["constant"],
        columns["semantic_rank"],
        columns["lexical_rank"],
        factors=factors,
        tie_break=None if np.isnan(ties).any() else ties,
    )


_MADE = {"recency_factor": _recency_factor, "tie_break": _tie_break, "base_score": _base_score}
"""In the order in which one follows from another."""
