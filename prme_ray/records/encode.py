"""Makes the RETRIEVAL_REQUEST record of a request (RFC §10, digest a §7.7, decisions 19 and 21).

::

    mark | length | zstd( length | head as JSON | columns )

The head says what was asked and with which settings, and on which snapshot; the columns hold scores,
lineage and exclusions. Memories are named by their number among the owner's memories, which never
changes, so the log gives their ids and texts back. The RFC's JSON and the receipt are made when
somebody reads them. About 15 KB for 600 candidates, made off the path of the request.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from prme_ray.answer import aggregation_coverage, excluded_of, historical_coverage
from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import Adjustment as Kind
from prme_ray.model.errors import PrmeRayError
from prme_ray.model.request import BOUNDS, Request
from prme_ray.model.schemas import LINEAGE
from prme_ray.model.tables import (
    bools,
    column,
    field_numbers,
    field_of,
    floats,
    parts,
    picked,
    ranks_of,
    shorts,
    texts,
)
from prme_ray.model.times import iso
from prme_ray.records.columns import Column, pack_columns
from prme_ray.records.derived import shortened
from prme_ray.steps.values import Selection
from stages.known_rows import KnownRows
from stages.pack import Packed
from stages.render_record import LEVELS
from stages.score import Scored
from storage.view import OwnerView

__all__ = ["MARK", "OP_TYPE", "Setup", "compressed", "encode_failure", "encode_record"]

OP_TYPE = "RETRIEVAL_REQUEST"
MARK = b"PRR\x02"
"""First bytes of a record: what it is, and the version of its form."""
_SNAPSHOT_VERSION = 1

_FLOATS = tuple(field.name for field in LINEAGE if field.type == pa.float64())
_RANKS = ("semantic_rank", "lexical_rank")
_BESIDE = {"score": "base_score", "relevance": "trace_semantic", "base": "memory"}
_CODEC = pa.Codec("zstd", compression_level=1)
_LEVELS = {name: place for place, name in enumerate(LEVELS, start=1)}
_CONTEXT = (Kind.SESSION_DECAY, Kind.EPISODE_DECAY, Kind.EVIDENCE_PROJECTION, Kind.EVIDENCE_AUGMENTATION)
_IS_CONTEXT = np.array([kind in _CONTEXT for kind in Kind])
"""By the code of an adjustment: whether a context stage made it."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What answers a request.

    Attributes:
        snapshot: The owner's number that was read; 0 where a request ended before.
        generation: Encoder generation of the stored vectors that were read.
        encoder: Identity of the encoder.
        reranker: Identity of the cross-encoder, where one is on.
        fingerprint: That of the settings.
        settings: The settings that the fingerprint is of, as JSON text.
        scoring_version: That of the scoring settings in force.
        embedding_mismatch: Whether stored vectors come from another encoder.
        features: What the code and its surroundings were, as JSON values.
    """

    snapshot: int
    generation: int
    encoder: str
    reranker: str | None
    fingerprint: str
    settings: str
    scoring_version: str
    embedding_mismatch: bool
    features: dict[str, Any]


def encode_record(
    request: Request, values: dict[str, Any], *, view: OwnerView, known: KnownRows, setup: Setup
) -> bytes:
    """Return the record of an answered request.

    Args:
        request: The request.
        values: The values of the executed flow.
        view: The owner's state that was searched.
        known: Facts about memories.
        setup: What answered.
    """
    selection: Selection = values["selection"]
    packed: Packed = values["packed"]
    excluded = excluded_of(values)
    reasons = texts(excluded, "reason")
    facts, rows = known.of(selection.table)
    columns = _candidates(selection.table, packed, view=view)
    rules = shortened(columns, request.scoring, values["scored"])
    columns |= _exclusions(excluded, reasons, view=view)
    columns["hint"] = view.numbers(column(selection.hints, "node"))
    columns["hint_score"] = floats(selection.hints, "composite_score")
    embedding = values["embedding"]
    columns["embedding"] = np.empty(0, "<f4") if embedding is None else np.asarray(embedding, "<f4")
    head = (
        _asked(request, setup)
        | _found(request, values, reasons)
        | {
            "snapshot": _snapshot(setup, view, packed.context),
            "contents_sha256": hashlib.sha256(facts.content_marks[rows].tobytes()).hexdigest(),
            "reasons": list(dict.fromkeys(reasons)),
            "rules": rules,
        }
    )
    return compressed(head, columns)


def encode_failure(request: Request, error: Exception, *, setup: Setup) -> bytes:
    """Return the record of a request that ended in an error: what was asked, and the error's code or kind.

    What the error says is left out: it may quote a memory.
    """
    head = _asked(request, setup) | {
        "error": error.code if isinstance(error, PrmeRayError) else type(error).__name__,
        "candidates_generated": {},
        "candidates_after_filter": 0,
        "objects_included_in_bundle": 0,
        "tokens_used": 0,
    }
    return compressed(head, {})


def compressed(head: dict[str, Any], columns: dict[str, Column]) -> bytes:
    """Return a record's bytes."""
    specs, data = pack_columns(columns, beside=_BESIDE)
    text = orjson.dumps(head | {"columns": specs})
    raw = b"".join((len(text).to_bytes(4, "big"), text, data))
    return b"".join((MARK, len(raw).to_bytes(4, "big"), _CODEC.compress(raw, asbytes=True)))


