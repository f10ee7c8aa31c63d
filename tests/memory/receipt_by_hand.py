"""A receipt written at once from what an answer says, without the record: what reading one must give."""

import hashlib

import orjson

_TEXT = ("full", "structured")
_PACKING = """
multipath_ordering context_guidance_mode context_format context_citations token_budget tokenizer
min_fidelity overhead_tokens chars_per_token graph_max_candidates vector_k lexical_k graph_max_hops
cross_scope_top_n cross_scope_token_budget session_context_window session_context_top_k
session_context_score_decay session_context_rank_fusion_score_decay session_context_packing
fold_repeated_text episode_context_top_k episode_context_local_k episode_context_score_decay
evidence_projection_top_k evidence_projection_max_sources evidence_projection_score_decay
evidence_augmentation_top_k evidence_augmentation_max_sources evidence_augmentation_score_decay
evidence_augmentation_anchor_policy aggregation_k_multiplier aggregation_k_max
"""


def receipt_by_hand(answer, *, asked, settings, execution):
    """Return the canonical text; ``execution`` is taken as it is."""
    metadata, bundle = answer.metadata, answer.bundle
    fused = settings.scoring.fusion == "rrf"
    scoring = {key: value for key, value in settings.scoring.model_dump(mode="json").items() if value is not None}
    if not fused:
        del scoring["fusion"]
    found = {
        "schema_version": 22,
        "request_id": metadata.request_id,
        "user_id": asked["owner"],
        "query": asked["query"],
        "reference_time": metadata.model_dump(mode="json")["reference_time"],
        "scopes": metadata.scope_filter,
        "scoring": scoring,
        "packing": _packing(settings.packing, bundle, fused),
        "context_sha256": hashlib.sha256(bundle.context.encode()).hexdigest(),
        "min_score": metadata.min_score,
        **({"min_score_skipped": True} if metadata.min_score_skipped else {}),
        "result_limit": metadata.result_limit,
        "retrieval_mode": metadata.retrieval_mode,
        "time_from": asked.get("time_from"),
        "time_to": asked.get("time_to"),
        "candidates": [_candidate(item, fused) for item in answer.results],
        "score_provenance": {item.node_id: _provenance(item, scoring, fused) for item in answer.results},
        "ranking_policy": asked["policy"],
        "execution": execution,
    }
    return orjson.dumps(found).decode()


def _packing(packing, bundle, fused):
    dumped = packing.model_dump(mode="json")
    dumped |= {"token_budget": bundle.token_budget, "min_fidelity": bundle.min_fidelity}
    dumped |= {"chars_per_token": 4.2, "cross_scope_token_budget": 512}
    if not fused:
        del dumped["session_context_rank_fusion_score_decay"]
    return {name: dumped[name] for name in _PACKING.split() if dumped.get(name) is not None}


def _candidate(item, fused):
    return {
        "node_id": item.node_id,
        "scope": item.scope,
        "content_sha256": hashlib.sha256(item.content.encode()).hexdigest(),
        "score": item.score,
        "trace": item.lineage.trace.model_dump() if item.has_own_trace else None,
        "reranker_score": item.reranker_score,
        **({"semantic_relevance": item.semantic_relevance} if fused else {}),
        "representation": item.representation,
        "token_cost": item.token_cost or 0,
        "in_context": item.in_context,
        "has_content": item.representation in _TEXT and bool(item.content.strip()),
    }


def _provenance(item, scoring, fused):
    lineage = item.lineage
    steps = [step.model_dump() for step in lineage.adjustments]
    found = {
        "formula_version": lineage.formula_version,
        "base_node_id": lineage.base_node_id,
        "trace": lineage.trace.model_dump(),
        # A question about the present raises the decay (digest a §6.3); nothing else of the weights is shifted.
        "weights": scoring | ({"recency_lambda": 0.05} if fused and lineage.rank_fusion.recency_boost_factor else {}),
        "adjustments": [
            {name: step[name] for name in ("kind", "coefficient", "neural_score", "source_node_id")} for step in steps
        ],
    }
    if fused:
        ranks = lineage.rank_fusion.model_dump()
        optional = {name: ranks.pop(name) for name in ("recency_boost_factor", "tie_break")}
        found["rank_fusion"] = ranks | {name: value for name, value in optional.items() if value is not None}
    return found
