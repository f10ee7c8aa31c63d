"""Hints, selection and stage 6 (digest a §7, RFC §8)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import Path, Scope, code
from prme_ray.model.request import Request
from prme_ray.model.settings import Settings
from prme_ray.model.tables import SCORED, codes, column, floats, no_hits
from prme_ray.steps.rank import allowed
from prme_ray.steps.values import HintPool, Kept, Plan, Selection, Tools
from stages import select as select_stage
from stages.costs import CachedLines
from stages.guidance import coverage_notices, guidance_text
from stages.merge import merge
from stages.pack import Packed, pack
from stages.score import score
from storage.view import OwnerView

__all__ = ["choose", "find_text_hints", "find_vector_hints", "hydrate_hints", "pack_context", "rank_hints"]

_NO_HINTS = SCORED.empty_table()


def find_vector_hints(view: OwnerView, embedding: npt.NDArray[np.float32] | None, order: Plan) -> pa.Table:
    """Return the nearest memories of every scope, for hints (§7.4)."""
    if order.hint_filters is None or embedding is None:
        return no_hits()
    return view.vector(
        embedding, k=order.hint_k, eligible=view.eligible(order.open_to(Path.VECTOR, order.hint_filters))
    )


def find_text_hints(view: OwnerView, order: Plan) -> pa.Table:
    """Return the best memories of every scope by BM25, for hints (§7.4)."""
    if order.hint_filters is None:
        return no_hits()
    eligible = view.eligible(order.open_to(Path.LEXICAL, order.hint_filters))
    return view.lexical(order.query, k=order.hint_k, eligible=eligible)


def hydrate_hints(view: OwnerView, vector: pa.Table, lexical: pa.Table, order: Plan) -> HintPool | None:
    """Return the hits with the memories behind them; ``None`` when no hints are wanted."""
    if order.hint_filters is None:
        return None
    return HintPool(vector, lexical, view.holding([column(vector, "node_id"), column(lexical, "node_id")]))


def rank_hints(
    pool: HintPool | None, scoped: Kept, request: Request, analysis: QueryAnalysis, settings: Settings
) -> pa.Table:
    """Return the best hints, scored in their own pool with the same weights and clock."""
    if pool is None or scoped.table.num_rows == 0:
        return _NO_HINTS
    nothing = no_hits()
    table = merge(nothing, pool.vector, pool.lexical, nothing, nodes=pool.nodes)
    inside = [code(scope) for scope in request.scopes or frozenset[Scope]()]
    table = table.filter(pa.array(~np.isin(codes(table, "scope"), inside)))
    table = allowed(table, request, settings).table
    ranked = score(
        table,
        analysis=analysis,
        scoring=request.scoring,
        reference_time=request.reference_time,
        epistemic_weights=settings.epistemic_weights,
        multipliers=request.multipliers,
    ).table
    return ranked.slice(0, request.packing.cross_scope_top_n)


def choose(evidence: Kept, hints: pa.Table, request: Request, failures: Mapping[str, str]) -> Selection:
    """Apply the caller's floor, limit and caps (§7.1-7.2); pins yield to them like all others."""
    table, skipped = _measured(evidence.table, request, failures)
    kept, excluded = select_stage.select(
        table,
        min_score=request.min_score,
        limit=request.limit,
        max_per_source=request.max_per_source,
        max_per_evidence=request.max_per_evidence,
        skip_floor=skipped,
    )
    if hints.num_rows:
        hints, skip_hints = _measured(hints, request, failures)
        hints, _ = select_stage.select(
            hints,
            min_score=request.min_score,
            limit=None,
            max_per_source=None,
            max_per_evidence=None,
            skip_floor=skipped and skip_hints,
        )
    return Selection(kept, excluded, hints, skipped)


def _measured(table: pa.Table, request: Request, failures: Mapping[str, str]) -> tuple[pa.Table, bool]:
    """Return a pool with what ``min_score`` is compared with, and whether the floor cannot be applied to it."""
    fusion = request.scoring.fusion
    if fusion != "rrf":
        return table, False
    table = select_stage.with_relevance(table)
    return table, select_stage.skip_floor(
        floats(table, "semantic_relevance"),
        fusion=fusion,
        min_score=request.min_score,
        vector_failed=Path.VECTOR in failures,
    )


def pack_context(selection: Selection, request: Request, analysis: QueryAnalysis, tools: Tools) -> Packed:
    """Return the packed context; it never exceeds the budget (RFC §8, decision 16)."""
    packing = request.packing
    return pack(
        selection.table,
        packing=packing,
        token_budget=packing.token_budget,
        min_fidelity=packing.min_fidelity,
        costs=CachedLines(
            packing, tools.counter, tools.lines, owner=f"{len(request.tenant)}:{request.tenant}{request.owner}"
        ),
        known=tools.lines.known,
        notices=coverage_notices(
            is_aggregation=analysis.is_aggregation,
            # Behind a snapshot of the past nothing of today is left to warn of.
            knowledge_at=request.knowledge_at if request.as_of is None else None,
        ),
        guidance=guidance_text(
            request.query,
            analysis=analysis,
            mode=packing.context_guidance_mode,
            context_format=packing.context_format,
            reference_time=request.reference_time,
        ),
    )
