"""Small receipts of every version, written out by hand: three memories, the third a neighbour of the first."""

import hashlib
import json
import uuid

FIRST, SECOND, THIRD = (str(uuid.UUID(int=number, version=4)) for number in (11, 12, 13))
REQUEST = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
FUSED = (15, 16, 17, 18, 19, 21, 22)
VERSIONS = range(1, 23)
WRITTEN = (2, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22)

# Name, value and first version, in the order of the text.
PACKING = (
    ("multipath_ordering", "density", 4),
    ("context_guidance_mode", "temporal", 6),
    ("context_format", "auditable", 7),
    ("context_citations", False, 14),
    ("token_budget", 4096, 1),
    ("tokenizer", "cl100k_base", 1),
    ("min_fidelity", "reference", 1),
    ("overhead_tokens", 100, 1),
    ("chars_per_token", 4.2, 1),
    ("graph_max_candidates", 150, 1),
    ("vector_k", 500, 1),
    ("lexical_k", 500, 1),
    ("graph_max_hops", 3, 1),
    ("cross_scope_top_n", 5, 1),
    ("cross_scope_token_budget", 512, 1),
    ("session_context_window", 3, 1),
    ("session_context_top_k", 20, 1),
    ("session_context_score_decay", 0.85, 1),
    ("session_context_rank_fusion_score_decay", 0.6, 17),
    ("session_context_packing", "adjacent", 21),
    ("fold_repeated_text", True, 22),
    ("episode_context_top_k", 0, 8),
    ("episode_context_local_k", 8, 8),
    ("episode_context_score_decay", 0.95, 8),
    ("evidence_projection_top_k", 0, 10),
    ("evidence_projection_max_sources", 1, 10),
    ("evidence_projection_score_decay", 1.0, 10),
    ("evidence_augmentation_top_k", 0, 11),
    ("evidence_augmentation_max_sources", 1, 11),
    ("evidence_augmentation_score_decay", 0.99, 11),
    ("evidence_augmentation_anchor_policy", "all", 12),
    ("aggregation_k_multiplier", 3.0, 1),
    ("aggregation_k_max", 2000, 1),
)


def weights(version, *, fused):
    found = {
        "w_semantic": 0.25,
        "w_lexical": 0.2,
        "w_graph": 0.2,
        "w_recency": 0.1,
        "w_salience": 0.1,
        "w_confidence": 0.15,
        "w_epistemic": 0.05,
        "w_paths": 0.0,
        "recency_lambda": 0.02,
        "temporal_boost": 0.15,
        "node_type_boost": {"fact": 1.15},
        "relevance_floor": 0.35,
    }
    if version >= 9:
        found["current_update_multiplier"] = 1.3
    if fused:
        found |= {"fusion": "rrf", "rrf_k": 60}
        if version >= 19:
            found |= {"rrf_recency_boost": 0.25, "rrf_tie_break": "event_time"}
    elif version >= 20:
        found["recency_time"] = "event_time"
    return found


def packing(version, *, fused):
    found = {name: value for name, value, since in PACKING if version >= since}
    if not fused:
        found.pop("session_context_rank_fusion_score_decay", None)
    if version == 22:
        found["context_format"] = "reader"
    return found


def trace(**given):
    found = dict.fromkeys(
        (
            "semantic_similarity",
            "lexical_relevance",
            "graph_proximity",
            "recency_factor",
            "salience",
            "confidence",
        ),
        0.0,
    )
    found |= {"epistemic_weight": 1.0, "path_score": 0.0, "temporal_affinity": 0.0, "node_type_boost": 1.0}
    return found | {"composite_score": 0.0} | given


def _weighted():
    # .25 x .8 + .2 x .5 + .1 x 1 + .1 x .5 + .15 x .7 = .555; x .9 = .4995; x 1.15
    first = trace(
        semantic_similarity=0.8,
        lexical_relevance=0.5,
        recency_factor=1.0,
        salience=0.5,
        confidence=0.7,
        epistemic_weight=0.9,
        path_score=0.5,
        node_type_boost=1.15,
        composite_score=0.574425,
    )
    # More than its relevance, which is below the floor of .35: capped at .1 + .1.
    second = trace(
        semantic_similarity=0.1,
        lexical_relevance=0.1,
        graph_proximity=1.0,
        recency_factor=1.0,
        salience=1.0,
        confidence=1.0,
        path_score=1.0,
        composite_score=0.2,
    )
    return first, second, None, None


