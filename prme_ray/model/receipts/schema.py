"""The receipt as the JSON object it is (digest b §3.1).

A receipt is a plain mapping: what is declared here is what stands in the text, in this order, and a
key that may be missing (``NotRequired``) is left out where it is unset, never written as null. So an
old receipt is never completed with today's defaults. Which keys a version has, and what must fit
together, is in :mod:`~prme_ray.model.receipts.versions` and :mod:`~prme_ray.model.receipts.rules`.
"""

from __future__ import annotations

import math
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic reads no other before Python 3.12

from prme_ray.model.enums import Adjustment as AdjustmentKind
from prme_ray.model.enums import NodeType, RetrievalMode, Scope
from prme_ray.model.settings.packing import ContextFormat, MinFidelity

__all__ = [
    "RECEIPT",
    "Adjustment",
    "Candidate",
    "Execution",
    "Packing",
    "Provenance",
    "RankFusion",
    "RankingPolicy",
    "Receipt",
    "Scoring",
    "Trace",
]

_closed = with_config(ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))


def _one_of(enum: type[StrEnum]) -> Any:
    return Field(pattern=f"^({'|'.join(enum)})$")


def _canonical_time(value: str) -> str:
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        parsed = None
    if parsed is None or parsed.utcoffset() is None or parsed.isoformat().replace("+00:00", "Z") != value:
        raise ValueError("a time is ISO 8601 with an offset, in UTC with Z, microseconds where not zero")
    return value


def _writable(value: JsonValue) -> JsonValue:
    """Refuse what JSON has no text for: it would be written as another value than was given."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _writable(inner)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is finite")
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError("a whole number has at most 64 bits")
    return value


_Id = Annotated[str, Field(pattern="^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Time = Annotated[str, AfterValidator(_canonical_time)]
_Open = Annotated[dict[str, JsonValue], AfterValidator(_writable)]
_Scope = Annotated[str, _one_of(Scope)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Positive = Annotated[int, Field(ge=1, lt=2**63)]
_Rank = Annotated[int, Field(ge=1, lt=2**53)]
_NotNegative = Annotated[float, Field(ge=0)]
_Decay = Annotated[float, Field(gt=0, le=1)]

RankingPolicy = Literal["score_path_id", "reranked_prefix", "score_id"]


@_closed
class Scoring(TypedDict):
    """Scoring settings in force; of a provenance: the weights actually applied.

    ``fusion`` stands only under rank fusion; without it the weighted formula applied.
    """

    w_semantic: float
    w_lexical: float
    w_graph: float
    w_recency: float
    w_salience: float
    w_confidence: float
    w_epistemic: float
    w_paths: float
    recency_lambda: _NotNegative
    temporal_boost: _NotNegative
    node_type_boost: dict[Annotated[str, _one_of(NodeType)], float]
    relevance_floor: _NotNegative
    current_update_multiplier: NotRequired[Annotated[float, Field(ge=1, le=2)]]
    fusion: NotRequired[Literal["rrf"]]
    rrf_k: NotRequired[Annotated[int, Field(ge=1, le=10_000)]]
    rrf_recency_boost: NotRequired[Annotated[float, Field(gt=0, le=4)]]
    rrf_tie_break: NotRequired[Literal["event_time"]]
    recency_time: NotRequired[Literal["event_time"]]


@_closed
class Packing(TypedDict):
    """Packing settings in force, a request's overrides included."""

    multipath_ordering: NotRequired[Literal["balanced", "density", "score"]]
    context_guidance_mode: NotRequired[Literal["off", "temporal", "all"]]
    context_format: NotRequired[ContextFormat]
    context_citations: NotRequired[bool]
    token_budget: _Count
    tokenizer: Annotated[str, Field(min_length=1)]
    min_fidelity: MinFidelity
    overhead_tokens: _Count
    chars_per_token: float
    graph_max_candidates: _Count
    vector_k: _Count
    lexical_k: _Count
    graph_max_hops: _Count
    cross_scope_top_n: _Count
    cross_scope_token_budget: _Count
    session_context_window: _Count
    session_context_top_k: _Count
    session_context_score_decay: _Decay
    session_context_rank_fusion_score_decay: NotRequired[_Decay]
    session_context_packing: NotRequired[Literal["trigger_tier", "adjacent"]]
    fold_repeated_text: NotRequired[Literal[True]]
    episode_context_top_k: NotRequired[_Count]
    episode_context_local_k: NotRequired[_Positive]
    episode_context_score_decay: NotRequired[_Decay]
    evidence_projection_top_k: NotRequired[_Count]
    evidence_projection_max_sources: NotRequired[_Positive]
    evidence_projection_score_decay: NotRequired[_Decay]
    evidence_augmentation_top_k: NotRequired[_Count]
    evidence_augmentation_max_sources: NotRequired[_Positive]
    evidence_augmentation_score_decay: NotRequired[_Decay]
    evidence_augmentation_anchor_policy: NotRequired[Literal["all", "non_entity"]]
    aggregation_k_multiplier: Annotated[float, Field(gt=0)]
    aggregation_k_max: _Count


