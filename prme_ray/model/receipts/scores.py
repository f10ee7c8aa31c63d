"""What must fit together among a receipt's candidates and their lineages (digest b §3.4 items 1 and 5)."""

from __future__ import annotations

from collections.abc import Iterator

from prme_ray.model.receipts.schema import Adjustment, Candidate, Packing, Provenance, Receipt, Scoring
from prme_ray.model.receipts.versions import ADJUSTMENTS

__all__ = ["candidate_problems"]

_RELEVANCE = 16
_RANK_FUSION = 2
_RANGES: dict[str, tuple[float, float]] = {
    "neural_blend": (0.0, 1.0),
    "neural_rank_assignment": (0.0, float("inf")),
    "current_update": (1.0, 2.0),
    "evidence_projection": (0.0, 1.0),
    "evidence_augmentation": (0.0, 1.0),
}
_ABOVE_ZERO = frozenset({"evidence_projection", "evidence_augmentation"})
_OPT_INS = ("fusion", "rrf_k", "rrf_recency_boost", "rrf_tie_break", "recency_time")


def candidate_problems(receipt: Receipt) -> Iterator[str]:
    """Yield the rules that a receipt's candidates and lineages break, in their order."""
    ids = [candidate["node_id"] for candidate in receipt["candidates"]]
    if len(set(ids)) < len(ids):
        yield "a memory is listed twice"
    for candidate in receipt["candidates"]:
        yield from _packed(candidate)
    lineages = receipt.get("score_provenance")
    if lineages is None:
        return
    if list(lineages) != ids:
        yield "score_provenance is not for the candidates, in their order"
        return
    boosted = {"recency_boost_factor" in lineage.get("rank_fusion", {}) for lineage in lineages.values()}
    if len(boosted) > 1:
        yield "the recency boost was applied to some candidates only"
    for candidate in receipt["candidates"]:
        lineage = lineages[candidate["node_id"]]
        yield from _lineage(lineage, receipt)
        yield from _own_trace(candidate, lineage)
        yield from _relevance(candidate, lineage, receipt)


def _packed(candidate: Candidate) -> Iterator[str]:
    if candidate["in_context"] and candidate["representation"] is None:
        yield f"{candidate['node_id']} is in the context at no level"
    if candidate["has_content"] and not candidate["in_context"]:
        yield f"{candidate['node_id']} has content in a context that it is not in"


def _own_trace(candidate: Candidate, lineage: Provenance) -> Iterator[str]:
    own = candidate["trace"]
    if own is not None and (lineage["base_node_id"] != candidate["node_id"] or lineage["trace"] != own):
        yield f"{candidate['node_id']} has another trace than its lineage"


def _lineage(lineage: Provenance, receipt: Receipt) -> Iterator[str]:
    version = receipt.get("schema_version", 1)
    scoring, weights = receipt["scoring"], lineage["weights"]
    fused = "fusion" in scoring
    if (lineage["formula_version"] == _RANK_FUSION) != fused or ("rank_fusion" in lineage) != fused:
        yield f"formula {lineage['formula_version']} does not fit the settings"
    if any(weights.get(name) != scoring.get(name) for name in _OPT_INS):
        yield "the weights of a lineage have other options than the settings"
    yield from _factors(lineage, weights)
    for step in lineage["adjustments"]:
        yield from _step(step, version)
        yield from _session_step(step, receipt["packing"], fused=fused)


def _factors(lineage: Provenance, weights: Scoring) -> Iterator[str]:
    ranks = lineage.get("rank_fusion")
    if ranks is None:
        return
    if ("tie_break" in ranks) != ("rrf_tie_break" in weights):
        yield "a tie-break stands exactly where scoring.rrf_tie_break is set"
    if "recency_boost_factor" in ranks and "rrf_recency_boost" not in weights:
        yield "a recency factor needs scoring.rrf_recency_boost"


def _step(step: Adjustment, version: int) -> Iterator[str]:
    kind, coefficient = step["kind"], step["coefficient"]
    if version < ADJUSTMENTS[kind]:
        yield f"version {version} has no adjustment {kind}"
    low, high = _RANGES.get(kind, (-float("inf"), float("inf")))
    if not low <= coefficient <= high or (kind in _ABOVE_ZERO and coefficient == 0):
        yield f"{kind} with coefficient {coefficient!r}, allowed is {low} to {high}"
    if (step["neural_score"] is not None) != (kind == "neural_blend"):
        yield "a neural score stands with a neural_blend, and only there"


def _session_step(step: Adjustment, packing: Packing, *, fused: bool) -> Iterator[str]:
    decay = packing.get("session_context_rank_fusion_score_decay")
    if fused and decay is not None and step["kind"] == "session_decay" and step["coefficient"] != decay:
        yield f"a session decay of {step['coefficient']!r}, the settings say {decay!r}"


def _relevance(candidate: Candidate, lineage: Provenance, receipt: Receipt) -> Iterator[str]:
    expected = "fusion" in receipt["scoring"] and receipt.get("schema_version", 1) >= _RELEVANCE
    if ("semantic_relevance" in candidate) != expected:
        yield f"{candidate['node_id']} {'lacks its' if expected else 'has a'} semantic_relevance"
    relevance = candidate.get("semantic_relevance")
    if relevance is None:
        return
    own = candidate["trace"]
    known = max(0.0, lineage["trace"]["semantic_similarity"], 0.0 if own is None else own["semantic_similarity"])
    if relevance < known:
        yield f"{candidate['node_id']} has a relevance of {relevance!r} below its cosine"
    if "min_score_skipped" in receipt:
        if relevance != 0.0:
            yield f"the floor was skipped, and {candidate['node_id']} has a relevance"
    elif receipt["min_score"] is not None and relevance < receipt["min_score"]:
        yield f"{candidate['node_id']} has a relevance of {relevance!r} below min_score"