def _fused(version):
    """Ranks of a search without vectors at version 18, where the floor was skipped for that."""
    vectors = version != 18
    ranks = {"semantic_rank": 1 if vectors else None, "lexical_rank": 1, "epistemic_factor": 0.9}
    ranks |= {"node_type_factor": 1.0, "temporal_factor": 1.0}
    others = {"semantic_rank": 2 if vectors else None, "lexical_rank": None if vectors else 3, "epistemic_factor": 1.0}
    others |= {"node_type_factor": 1.0, "temporal_factor": 1.0}
    # On both channels (1/61 + 1/61) x 61/2 = 1, on one half of it; rank 2 alone 61/124, rank 3 alone 61/126.
    scores = [0.9, 0.4919354839] if vectors else [0.45, 0.4841269841]
    if version >= 19:
        ranks["tie_break"], others["tie_break"] = 0.5, 0.0
        scores[0] = 0.9 - 0.5 * 1e-11
    first = trace(semantic_similarity=0.8 if vectors else 0.0, epistemic_weight=0.9, composite_score=scores[0])
    second = trace(semantic_similarity=0.4 if vectors else 0.0, composite_score=scores[1])
    return first, second, ranks, others


def receipt(version, *, fused=None):
    """Return a valid receipt of this version; ``fused`` is only free at versions 21 and 22."""
    fused = version in FUSED if fused is None else fused
    first, second, ranks, others = _fused(version) if fused else _weighted()
    decay = 0.6 if fused and version >= 17 else 0.85
    scores = {FIRST: first["composite_score"], SECOND: second["composite_score"]}
    scores[THIRD] = scores[FIRST] * decay
    relevance = {FIRST: first["semantic_similarity"], SECOND: second["semantic_similarity"]}
    relevance[THIRD] = relevance[FIRST]
    candidates, provenance = [], {}
    for node_id in sorted(scores, key=scores.get, reverse=True):
        own = {FIRST: first, SECOND: second}.get(node_id)
        candidate = {
            "node_id": node_id,
            "scope": "personal",
            "content_sha256": hashlib.sha256(node_id.encode()).hexdigest(),
            "score": scores[node_id],
            "trace": own,
            "reranker_score": None,
            "semantic_relevance": relevance[node_id],
            "representation": None if node_id == SECOND else "full",
            "token_cost": 0 if node_id == SECOND else 9,
            "in_context": node_id != SECOND,
            "has_content": node_id != SECOND,
        }
        if not fused or version == 15:
            del candidate["semantic_relevance"]
        candidates.append(candidate)
        steps = [] if own else [{"kind": "session_decay", "coefficient": decay, "neural_score": None}]
        provenance[node_id] = {
            "formula_version": 2 if fused else 1,
            "base_node_id": SECOND if node_id == SECOND else FIRST,
            "trace": second if node_id == SECOND else first,
            "weights": weights(version, fused=fused),
            "adjustments": [step | {"source_node_id": FIRST} for step in steps],
        }
        if fused:
            provenance[node_id]["rank_fusion"] = others if node_id == SECOND else ranks
    made = {
        "schema_version": version,
        "request_id": REQUEST,
        "user_id": "Zoë",
        "query": 'what did "日本" say?',
        "reference_time": "2026-05-04T10:00:00.250000Z",
        "scopes": ["personal", "project"],
        "scoring": weights(version, fused=fused),
        "packing": packing(version, fused=fused),
        "context_sha256": hashlib.sha256(b"").hexdigest(),
        "min_score": 0.5 if version == 18 else None,
        **({"min_score_skipped": True} if version == 18 else {}),
        "result_limit": 10,
        "retrieval_mode": "default",
        "time_from": None,
        "time_to": "2026-01-01T00:00:00Z",
        "candidates": candidates,
    }
    if version >= 2:
        made |= {"score_provenance": provenance, "ranking_policy": "score_id"}
    if version >= 3:
        made["execution"] = {"schema_version": 1, "parameters": {"b": [1, 2.0, None]}, "features": {"a": {"é": "x"}}}
    return json.loads(json.dumps(made))  # nothing in it is shared, so a test may change one thing
