"""Stages 3 to 5 and the context stages: merge, filter, score, expand (RFC §4.5-§7)."""

from __future__ import annotations

import pyarrow as pa

from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import LifecycleState, code
from prme_ray.model.request import Request
from prme_ray.model.settings import Settings
from prme_ray.model.tables import codes, column, replace, texts
from prme_ray.steps.values import Allowed, Kept, Plan, Scans, joined
from stages import filter as filter_stage
from stages.expand_episode import expand_episode
from stages.expand_evidence import evidence_refs, expand_evidence
from stages.expand_session import expand_session, session_triggers
from stages.merge import append_lexical, merge
from stages.score import Scored, score
from storage.view import OwnerView

__all__ = [
    "allowed",
    "expand_episodes",
    "expand_sessions",
    "find_sources",
    "find_windows",
    "keep_allowed",
    "mark_conflicts",
    "merge_channels",
    "project_evidence",
    "rank",
]

_CONTESTED = code(LifecycleState.CONTESTED)


def merge_channels(
    graph: pa.Table, vector: pa.Table, lexical: pa.Table, pinned: pa.Table, scans: Scans, nodes: pa.Table
) -> Kept:
    """Return one row a memory (RFC §5) and how many each channel gave."""
    table = merge(graph, vector, lexical, pinned, nodes=nodes)
    counts = {
        "GRAPH": graph.num_rows,
        "VECTOR": vector.num_rows,
        "LEXICAL": lexical.num_rows,
        "PINNED": pinned.num_rows,
    }
    if scans.keywords:
        table, added = append_lexical(table, scans.keywords, nodes=nodes)
        if added:
            counts["LEXICAL_AGG"] = added
    for hits in scans.entities:
        table, added = append_lexical(table, (hits,), nodes=nodes)
        counts["LEXICAL"] += added
    return Kept(table, counts=counts)


def keep_allowed(merged: Kept, request: Request, settings: Settings) -> Kept:
    """Apply time, type and epistemic filters, before any score (RFC §6)."""
    found = allowed(merged.table, request, settings)
    # The reference reports states before types here, and types first in the later stages.
    return Kept(found.table, joined(found.by_state, found.by_type))


def allowed(table: pa.Table, request: Request, settings: Settings) -> Allowed:
    """Return the rows that pass the time, type and epistemic filters, and what the last two left out."""
    table = filter_stage.filter_time(
        table,
        time_from=request.time_from,
        time_to=request.time_to,
        knowledge_at=request.knowledge_at,
        event_time_from=request.event_time_from,
        event_time_to=request.event_time_to,
    )
    table, by_type = filter_stage.filter_types(
        table, exclude_node_types=request.exclude_node_types, source_types=request.source_types
    )
    table, by_state = filter_stage.filter_epistemic(
        table, mode=request.mode, unverified_threshold=settings.unverified_confidence_threshold
    )
    return Allowed(table, by_type, by_state)


def rank(allowed: Kept, request: Request, analysis: QueryAnalysis, settings: Settings) -> Scored:
    """Score and sort the allowed candidates (RFC §7)."""
    return score(
        allowed.table,
        analysis=analysis,
        scoring=request.scoring,
        reference_time=request.reference_time,
        epistemic_weights=settings.epistemic_weights,
        multipliers=request.multipliers,
    )


def mark_conflicts(view: OwnerView, scored: Scored) -> pa.Table:
    """Name the counterpart of every contested candidate; it is never injected (decision 17)."""
    table = scored.table
    contested = codes(table, "lifecycle_state") == _CONTESTED
    if not contested.any():
        return table
    ids = column(table, "node_id").filter(pa.array(contested)).to_pylist()
    counterparts = view.contradictions(ids)
    return replace(table, contradicts_id=[counterparts.get(name) for name in texts(table, "node_id")])


def find_windows(view: OwnerView, ranked: pa.Table, request: Request, order: Plan) -> pa.Table | None:
    """Return the session neighbours of the best candidates (RFC §4.5); ``None`` without triggers."""
    triggers = session_triggers(ranked, packing=request.packing)
    if triggers.num_rows == 0:
        return None
    window = request.packing.session_context_window
    return view.session_windows(triggers, window=window, eligible=view.eligible(order.window_filters))


def expand_sessions(ranked: pa.Table, windows: pa.Table | None, request: Request, settings: Settings) -> Kept:
    """Promote session neighbours; what was added passes the same filters."""
    if windows is None or windows.num_rows == 0:
        return Kept(ranked)
    expanded = expand_session(ranked, windows, packing=request.packing)
    if not expanded.added:
        return Kept(expanded.table)
    found = allowed(expanded.table, request, settings)
    return Kept(found.table, joined(found.by_type, found.by_state))


def expand_episodes(sessions: Kept, request: Request) -> pa.Table:
    """Route to whole episodes (RFC §4.6); off by default."""
    if request.packing.episode_context_top_k == 0:
        return sessions.table
    return expand_episode(request.query, sessions.table, packing=request.packing).table


def find_sources(view: OwnerView, episodes: pa.Table, request: Request, order: Plan) -> pa.Table | None:
    """Return the source memories of evidence groups (RFC §4.7); ``None`` when the option is off."""
    packing = request.packing
    if packing.evidence_projection_top_k == 0 and packing.evidence_augmentation_top_k == 0:
        return None
    wanted = evidence_refs(episodes, packing=packing)
    found = view.hydrate(pa.array(wanted, pa.string()))
    return found.filter(pa.array(view.eligible(order.filters).rows[view.rows(found.column("node_id"))]))


def project_evidence(episodes: pa.Table, sources: pa.Table | None, request: Request, settings: Settings) -> Kept:
    """Project or augment evidence, then apply the type filters once more."""
    if sources is None:
        return Kept(episodes)
    eligible = allowed(sources, request, settings).table  # never candidates, so nothing to report
    table = expand_evidence(episodes, eligible, packing=request.packing).table
    table, excluded = filter_stage.filter_types(
        table, exclude_node_types=request.exclude_node_types, source_types=request.source_types
    )
    return Kept(table, excluded)
