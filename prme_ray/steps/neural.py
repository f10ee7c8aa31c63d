"""Optional: the best candidates in the order of a cross-encoder (RFC §7.3, digest a §6.7).

::

    scored ─ pairs ─ neural ─ reranked
                       │
                 cross-encoder

Only the question and the texts of the prefix go to the model, wherever it is, and only numbers come
back. Whatever it raises fails the retrieval: an order made without it would look like one made with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from prme_ray.model.errors import EncoderRejected
from prme_ray.model.protocols import CrossEncoder
from prme_ray.model.request import Request
from prme_ray.model.settings import Settings
from prme_ray.model.tables import texts
from stages.rerank import rerank
from stages.score import Scored

__all__ = ["apply_scores", "find_pairs", "score_pairs"]


def find_pairs(scored: Scored, settings: Settings) -> list[str]:
    """Return the texts of the best candidates, best first; none when the option is off."""
    if not settings.rerank.enabled:
        return []
    return texts(scored.table.slice(0, settings.rerank.top_k), "content")


def score_pairs(model: CrossEncoder, pairs: Sequence[str], request: Request) -> Sequence[float]:
    """Return the cross-encoder's score of each text with the question.

    Raises:
        EncoderRejected: it gave another number of scores.
        Exception: whatever the cross-encoder raised.
    """
    if not pairs:
        return ()
    found = model.score(request.query, pairs)
    if len(found) != len(pairs):
        raise EncoderRejected(model=model.name, detail=f"it gave {len(found)} scores for {len(pairs)} texts")
    return found


def apply_scores(scored: Scored, neural: Sequence[float], settings: Settings) -> Scored:
    """Return the candidates in the blended order, the scores in their lineage; unchanged without scores.

    Raises:
        EncoderRejected: a score that is no finite number in [0, 1].
    """
    if not len(neural):
        return scored
    chosen = settings.rerank
    ids = texts(scored.table.slice(0, chosen.top_k), "node_id")
    table = rerank(
        scored.table,
        dict(zip(ids, neural, strict=True)),
        policy=chosen.policy,
        prior_weight=chosen.prior_weight,
        top_k=chosen.top_k,
    )
    return dataclasses.replace(scored, table=table)
