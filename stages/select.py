"""Selection: floor, caps and limit on the ranked list (RFC-0005 §4, digest a sections 7.1 and 7.2).

One walk in rank order; the first test that fails names the reason. Nothing is exempt: pins, tasks,
instructions and context neighbours yield to what the caller asked for (decision 9).
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.tables import column, exclusions, floats, no_exclusions, replace, take, texts
from stages.columns import relevance

__all__ = ["select", "skip_floor", "with_relevance"]


def with_relevance(scored: pa.Table) -> pa.Table:
    """Fill ``semantic_relevance``. Only for rank fusion: under weighted scoring it stays null.

    A fused score says how a memory ranks in its pool, not how close it is to the question, so a floor
    on it would keep the best of a hopeless pool. The floor compares this number instead.
    """
    return replace(scored, semantic_relevance=relevance(scored))


def skip_floor(
    relevance: npt.NDArray[np.float64], *, fusion: str, min_score: float | None, vector_failed: bool
) -> bool:
    """Return whether ``min_score`` cannot be applied (digest a section 7.2).

    True when scores are fused, a positive floor is asked for, the vector channel failed and no memory
    has any relevance: the floor would then drop everything for want of a measurement. A healthy vector
    channel that found nothing keeps the floor.
    """
    if fusion != "rrf" or not vector_failed or min_score is None or min_score <= 0:
        return False
    return not bool((relevance > 0).any())


def select(
    scored: pa.Table,
    *,
    min_score: float | None,
    limit: int | None,
    max_per_source: int | None,
    max_per_evidence: int | None,
    skip_floor: bool = False,
) -> tuple[pa.Table, pa.Table]:
    """Cut the ranked list.

    Args:
        scored: SCORED, best first.
        min_score: Keep what reaches it (inclusive), by ``semantic_relevance``, where that is null by
            ``composite_score``.
        limit: Most rows kept.
        max_per_source: Most rows with the same evidence and the same content, where there is evidence.
        max_per_evidence: Most rows with the same evidence, where there is evidence.
        skip_floor: Ignore ``min_score``; see :func:`skip_floor`.

    Returns:
        The kept rows (the same table when nothing is asked for or dropped) and an EXCLUSION table with
        scores, in rank order. Reasons: ``below_threshold``, ``source_limit``, ``evidence_limit``,
        ``result_limit``.
    """
    floor = None if skip_floor else min_score
    if floor is None and limit is None and max_per_source is None and max_per_evidence is None:
        return scored, no_exclusions()
    count = scored.num_rows
    reached = np.ones(count, dtype=bool)
    if floor is not None:
        gate = floats(scored, "semantic_relevance")
        reached = np.where(np.isnan(gate), floats(scored, "composite_score"), gate) >= floor
    reasons: list[str] = ["" if row else "below_threshold" for row in reached.tolist()]
    if max_per_source is not None or max_per_evidence is not None:
        _cap(reasons, scored, limit, max_per_source, max_per_evidence)
    elif limit is not None:
        for row in np.flatnonzero(reached)[limit:].tolist():
            reasons[row] = "result_limit"
    left_out = np.flatnonzero(np.array([bool(reason) for reason in reasons], dtype=bool))
    if not len(left_out):
        return scored, no_exclusions()
    rows = pa.array(left_out)
    return take(scored, np.setdiff1d(np.arange(count), left_out, assume_unique=True)), exclusions(
        column(scored, "node_id").take(rows),
        [reasons[row] for row in left_out.tolist()],
        column(scored, "composite_score").take(rows),
        column(scored, "semantic_relevance").take(rows),
    )


def _cap(
    reasons: list[str], scored: pa.Table, limit: int | None, max_per_source: int | None, max_per_evidence: int | None
) -> None:
    """Name the first cap that each row above the floor runs into; only kept rows count."""
    by_source: Counter[tuple[str, str]] = Counter()
    by_evidence: Counter[str] = Counter()
    kept = 0
    for row, (evidence, content) in enumerate(zip(texts(scored, "evidence"), texts(scored, "content"), strict=True)):
        if reasons[row]:
            continue
        if evidence and max_per_source is not None and by_source[evidence, content] >= max_per_source:
            reasons[row] = "source_limit"
        elif evidence and max_per_evidence is not None and by_evidence[evidence] >= max_per_evidence:
            reasons[row] = "evidence_limit"
        elif limit is not None and kept >= limit:
            reasons[row] = "result_limit"
        else:
            kept += 1
            by_source[evidence, content] += 1
            by_evidence[evidence] += 1
