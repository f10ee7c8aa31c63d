"""Builds the answer of a retrieval from the values of an executed flow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from prme_ray.arguments import BINDINGS_KEY
from prme_ray.candidates import Candidates, Exclusions
from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import RetrievalMode
from prme_ray.model.request import Request
from prme_ray.model.response import (
    AggregationCoverage,
    Bundle,
    Conflict,
    HistoricalCoverage,
    Metadata,
    Outcome,
)
from prme_ray.model.settings import Settings
from prme_ray.model.tables import column, target_of, texts
from prme_ray.steps.values import Kept, Plan, Scans, Selection, joined
from stages.filter import default_reasons
from stages.pack import Packed

__all__ = ["Answer", "AnswerContext", "aggregation_coverage", "build_answer", "excluded_of", "historical_coverage"]

_KEYWORD_HITS = 50


@dataclass(frozen=True, slots=True)
class Answer:
    """What a retrieval gives.

    Attributes:
        bundle: The packed context and its make-up.
        results: Selected candidates with score lineage, best first; built when looked at.
        excluded: What was generated and left out before packing, with reasons.
        cross_scope_hints: Best memories outside the requested scopes; never packed.
        metadata: Everything else.
    """

    bundle: Bundle
    results: Candidates
    excluded: Exclusions
    cross_scope_hints: Candidates
    metadata: Metadata

    def to_dict(self, *, timings: bool = True) -> dict[str, Any]:
        """Return the whole answer as JSON values (decision 18).

        Args:
            timings: False leaves out what differs between identical requests but the request id.
        """
        metadata = self.metadata.model_dump(mode="json", exclude=None if timings else {"timings_ms"})
        return {
            "bundle": self.bundle.model_dump(mode="json"),
            "results": [candidate.model_dump(mode="json") for candidate in self.results],
            "excluded": [item.model_dump(mode="json") for item in self.excluded],
            "cross_scope_hints": [candidate.model_dump(mode="json") for candidate in self.cross_scope_hints],
            "metadata": metadata,
        }


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """What the flow itself does not know: whose state was read, by which encoder and cross-encoder."""

    snapshot: int
    encoder: str
    owner_known: bool
    owner_memories: int
    fingerprint: str
    scoring_version: str
    embedding_mismatch: bool
    reranker: str | None = None


def build_answer(
    request: Request,
    settings: Settings,
    values: dict[str, Any],
    *,
    context: AnswerContext,
    receipt_persisted: bool,
    timings_ms: dict[str, float],
) -> Answer:
    """Return the answer of one executed flow."""
    analysis: QueryAnalysis = values["analysis"]
    generated: Kept = values["generated"]
    selection: Selection = values["selection"]
    packed: Packed = values["packed"]
    excluded = Exclusions(excluded_of(values))
    counts = excluded.counts()
    reasons = None
    if request.mode is RetrievalMode.AUDIT:
        threshold = settings.unverified_confidence_threshold
        reasons = default_reasons(selection.table, unverified_threshold=threshold)
    results = Candidates(selection.table, packed=packed, default_reasons=reasons)
    metadata = Metadata(
        request_id=request.request_id,
        outcome=_outcome(context, generated.table.num_rows, len(results)),
        snapshot=context.snapshot,
        reference_time=request.reference_time,
        retrieval_mode=request.mode,
        query_intent=analysis.intent,
        entities=[{"name": item.name, "type": item.type, "confidence": item.confidence} for item in values["entities"]],
        temporal_signals=[
            {"type": str(item.type), "value": item.value, "resolved": item.resolved}
            for item in analysis.temporal_signals
        ],
        query_time_from=analysis.time_from,
        query_time_to=analysis.time_to,
        alternate_queries=[alternate.query for alternate in values["alternates"]],
        candidates_generated=dict(generated.counts),
        candidates_after_filter=values["allowed"].table.num_rows,
        candidates_filtered=len(excluded),
        candidates_included=len(packed.included),
        exclusion_counts=counts,
        min_score=request.min_score,
        result_limit=request.limit,
        max_per_source=request.max_per_source,
        max_per_evidence=request.max_per_evidence,
        min_score_skipped=selection.min_score_skipped,
        scope_filter=None if request.scopes is None else sorted(request.scopes),
        scoring_config_version=context.scoring_version,
        settings_fingerprint=context.fingerprint,
        encoder=context.encoder,
        reranker=context.reranker,
        backends_used=[path for path, count in generated.counts.items() if count],
        backend_failures=dict(values["failures"]),
        embedding_mismatch=context.embedding_mismatch,
        aggregation_coverage=aggregation_coverage(request, values, counts),
        historical_coverage=historical_coverage(request),
        receipt_persisted=receipt_persisted,
        timings_ms=timings_ms,
    )
    return Answer(_bundle(request, selection, packed), results, excluded, Candidates(selection.hints), metadata)


def excluded_of(values: dict[str, Any]) -> pa.Table:
    """Return everything left out before packing, in the order of the stages."""
    tables = [values[name].excluded for name in ("allowed", "sessions", "evidence", "selection")]
    return joined(*tables)


def _outcome(context: AnswerContext, generated: int, selected: int) -> Outcome:
    if not context.owner_known:
        return Outcome.UNKNOWN_OWNER
    if context.owner_memories == 0:
        return Outcome.EMPTY_OWNER
    if generated == 0:
        return Outcome.NO_CANDIDATE
    return Outcome.RESULTS if selected else Outcome.ALL_FILTERED


def _bundle(request: Request, selection: Selection, packed: Packed) -> Bundle:
    table = selection.table
    conflicts: list[Conflict] = []
    if column(table, "contradicts_id").null_count < table.num_rows:
        pairs = zip(texts(table, "node_id"), texts(table, "contradicts_id"), strict=True)
        conflicts = [Conflict(node_id=one, contradicts_id=other) for one, other in pairs if other is not None]
    # Our own values in our own types: checking them again would cost more than packing some of them.
    return Bundle.model_construct(
        context=packed.context,
        sections={name: list(ids) for name, ids in packed.sections.items()},
        included_count=len(packed.included),
        excluded=packed.excluded,
        tokens_used=packed.tokens_used,
        token_budget=request.packing.token_budget,
        budget_remaining=packed.budget_remaining,
        min_fidelity=request.packing.min_fidelity,
        tokenizer=request.packing.tokenizer,
        context_format=request.packing.context_format,
        coverage_notice=packed.coverage_notice,
        context_guidance=packed.context_guidance,
        context_references=dict(packed.references),
        budget_overflow=bool(packed.budget_overflow),
        budget_overflow_ids=list(packed.budget_overflow),
        conflicts=conflicts,
        value_bindings=_bindings(table, packed),
    )


def _bindings(table: pa.Table, packed: Packed) -> dict[str, str]:
    # Only pairs of packed records whose presentation the reader can see.
    found: dict[str, str] = {}
    if not packed.included:
        return found
    included = set(packed.included)
    if target_of(table).field("metadata").null_count == len(target_of(table)):
        return found
    metadata = column(table, "metadata")
    for node_id, text in zip(texts(table, "node_id"), metadata.to_pylist(), strict=True):
        if text and BINDINGS_KEY in text and node_id in included:
            found.update(json.loads(text).get(BINDINGS_KEY, []))
    return found


_NOT_UNDONE = ("current_lifecycle_state", "current_derived_indexes", "mutations_not_replayed")


def historical_coverage(request: Request) -> HistoricalCoverage | None:
    """Return how a question about the past was answered; ``None`` for one about the present."""
    exact = isinstance(request.as_of, int)
    if not exact and request.knowledge_at is None:
        return None
    return HistoricalCoverage(
        knowledge_at=request.knowledge_at,
        as_of=request.as_of if isinstance(request.as_of, int) else None,
        semantics="owner_snapshot" if exact else "ingestion_cutoff",
        exact_snapshot=exact,
        limitations=[] if exact else list(_NOT_UNDONE),
    )


def aggregation_coverage(
    request: Request, values: dict[str, Any], counts: Mapping[str, int]
) -> AggregationCoverage | None:
    """Return what the answer to a count or list question does not cover; ``None`` for other questions.

    Args:
        request: The request.
        values: The values of the executed flow.
        counts: Number of memories left out before packing, by reason.
    """
    if not values["analysis"].is_aggregation:
        return None
    order: Plan = values["plan"]
    selection: Selection = values["selection"]
    packed: Packed = values["packed"]
    scans: Scans = values["scans"]
    pinned_limit = request.packing.pinned_limit
    limits = {"GRAPH": order.graph_k, "VECTOR": order.vector_k, "LEXICAL": order.lexical_k, "PINNED": pinned_limit}
    sizes = {name: values[name.lower()].num_rows for name in limits}
    full = [name for name, limit in limits.items() if sizes[name] >= limit]
    if any(hits.num_rows >= _KEYWORD_HITS for hits in scans.keywords):
        full.append("LEXICAL_AGG")
    squeezed = any(reason in ("budget", "notice_did_not_fit") for reason in packed.excluded.values())
    limitations = ["semantic_matching"]
    for name, present in (
        ("candidate_limit", bool(full)),
        ("backend_failure", bool(values["failures"])),
        ("score_floor", "below_threshold" in counts),
        ("result_limit", bool(counts.keys() & {"result_limit", "source_limit", "evidence_limit"})),
        ("token_budget", squeezed),
    ):
        if present:
            limitations.append(name)
    status = "semantic_candidates"
    if squeezed:
        status = "context_limited"
    elif len(limitations) > 1:
        status = "candidate_limited"
    return AggregationCoverage(
        status=status,
        exhaustive=False,
        candidate_count=values["evidence"].table.num_rows,
        selected_count=selection.table.num_rows,
        context_count=len(packed.included),
        limitations=limitations,
        candidate_limit_paths=full,
    )
