"""Replay of a receipt: scores and order derived again from what it says, and nothing else (digest b §3.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prme_ray.model.errors import ReceiptRejected
from prme_ray.model.receipts.schema import Adjustment, Candidate, Provenance, RankingPolicy, Receipt
from stages.formulas import fused_score, weighted_score
from stages.numeric import Floats

__all__ = ["Replayed", "replay"]

_SIGNALS = {
    "semantic": "semantic_similarity",
    "lexical": "lexical_relevance",
    "graph": "graph_proximity",
    "recency": "recency_factor",
    "salience": "salience",
    "confidence": "confidence",
}
_FACTORS = ("epistemic_factor", "node_type_factor", "temporal_factor")


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a receipt derives, equal to what it states.

    Attributes:
        ranking: Ids of the memories, best first.
        scores: Id -> final score.
    """

    ranking: tuple[str, ...]
    scores: dict[str, float]


def replay(receipt: Receipt) -> Replayed:
    """Derive base scores, final scores and the order, and require exactly what the receipt states.

    Args:
        receipt: A receipt that breaks no rule of its version, as ``read_receipt`` gives it.

    Raises:
        ReceiptRejected: naming the first memory with another score, or the order; version 1 has no lineage.
    """
    lineages = receipt.get("score_provenance")
    policy = receipt.get("ranking_policy")
    if lineages is None or policy is None:
        raise _refused(receipt, "version 1 holds no lineage to replay")
    with np.errstate(all="ignore"):  # an absurd receipt is refused by comparing, overflow or not
        bases = _base_scores(list(lineages.values())).tolist()
    scores: dict[str, float] = {}
    for candidate, lineage, base in zip(receipt["candidates"], lineages.values(), bases, strict=True):
        node_id = candidate["node_id"]
        if base != lineage["trace"]["composite_score"]:
            raise _refused(receipt, f"the base score of {node_id} does not follow from its trace")
        scores[node_id] = _adjusted(base, lineage["adjustments"])
        if scores[node_id] != candidate["score"]:
            raise _refused(receipt, f"the score of {node_id} does not follow from its adjustments")
    ranking = tuple(candidate["node_id"] for candidate in sorted(receipt["candidates"], key=_ORDERS[policy]))
    if ranking != tuple(scores):
        raise _refused(receipt, f"the order of the candidates is not that of {policy}")
    return Replayed(ranking, scores)


def _base_scores(lineages: Sequence[Provenance]) -> Floats:
    if not lineages:
        return np.zeros(0)
    return _fused(lineages) if "rank_fusion" in lineages[0] else _weighted(lineages)


def _weighted(lineages: Sequence[Provenance]) -> Floats:
    traces: Any = [lineage["trace"] for lineage in lineages]
    weights: Any = [lineage["weights"] for lineage in lineages]
    boost = _column(weights, "temporal_boost")
    return weighted_score(
        {f"w_{name}": _column(weights, f"w_{name}") for name in _SIGNALS},
        {name: _column(traces, field) for name, field in _SIGNALS.items()},
        epistemic=_column(traces, "epistemic_weight"),
        temporal=np.where(boost > 0.0, boost * _column(traces, "temporal_affinity"), 0.0),
        node_type=_column(traces, "node_type_boost"),
        relevance_floor=_column(weights, "relevance_floor"),
    )


def _fused(lineages: Sequence[Provenance]) -> Floats:
    # The rules admit one rank constant, one set of options and a recency boost for all or for none.
    ranks: Any = [lineage["rank_fusion"] for lineage in lineages]
    names = [*_FACTORS, *(["recency_boost_factor"] if "recency_boost_factor" in ranks[0] else [])]
    return fused_score(
        lineages[0]["weights"]["rrf_k"],
        _ranks(ranks, "semantic_rank"),
        _ranks(ranks, "lexical_rank"),
        factors=[_column(ranks, name) for name in names],
        tie_break=_column(ranks, "tie_break") if "tie_break" in ranks[0] else None,
    )


def _column(records: Sequence[dict[str, float]], name: str) -> Floats:
    return np.array([record[name] for record in records], np.float64)


def _ranks(records: Sequence[dict[str, int | None]], name: str) -> npt.NDArray[np.int64]:
    return np.array([record[name] or 0 for record in records], np.int64)


def _adjusted(score: float, steps: Iterable[Adjustment]) -> float:
    """Return a base score after its adjustments, in their order."""
    for step in steps:
        coefficient, neural = step["coefficient"], step["neural_score"]
        if step["kind"] == "neural_blend" and neural is not None:
            score = (1.0 - coefficient) * neural + coefficient * score
        elif step["kind"] == "neural_rank_assignment":
            score = coefficient
        else:
            score *= coefficient
    return score


def _by_score(candidate: Candidate) -> tuple[Any, ...]:
    return -candidate["score"], candidate["node_id"]


def _by_path(candidate: Candidate) -> tuple[Any, ...]:
    trace = candidate["trace"]
    return -candidate["score"], 0.0 if trace is None else -trace["path_score"], candidate["node_id"]


def _reranked_first(candidate: Candidate) -> tuple[Any, ...]:
    if candidate["reranker_score"] is not None:
        return 0, *_by_score(candidate)
    return 1, *_by_path(candidate)


_ORDERS: dict[RankingPolicy, Callable[[Candidate], tuple[Any, ...]]] = {
    "score_id": _by_score,
    "score_path_id": _by_path,
    "reranked_prefix": _reranked_first,
}


def _refused(receipt: Receipt, detail: str) -> ReceiptRejected:
    return ReceiptRejected(request_id=receipt["request_id"], failed_at="validation", detail=detail)