@_closed
class Trace(TypedDict):
    """Inputs of a base score, and the base score itself as ``composite_score``."""

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


@_closed
class Candidate(TypedDict):
    """One returned memory, in rank order.

    ``score`` is the final one. ``trace`` is null where a context stage replaced the score. The last
    four say what packing made of it: out of the context, ``representation`` is null and the cost 0.
    """

    node_id: _Id
    scope: _Scope
    content_sha256: _Sha256
    score: float
    trace: Trace | None
    reranker_score: Annotated[float, Field(ge=0, le=1)] | None
    semantic_relevance: NotRequired[_NotNegative]
    representation: MinFidelity | None
    token_cost: _Count
    in_context: bool
    has_content: bool


@_closed
class Adjustment(TypedDict):
    """One step from the base score to the final one; ``neural_score`` of a ``neural_blend`` only."""

    kind: Annotated[str, _one_of(AdjustmentKind)]
    coefficient: float
    neural_score: Annotated[float, Field(ge=0, le=1)] | None
    source_node_id: _Id | None


@_closed
class RankFusion(TypedDict):
    """Ranks (null: off the channel) and pool-relative factors of formula 2."""

    semantic_rank: _Rank | None
    lexical_rank: _Rank | None
    epistemic_factor: float
    node_type_factor: float
    temporal_factor: float
    recency_boost_factor: NotRequired[float]
    tie_break: NotRequired[float]


@_closed
class Provenance(TypedDict):
    """How a score came about: formula 1 weighted, 2 rank fusion; ``base_node_id`` is whose score it is."""

    formula_version: Literal[1, 2]
    base_node_id: _Id
    trace: Trace
    weights: Scoring
    adjustments: list[Adjustment]
    rank_fusion: NotRequired[RankFusion]


@_closed
class Execution(TypedDict):
    """What ran: parameters of the request and features of the program, both open maps of JSON values."""

    schema_version: Literal[1]
    parameters: _Open
    features: _Open


@_closed
class Receipt(TypedDict):
    """One retrieval, as it can be replayed without graph, indexes or models."""

    schema_version: NotRequired[Annotated[int, Field(ge=1, le=22)]]
    request_id: _Id
    user_id: Annotated[str, Field(min_length=1)]
    query: str
    reference_time: _Time
    scopes: list[_Scope] | None
    scoring: Scoring
    packing: Packing
    context_sha256: _Sha256
    min_score: _NotNegative | None
    min_score_skipped: NotRequired[Literal[True]]
    result_limit: _Count | None
    retrieval_mode: Annotated[str, _one_of(RetrievalMode)]
    time_from: _Time | None
    time_to: _Time | None
    candidates: list[Candidate]
    score_provenance: NotRequired[dict[_Id, Provenance]]
    ranking_policy: NotRequired[RankingPolicy]
    execution: NotRequired[Execution]


RECEIPT: TypeAdapter[Receipt] = TypeAdapter(Receipt)
"""Checks types and ranges, refuses unknown keys and puts keys in their declared order."""