def _candidates(table: pa.Table, packed: Packed, *, view: OwnerView) -> dict[str, Column]:
    """Return the columns of the selected candidates, in rank order."""
    memory = view.numbers(column(table, "node"))
    own = bools(table, "has_own_trace")
    levels, tokens = np.zeros(len(memory), "u1"), np.zeros(len(memory), "<i4")
    places = np.zeros(len(view), np.int64)
    places[memory] = np.arange(len(memory))
    packed_at = places[view.rows(packed.included)]
    levels[packed_at] = [_LEVELS[packed.levels[name]] for name in packed.included]
    tokens[packed_at] = [packed.token_costs[name] for name in packed.included]
    return {
        "memory": memory,
        "own": own.astype("u1"),
        **_lineage(table, view=view),
        "score": floats(table, "composite_score"),
        "relevance": floats(table, "semantic_relevance"),
        "reranker": floats(table, "reranker_score"),
        "paths": shorts(table, "paths"),
        "level": levels,
        "tokens": tokens,
        **_adjustments(table, view=view),
    }


def _lineage(table: pa.Table, *, view: OwnerView) -> dict[str, Column]:
    """Return the columns of the lineages, picked all at once; nulls as NaN, and as rank 0."""
    rows, lineages = parts(column(table, "lineage"))
    numbers = np.stack([field_numbers(lineages, name, np.nan) for name in _FLOATS])
    ranks = np.stack([field_numbers(lineages, name, 0).astype("<i4", copy=False) for name in _RANKS])
    return {
        "base": view.numbers(picked(field_of(lineages, "base_node_id"), rows)),
        **dict(zip(_FLOATS, numbers[:, rows], strict=True)),
        **dict(zip(_RANKS, ranks[:, rows], strict=True)),
        "formula": field_numbers(lineages, "formula_version", 0)[rows],
    }


def _adjustments(table: pa.Table, *, view: OwnerView) -> dict[str, Column]:
    steps = column(table, "adjustments")
    made = steps.flatten()
    neural = made.field("neural_score")
    return {
        "steps": np.diff(steps.offsets.to_numpy()).astype("u1"),
        "step_kind": made.field("kind").to_numpy(),
        "step_coefficient": made.field("coefficient").to_numpy(),
        "step_source": view.rows(made.field("source_node_id").to_pylist()).astype("<i4"),
        "step_neural": neural.fill_null(np.nan).to_numpy(),
    }


def _exclusions(excluded: pa.Table, reasons: list[str], *, view: OwnerView) -> dict[str, Column]:
    numbers = {reason: number for number, reason in enumerate(dict.fromkeys(reasons))}
    return {
        "excluded": view.rows(texts(excluded, "node_id")).astype("<i4"),
        "excluded_reason": np.array([numbers[reason] for reason in reasons], "<u2"),
        "excluded_score": floats(excluded, "composite_score"),
        "excluded_relevance": floats(excluded, "semantic_relevance"),
    }


