"""Stages 1 and 2: what the question says, and what the channels answer (RFC §3, §4)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.analysis import Entity, QueryAnalysis
from prme_ray.model.enums import Path, RetrievalMode, Scope
from prme_ray.model.request import Request
from prme_ray.model.settings import Settings
from prme_ray.model.tables import column, no_hits
from prme_ray.steps.values import Plan, Scans
from stages import analyze as analysis_stage
from storage.records import Filters
from storage.view import OwnerView

__all__ = [
    "analyze",
    "embed",
    "find_pinned",
    "hydrate",
    "name_types",
    "plan",
    "scan_terms",
    "search_text",
    "search_vectors",
    "traverse",
]

_KEYWORD_HITS = 50
_ENTITY_HITS = 20
_ENTITY_SCANS = 3
_HINT_HITS = 2
"""Hits looked at for each hint: many lie in the requested scopes and drop out."""


def analyze(request: Request, settings: Settings) -> QueryAnalysis:
    """Return what the question says of itself (RFC §3)."""
    return analysis_stage.analyze(
        request.query,
        reference_time=request.reference_time,
        intent_order=settings.query_intent_order,
        languages=settings.temporal_languages,
        time_from=request.time_from,
        time_to=request.time_to,
        mode=request.mode,
    )


def plan(request: Request, analysis: QueryAnalysis) -> Plan:
    """Return the channels' orders; count and list questions look wider (digest a §3.7)."""
    packing = request.packing

    def widened(limit: int) -> int:
        if not analysis.is_aggregation:
            return limit
        return min(int(limit * packing.aggregation_k_multiplier), packing.aggregation_k_max)

    def filters(scopes: frozenset[Scope] | None) -> Filters:
        return Filters(
            scopes=scopes,
            include_inactive=request.mode is RetrievalMode.AUDIT,
            time_from=request.time_from,
            time_to=request.time_to,
            knowledge_at=request.knowledge_at,
            event_time_from=request.event_time_from,
            event_time_to=request.event_time_to,
            at=request.time_from or request.time_to,
        )

    hints = request.scopes is not None and request.include_cross_scope and packing.cross_scope_top_n > 0
    return Plan(
        query=request.query,
        filters=filters(request.scopes),
        closed=request.closed,
        window_filters=Filters(scopes=request.scopes, include_inactive=request.mode is RetrievalMode.AUDIT),
        hint_filters=filters(None) if hints else None,
        vector_k=widened(packing.vector_k),
        lexical_k=widened(packing.lexical_k),
        graph_k=widened(packing.graph_max_candidates),
        keywords=analysis_stage.keyword_terms(request.query) if analysis.is_aggregation else (),
        names=tuple(entity.name for entity in analysis.entities),
        hops=packing.graph_max_hops,
        min_edge_confidence=packing.min_edge_confidence,
        pinned_limit=packing.pinned_limit,
        hint_k=_HINT_HITS * packing.cross_scope_top_n,
    )


def name_types(view: OwnerView, analysis: QueryAnalysis, order: Plan) -> tuple[Entity, ...]:
    """Return the question's names, with the types the owner's entities give them (decision 10).

    ``metadata["entity_type"]`` of an entity the request may see; ``unknown`` for any other name.
    """
    if not analysis.entities:
        return ()
    types = view.entity_types(order.names, eligible=view.eligible(order.filters))
    return tuple(dataclasses.replace(item, type=types.get(item.name, item.type)) for item in analysis.entities)


def embed(encoder: Any, order: Plan) -> npt.NDArray[np.float32] | None:
    """Return the question's vector; ``None`` for a blank question, which is never embedded."""
    return encoder.embed_query(order.query) if order.query.strip() else None


def search_vectors(view: OwnerView, embedding: npt.NDArray[np.float32] | None, order: Plan) -> pa.Table:
    """Return the nearest memories by cosine (RFC §4.2)."""
    if embedding is None:
        return no_hits()
    return view.vector(embedding, k=order.vector_k, eligible=view.eligible(order.open_to(Path.VECTOR)))


def search_text(view: OwnerView, order: Plan) -> pa.Table:
    """Return the best memories by BM25 (RFC §4.3)."""
    return view.lexical(order.query, k=order.lexical_k, eligible=view.eligible(order.open_to(Path.LEXICAL)))


def scan_terms(view: OwnerView, lexical: pa.Table, order: Plan) -> Scans:
    """Return keyword hits of count and list questions and hits of each name (digest a §3.7).

    A name made of the question's own words is not looked up where the text search was not cut: it
    has found every memory with any of them already, and a scan only adds.
    """
    uncut = lexical.num_rows < order.lexical_k
    names = [
        name for name in order.names[:_ENTITY_SCANS] if not (uncut and view.has_words_of(name, question=order.query))
    ]
    if not order.keywords and not names:
        return Scans()
    eligible = view.eligible(order.open_to(Path.LEXICAL))
    return Scans(
        keywords=tuple(view.lexical(term, k=_KEYWORD_HITS, eligible=eligible) for term in order.keywords),
        entities=tuple(view.lexical(name, k=_ENTITY_HITS, eligible=eligible) for name in names),
    )


def traverse(view: OwnerView, order: Plan) -> pa.Table:
    """Return the memories within reach of the question's names (RFC §4.1)."""
    if not order.names:
        return no_hits()
    return view.graph(
        order.names,
        hops=order.hops,
        k=order.graph_k,
        min_confidence=order.min_edge_confidence,
        eligible=view.eligible(order.open_to(Path.GRAPH)),
        at=order.filters.at,
    )


def find_pinned(view: OwnerView, order: Plan) -> pa.Table:
    """Return pins, active tasks and intents (RFC §4.4)."""
    return view.pinned(limit=order.pinned_limit, eligible=view.eligible(order.open_to(Path.PINNED)))


def hydrate(
    view: OwnerView, graph: pa.Table, vector: pa.Table, lexical: pa.Table, pinned: pa.Table, scans: Scans
) -> pa.Table:
    """Return the memories behind every id the channels named."""
    tables = [graph, vector, lexical, pinned, *scans.keywords, *scans.entities]
    return view.holding([column(table, "node_id") for table in tables])
