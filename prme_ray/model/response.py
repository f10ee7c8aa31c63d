"""The response as records: bundle, candidates with lineage, exclusions, metadata (digest b §2)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from prme_ray.model.errors import InvalidRequest

__all__ = [
    "AdjustmentStep",
    "AggregationCoverage",
    "Bundle",
    "Candidate",
    "Conflict",
    "Exclusion",
    "HistoricalCoverage",
    "Lineage",
    "Metadata",
    "Outcome",
    "RankFusion",
    "SessionLink",
    "Trace",
]


class Outcome(StrEnum):
    """Why a response has results, or which of the empties it is."""

    RESULTS = "results"
    UNKNOWN_OWNER = "unknown_owner"
    EMPTY_OWNER = "empty_owner"
    NO_CANDIDATE = "no_candidate"
    ALL_FILTERED = "all_filtered"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Trace(_Record):
    """Inputs of a base score; which are used depends on the formula."""

    semantic_similarity: float
    lexical_relevance: float
    graph_proximity: float
    recency_factor: float
    salience: float
    confidence: float
    epistemic_weight: float
    path_score: float
    temporal_affinity: float
    node_type_boost: float
    composite_score: float


class RankFusion(_Record):
    """Ranks and pool-relative factors of formula 2; ``None``: off the channel, or not applied."""

    semantic_rank: int | None
    lexical_rank: int | None
    epistemic_factor: float
    node_type_factor: float
    temporal_factor: float
    recency_boost_factor: float | None
    tie_break: float | None


class AdjustmentStep(_Record):
    """One change of the score after the base score, in the order applied."""

    kind: str
    coefficient: float
    source_node_id: str
    neural_score: float | None = None


class Lineage(_Record):
    """How a score came about; it reproduces the score exactly.

    ``base_node_id`` names whose base score this is: the candidate's own, or that of the memory
    whose score it inherited.
    """

    formula_version: int
    base_node_id: str
    trace: Trace
    rank_fusion: RankFusion | None
    adjustments: list[AdjustmentStep]


class SessionLink(_Record):
    """The trigger a session neighbour stands beside, and its signed distance in turns."""

    trigger_id: str
    offset: int


class Candidate(_Record):
    """One ranked memory: first what it is, whatever was asked, then what became of it in this request."""

    node_id: str
    content: str
    node_type: str
    lifecycle_state: str
    epistemic_type: str
    source_type: str
    scope: str
    confidence: float
    salience: float
    pinned: bool
    session_id: str | None
    speaker: str | None
    event_time: datetime | None
    created_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    evidence_refs: list[str]
    metadata: dict[str, Any] | None
    score: float
    semantic_relevance: float | None
    paths: list[str]
    path_count: int
    semantic_score: float
    lexical_score: float
    graph_proximity: float
    has_own_trace: bool
    lineage: Lineage
    reranker_score: float | None
    session_context_link: SessionLink | None
    conflict_flag: bool
    contradicts_id: str | None
    representation: str | None
    token_cost: int | None
    in_context: bool
    default_exclusion: str | None


class Exclusion(_Record):
    """A memory that was generated and left out, and why (RFC §6, digest a §7.1)."""

    node_id: str
    reason: str
    composite_score: float | None
    semantic_relevance: float | None


class Conflict(_Record):
    """Two memories joined by a CONTRADICTS edge."""

    node_id: str
    contradicts_id: str


class AggregationCoverage(_Record):
    """What a count or list question's answer does not cover (digest b §2.4)."""

    status: str
    exhaustive: bool
    candidate_count: int
    selected_count: int
    context_count: int
    limitations: list[str]
    candidate_limit_paths: list[str]


class HistoricalCoverage(_Record):
    """How a question about the past was answered (digest b §2.4).

    With ``as_of`` from the owner's state at that number, exactly. With ``knowledge_at`` alone by a cut-off
    over today's state, and ``limitations`` says what that does not undo.
    """

    knowledge_at: datetime | None
    as_of: int | None
    semantics: str
    exact_snapshot: bool
    limitations: list[str]


class Bundle(_Record):
    """The Memory Bundle: the packed context and what it is made of.

    ``context`` is the exact text that was counted; ``sections`` lists ids in line order;
    ``excluded`` gives each selected memory that is not in the context its reason: ``budget``,
    ``no_text``, ``folded`` or ``notice_did_not_fit``.
    """

    context: str
    sections: dict[str, list[str]]
    included_count: int
    excluded: dict[str, str]
    tokens_used: int
    token_budget: int
    budget_remaining: int
    min_fidelity: str
    tokenizer: str
    context_format: str
    coverage_notice: str | None
    context_guidance: str | None
    context_references: dict[str, str]
    budget_overflow: bool
    budget_overflow_ids: list[str]
    conflicts: list[Conflict]
    value_bindings: dict[str, str]

    @property
    def excluded_ids(self) -> list[str]:
        """Ids that packing left out, in order."""
        return list(self.excluded)

    def resolve(self, reference: str) -> str:
        """Return the node id behind a citation such as ``m3``.

        Raises:
            InvalidRequest: the context shows no such reference.
        """
        found = self.context_references.get(reference)
        if found is None:
            raise InvalidRequest(
                argument="reference", given=reference, allowed=f"one of {', '.join(self.context_references) or 'none'}"
            )
        return found


class Metadata(_Record):
    """Everything about a request that is not its results.

    ``receipt_persisted`` is false where the log gets no record of the request: in a process that only
    reads, with ``log_retrievals`` off, when the queue of records is full or the log fails. True: the record
    is durable (``strict_receipts``), or waits for the next commit of a log that took its last records.
    """

    request_id: str
    outcome: Outcome
    snapshot: int
    reference_time: datetime
    retrieval_mode: str
    query_intent: str
    entities: list[dict[str, Any]]
    temporal_signals: list[dict[str, Any]]
    query_time_from: datetime | None
    query_time_to: datetime | None
    alternate_queries: list[str]
    candidates_generated: dict[str, int]
    candidates_after_filter: int
    candidates_filtered: int
    candidates_included: int
    exclusion_counts: dict[str, int]
    min_score: float | None
    result_limit: int | None
    max_per_source: int | None
    max_per_evidence: int | None
    min_score_skipped: bool
    scope_filter: list[str] | None
    scoring_config_version: str
    settings_fingerprint: str
    encoder: str
    reranker: str | None
    backends_used: list[str]
    backend_failures: dict[str, str]
    embedding_mismatch: bool
    aggregation_coverage: AggregationCoverage | None
    historical_coverage: HistoricalCoverage | None
    receipt_persisted: bool
    timings_ms: dict[str, float]
