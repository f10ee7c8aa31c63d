"""Ranking metrics over one question, and their means.

A question has a set of relevant ids; a run has a ranked list of ids. Definitions as in the
literature (and in TREC's evaluation tools) with binary relevance.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

__all__ = ["evaluate", "mean_metrics", "ndcg_at", "precision_at", "recall_at", "reciprocal_rank"]


def recall_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of ``relevant`` among the first ``k``."""
    return len(set(ranked[:k]) & set(relevant)) / len(set(relevant))


def precision_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the first ``k`` places that hold a relevant id."""
    return len(set(ranked[:k]) & set(relevant)) / k


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 over the place of the first relevant id; 0 when there is none."""
    wanted = set(relevant)
    return next((1 / place for place, name in enumerate(ranked, 1) if name in wanted), 0.0)


def ndcg_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the discounted cumulative gain of the first ``k`` over that of the best order."""
    wanted = set(relevant)
    gain = sum(1 / math.log2(place + 1) for place, name in enumerate(ranked[:k], 1) if name in wanted)
    best = sum(1 / math.log2(place + 1) for place in range(1, min(k, len(wanted)) + 1))
    return gain / best


def evaluate(
    ranked: Sequence[str], packed: Collection[str], relevant: Collection[str], tokens: int
) -> dict[str, float]:
    """Return every metric of one question.

    Args:
        ranked: Ids, best first.
        packed: Ids whose text stands in the context.
        relevant: Ids of the annotated evidence; not empty.
        tokens: Tokens of the context.
    """
    return {
        "all_evidence_packed": float(set(relevant) <= set(packed)),
        "recall@5": recall_at(ranked, relevant, 5),
        "recall@10": recall_at(ranked, relevant, 10),
        "recall@50": recall_at(ranked, relevant, 50),
        "precision@5": precision_at(ranked, relevant, 5),
        "mrr": reciprocal_rank(ranked, relevant),
        "ndcg@10": ndcg_at(ranked, relevant, 10),
        "tokens_mean": float(tokens),
    }


def mean_metrics(rows: Sequence[Mapping[str, float]]) -> dict[str, float | int]:
    """Return ``n`` and the mean of every metric, rounded to 5 decimals."""
    if not rows:
        return {"n": 0}
    return {"n": len(rows), **{name: round(sum(row[name] for row in rows) / len(rows), 5) for name in rows[0]}}
