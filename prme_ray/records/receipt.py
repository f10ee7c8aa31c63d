"""The receipt of a recorded retrieval (digest b §3, decision 20).

It is built when it is read: the record holds every number of it, the owner's log the ids and texts.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from prme_ray.model.enums import Adjustment as Kind
from prme_ray.model.enums import Scope, member
from prme_ray.model.receipts import canonical_json, checksum_of, recorded_packing, recorded_scoring, version_for
from prme_ray.model.receipts.canonical import checked
from prme_ray.model.receipts.schema import Adjustment, Candidate, Execution, Provenance, RankFusion, Receipt, Trace
from prme_ray.model.request import Request
from prme_ray.model.schemas import TRACE
from prme_ray.model.settings import Settings
from prme_ray.model.tables import codes, texts
from prme_ray.records.asked import request_of
from prme_ray.records.record import RetrievalRecord
from stages.render_record import TEXT_LEVELS

__all__ = ["Memories", "receipt_of"]

_RANK_FUSION = 2
_BOUNDS = ("knowledge_at", "event_time_from", "event_time_to")
_FACTORS = ("epistemic_factor", "node_type_factor", "temporal_factor")
_DEFAULT_PRIOR_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Memories:
    """What a record's numbers stand for.

    Attributes:
        ids: Id of every memory of the owner, by number.
        selected: The selected candidates, best first, a table with a ``node`` column.
    """

    ids: list[str]
    selected: pa.Table


def receipt_of(record: RetrievalRecord, memories: Memories, settings: Settings) -> tuple[str, str]:
    """Return the receipt's canonical JSON text and its SHA-256.

    Args:
        record: Of a request that was answered.
        memories: What its numbers stand for.
        settings: The settings it was made with.

    Raises:
        ReceiptRejected: the record contradicts itself.
    """
    head = record.head
    request = request_of(head, settings)
    fused = request.scoring.fusion == "rrf"
    version = version_for(
        request.scoring,
        request.packing,
        rank_assignment=any(
            member(Kind, kind) is Kind.NEURAL_RANK_ASSIGNMENT for kind in set(record.columns["step_kind"].tolist())
        ),
        min_score_skipped=head["min_score_skipped"],
    )
    traces = _traces(record)
    weights = recorded_scoring(request.scoring.model_copy(update=head["applied_weights"]), version=version)
    found: dict[str, Any] = {
        "schema_version": version,
        "request_id": head["request_id"],
        "user_id": head["user_id"],
        "query": head["query"],
        "reference_time": head["reference_time"],
        "scopes": head["scopes"],
        "scoring": recorded_scoring(request.scoring, version=version),
        "packing": recorded_packing(request.packing, version=version, fused=fused),
        "context_sha256": head["snapshot"]["context_sha256"],
        "min_score": head["min_score"],
        **({"min_score_skipped": True} if head["min_score_skipped"] else {}),
        "result_limit": head["limit"],
        "retrieval_mode": head["retrieval_mode"],
        "time_from": head["time_from"],
        "time_to": head["time_to"],
        "candidates": _candidates(record, memories, traces, fused=fused),
        "score_provenance": _provenance(record, memories, traces, weights),
        "ranking_policy": head["ranking_policy"],
        "execution": _execution(head, request, settings),
    }
    text = canonical_json(checked(cast(Receipt, found)))
    return text, checksum_of(text)


def _traces(record: RetrievalRecord) -> list[Trace]:
    columns = [record.columns[name].tolist() for name in TRACE]
    return [cast(Trace, dict(zip(TRACE.values(), values, strict=True))) for values in zip(*columns, strict=True)]


def _candidates(record: RetrievalRecord, memories: Memories, traces: list[Trace], *, fused: bool) -> list[Candidate]:
    columns = record.columns
    contents = texts(memories.selected, "content")
    scopes = [str(member(Scope, scope)) for scope in codes(memories.selected, "scope").tolist()]
    found: list[Any] = []
    for place, (number, trace, level) in enumerate(zip(record.memories, traces, record.levels, strict=True)):
        content = contents[place]
        reranker = float(columns["reranker"][place])
        found.append(
            {
                "node_id": memories.ids[number],
                "scope": scopes[place],
                "content_sha256": hashlib.sha256(content.encode()).hexdigest(),
                "score": float(columns["score"][place]),
                "trace": trace if columns["own"][place] else None,
                "reranker_score": None if math.isnan(reranker) else reranker,
                **({"semantic_relevance": float(columns["relevance"][place])} if fused else {}),
                "representation": level,
                "token_cost": int(columns["tokens"][place]),
                "in_context": level is not None,
                "has_content": level in TEXT_LEVELS and bool(content.strip()),
            }
        )
    return found


def _provenance(
    record: RetrievalRecord, memories: Memories, traces: list[Trace], weights: Any
) -> dict[str, Provenance]:
    columns, ids = record.columns, memories.ids
    formulas, bases = columns["formula"].tolist(), columns["base"].tolist()
    steps = _steps(record, ids)
    fusion = _fusion(record)
    found: dict[str, Any] = {}
    for place, number in enumerate(record.memories):
        made: dict[str, Any] = {
            "formula_version": formulas[place],
            "base_node_id": ids[bases[place]],
            "trace": traces[place],
            "weights": weights,
            "adjustments": steps[place],
        }
        if formulas[place] == _RANK_FUSION:
            made["rank_fusion"] = fusion[place]
        found[ids[number]] = made
    return found


def _steps(record: RetrievalRecord, ids: list[str]) -> list[list[Adjustment]]:
    columns = record.columns
    names = ("step_kind", "step_coefficient", "step_source", "step_neural")
    flat = [
        {
            "kind": str(member(Kind, kind)),
            "coefficient": coefficient,
            "neural_score": None if math.isnan(neural) else neural,
            "source_node_id": ids[source],
        }
        for kind, coefficient, source, neural in zip(*(columns[name].tolist() for name in names), strict=True)
    ]
    found: list[Any] = []
    at = 0
    for count in columns["steps"].tolist():
        found.append(flat[at : at + count])
        at += count
    return found


def _fusion(record: RetrievalRecord) -> list[RankFusion]:
    columns = record.columns
    ranks = [[rank or None for rank in columns[name].tolist()] for name in ("semantic_rank", "lexical_rank")]
    factors = [columns[name].tolist() for name in _FACTORS]
    recency, places = columns["recency_factor"].tolist(), columns["tie_break"].tolist()
    found: list[Any] = []
    for semantic, lexical, epistemic, node_type, temporal, recent, place in zip(
        *ranks, *factors, recency, places, strict=True
    ):
        made: dict[str, Any] = {
            "semantic_rank": semantic,
            "lexical_rank": lexical,
            "epistemic_factor": epistemic,
            "node_type_factor": node_type,
            "temporal_factor": temporal,
        }
        if not math.isnan(recent):
            made["recency_boost_factor"] = recent
        if not math.isnan(place):
            made["tie_break"] = place
        found.append(made)
    return found


def _execution(head: dict[str, Any], request: Request, settings: Settings) -> Execution:
    """Return parameters and features; what a receipt's typed fields have no place for stands here."""
    parameters: dict[str, Any] = {
        "ranking_multipliers": head["multipliers"],
        "ranking_profile": None,
        "max_per_source": head["max_per_source"],
        "max_per_evidence": head["max_per_evidence"],
        "time_from": head["time_from"],
        "time_to": head["time_to"],
        **{name: head[name] for name in _BOUNDS},
        "as_of": head["as_of"],
        "include_cross_scope": head["include_cross_scope"],
    }
    if head["exclude_node_types"]:
        parameters["exclude_node_types"] = head["exclude_node_types"]
    if head["source_types"] is not None:
        parameters["source_types"] = head["source_types"]
    parameters |= {
        "epistemic_weights": {str(kind): weight for kind, weight in sorted(settings.epistemic_weights.items())},
        "unverified_confidence_threshold": settings.unverified_confidence_threshold,
        "min_edge_confidence": request.packing.min_edge_confidence,
        "pinned_limit": request.packing.pinned_limit,
        "disabled_channels": list(settings.disabled_channels),
        "closed_scopes": {channel: sorted(scopes) for channel, scopes in sorted(request.closed.items())},
        "aggregation_coverage": head["aggregation_coverage"],
        "historical_coverage": head["historical_coverage"],
        "temporal_relation": None,
        "temporal_languages": list(settings.temporal_languages),
    }
    if settings.query_intent_order != "entity_first":
        parameters["query_intent_order"] = settings.query_intent_order
    parameters["reranker_top_k"] = settings.rerank.top_k
    if settings.rerank.prior_weight != _DEFAULT_PRIOR_WEIGHT:
        parameters["reranker_prior_weight"] = settings.rerank.prior_weight
    parameters |= {
        "reranker_policy": settings.rerank.policy,
        "query_reformulation": settings.reformulation.model_dump(mode="json"),
        "alternate_queries": head["alternate_queries"],
    }
    return cast(
        Execution,
        {
            "schema_version": 1,
            "parameters": parameters,
            "features": head["features"] | {"settings_fingerprint": head["settings_fingerprint"]},
        },
    )
