"""What must fit together in a receipt: version, settings, candidates (digest b §3.2, §3.4 items 1 and 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prme_ray.model.receipts.schema import Packing, Receipt, Scoring
from prme_ray.model.receipts.scores import candidate_problems
from prme_ray.model.receipts.versions import ADDED, OPTIONAL

__all__ = ["problem"]

_NEWEST_WEIGHTED_ONLY = 14
_LINEAGE, _EXECUTION, _BALANCED, _READER = 2, 3, 5, 14
_FUSED_ONLY = range(15, 20)
_WEIGHTED_ONLY = 20
_ADDITIVE = ("w_semantic", "w_lexical", "w_graph", "w_recency", "w_salience", "w_confidence")
_SUM_TOLERANCE = 1e-6
_FUSION_KEYS = frozenset({"rrf_k", "rrf_recency_boost", "rrf_tie_break"})


def problem(receipt: Receipt) -> str | None:
    """Return the first rule that a receipt of the right types breaks, ``None`` where it breaks none.

    Replaying the scores is not part of it.
    """
    return next(_problems(receipt), None)


def _problems(receipt: Receipt) -> Iterator[str]:
    version = receipt.get("schema_version", 1)
    yield from _parts(receipt, version)
    yield from _explicit(receipt["packing"], "packing", version)
    yield from _optional(receipt["packing"], "packing", version)
    yield from _optional(receipt, "receipt", version)
    yield from _scoring(receipt["scoring"], "scoring", version)
    yield from _formula(receipt["scoring"], version)
    yield from _packing(receipt["packing"], version, fused="fusion" in receipt["scoring"])
    yield from _stated(receipt, version)
    weights = [provenance["weights"] for provenance in receipt.get("score_provenance", {}).values()]
    for applied in weights:
        yield from _scoring(applied, "weights", version)
    yield from candidate_problems(receipt)


def _parts(receipt: Receipt, version: int) -> Iterator[str]:
    for part, since in (("score_provenance", _LINEAGE), ("ranking_policy", _LINEAGE), ("execution", _EXECUTION)):
        if (part in receipt) != (version >= since):
            yield f"version {version} {'needs' if version >= since else 'has no'} {part}"


def _explicit(settings: Mapping[str, Any], group: str, version: int) -> Iterator[str]:
    for added in ADDED:
        if added.group == group and (added.name in settings) != (version >= added.version):
            yield f"version {version} {'needs' if version >= added.version else 'has no'} {group}.{added.name}"


def _optional(settings: Mapping[str, Any], group: str, version: int) -> Iterator[str]:
    for name, since in OPTIONAL.items():
        if name in settings and version < since:
            yield f"version {version} has no {group}.{name}"


def _scoring(scoring: Scoring, group: str, version: int) -> Iterator[str]:
    yield from _explicit(scoring, "scoring", version)
    yield from _optional(scoring, group, version)
    total = sum(scoring[name] for name in _ADDITIVE)  # type: ignore[literal-required]
    if abs(total - 1.0) > _SUM_TOLERANCE:
        yield f"the additive weights of {group} sum to {total!r}, not to 1"


def _formula(scoring: Scoring, version: int) -> Iterator[str]:
    fused = "fusion" in scoring
    if fused and (version <= _NEWEST_WEIGHTED_ONLY or version == _WEIGHTED_ONLY):
        yield f"version {version} has no rank fusion"
    if not fused and version in _FUSED_ONLY:
        yield f"version {version} needs rank fusion"
    if fused and "rrf_k" not in scoring:
        yield "rank fusion needs scoring.rrf_k"
    if fused and "recency_time" in scoring:
        yield "scoring.recency_time belongs to the weighted formula"
    if fused and any(boost < 0 for boost in scoring["node_type_boost"].values()):
        yield "rank fusion has no negative scoring.node_type_boost"
    if not fused and not _FUSION_KEYS.isdisjoint(scoring):
        yield "scoring.rrf_* belong to rank fusion"


def _packing(packing: Packing, version: int, *, fused: bool) -> Iterator[str]:
    layout = packing.get("context_format", "auditable")
    if version < _BALANCED and packing.get("multipath_ordering") == "balanced":
        yield f"version {version} has no balanced ordering"
    if version < _READER and layout == "reader":
        yield f"version {version} has no reader format"
    if layout != "reader" and packing.get("context_citations"):
        yield "packing.context_citations needs the reader format"
    if layout != "reader" and "fold_repeated_text" in packing:
        yield "packing.fold_repeated_text has no effect outside the reader format"
    if packing.get("evidence_projection_top_k") and packing.get("evidence_augmentation_top_k"):
        yield "evidence projection and augmentation exclude each other"
    expands = packing["session_context_window"] > 0 and packing["session_context_top_k"] > 0
    if "session_context_packing" in packing and not expands:
        yield "packing.session_context_packing has no effect without session expansion"
    if "session_context_rank_fusion_score_decay" in packing and not fused:
        yield "packing.session_context_rank_fusion_score_decay has no effect under the weighted formula"


def _stated(receipt: Receipt, version: int) -> Iterator[str]:
    """Check what a version was made for, and without which a lower one would have been written."""
    scoring, packing = receipt["scoring"], receipt["packing"]
    needed: dict[int, bool] = {
        17: "session_context_rank_fusion_score_decay" in packing,
        18: "min_score_skipped" in receipt,
        19: "rrf_recency_boost" in scoring or "rrf_tie_break" in scoring,
        20: "recency_time" in scoring,
        21: "session_context_packing" in packing,
        22: "fold_repeated_text" in packing,
    }
    if not needed.get(version, True):
        yield f"version {version} lacks the setting that it was made for"
    if "min_score_skipped" in receipt and ("fusion" not in scoring or not receipt["min_score"]):
        yield "min_score_skipped needs rank fusion and a positive min_score"