def _asked(request: Request, setup: Setup) -> dict[str, Any]:
    """Return the fields that are known before anything is searched."""
    return {
        "request_id": request.request_id,
        "tenant": request.tenant,
        "user_id": request.owner,
        "query": request.query,
        "reference_time": iso(request.reference_time),
        **{name: _time(getattr(request, name)) for name in BOUNDS},
        "as_of": request.as_of,
        "scopes": None if request.scopes is None else sorted(request.scopes),
        "retrieval_mode": request.mode,
        "token_budget": request.packing.token_budget,
        "min_fidelity": request.packing.min_fidelity,
        "min_score": request.min_score,
        "limit": request.limit,
        "max_per_source": request.max_per_source,
        "max_per_evidence": request.max_per_evidence,
        "exclude_node_types": sorted(request.exclude_node_types),
        "source_types": None if request.source_types is None else sorted(request.source_types),
        "include_cross_scope": request.include_cross_scope,
        "multipliers": None if request.multipliers is None else dict(request.multipliers),
        "weights": request.scoring.model_dump(mode="json"),
        "generation": setup.generation,
        "encoder": setup.encoder,
        "embedding_mismatch": setup.embedding_mismatch,
        "reranker": setup.reranker,
        "scoring_config_version": setup.scoring_version,
        "settings_fingerprint": setup.fingerprint,
        "settings": setup.settings,
        "features": setup.features,
    }


def _found(request: Request, values: dict[str, Any], reasons: list[str]) -> dict[str, Any]:
    """Return what the answer said of itself."""
    analysis: QueryAnalysis = values["analysis"]
    selection: Selection = values["selection"]
    packed: Packed = values["packed"]
    scored: Scored = values["scored"]
    coverage = aggregation_coverage(request, values, Counter(reasons))
    history = historical_coverage(request)
    return {
        "error": None,
        "alternate_queries": [alternate.query for alternate in values["alternates"]],
        "query_intent": analysis.intent,
        "query_time_from": _time(analysis.time_from),
        "query_time_to": _time(analysis.time_to),
        "candidates_generated": dict(values["generated"].counts),
        "candidates_after_filter": values["allowed"].table.num_rows,
        "candidates_filtered": len(reasons),
        "objects_included_in_bundle": len(packed.included),
        "tokens_used": packed.tokens_used,
        "backend_failures": dict(values["failures"]),
        "min_score_skipped": selection.min_score_skipped,
        "applied_weights": dict(scored.applied),
        "ranking_policy": ranking_policy(values),
        "aggregation_coverage": None if coverage is None else coverage.model_dump(mode="json"),
        "historical_coverage": None if history is None else history.model_dump(mode="json"),
        "guidance": packed.context_guidance is not None,
    }


def ranking_policy(values: dict[str, Any]) -> str:
    """Return how the list was last sorted (digest b §3.4).

    ``score_path_id`` by scoring; ``reranked_prefix`` where a cross-encoder ordered the best; ``score_id``
    where a context stage gave a memory another's score.
    """
    table = values["evidence"].table
    if _IS_CONTEXT[column(table, "adjustments").flatten().field("kind").to_numpy()].any():
        return "score_id"
    policy = "reranked_prefix" if len(values["neural"]) else "score_path_id"
    # A stage may have added memories that a filter took away again; the list is then sorted all the same.
    sorted_anew = values["sessions"].excluded.num_rows or values["sources"] is not None
    return policy if not sorted_anew or _is_sorted(table, policy) else "score_id"


def _is_sorted(table: pa.Table, policy: str) -> bool:
    """Return whether a list is in the order of a policy."""
    scores, ids = -floats(table, "composite_score"), ranks_of(column(table, "node"))
    paths = -floats(table, "trace_path")
    behind = np.zeros(len(ids), bool)
    if policy == "reranked_prefix":
        behind = np.isnan(floats(table, "reranker_score"))
        paths = np.where(behind, paths, 0.0)
    return bool((np.lexsort((ids, paths, scores, behind)) == np.arange(len(ids))).all())


def _snapshot(setup: Setup, view: OwnerView, context: str) -> dict[str, Any]:
    """Return the snapshot record (decision 21); the log adds the chain."""
    return {
        "version": _SNAPSHOT_VERSION,
        "sequence": setup.snapshot,
        "generation": setup.generation,
        "encoder": setup.encoder,
        "lexical_digest": view.lexical_digest,
        "graph_digest": view.graph_digest,
        "settings_fingerprint": setup.fingerprint,
        "context_sha256": hashlib.sha256(context.encode()).hexdigest(),
    }


def _time(value: datetime | None) -> str | None:
    return None if value is None else iso(value)
