"""The table of receipt versions, and which version states the settings in force (digest b §3.2, decision 20).

From the version that adds a setting on, the setting must stand in the receipt; an older receipt may not
hold it and reads as the value it had before it existed. Optional settings stand only where they are set
and have an effect, so that the bytes of a receipt do not change with what a later program could do.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from prme_ray.model.errors import InvalidRequest
from prme_ray.model.receipts.schema import Packing, Scoring
from prme_ray.model.settings import PackingSettings, ScoringSettings

__all__ = [
    "ADDED",
    "ADJUSTMENTS",
    "OPTIONAL",
    "OURS_ONLY",
    "THEIRS_ONLY",
    "recorded_packing",
    "recorded_scoring",
    "version_for",
]


class Added(NamedTuple):
    """A setting that stands in every receipt from ``version`` on; older ones read as ``reads_as``."""

    version: int
    group: str
    name: str
    reads_as: Any


ADDED: tuple[Added, ...] = (
    Added(4, "packing", "multipath_ordering", "density"),
    Added(6, "packing", "context_guidance_mode", "off"),
    Added(7, "packing", "context_format", "auditable"),
    Added(8, "packing", "episode_context_top_k", 0),
    Added(8, "packing", "episode_context_local_k", 8),
    Added(8, "packing", "episode_context_score_decay", 0.95),
    Added(9, "scoring", "current_update_multiplier", 1.0),
    Added(10, "packing", "evidence_projection_top_k", 0),
    Added(10, "packing", "evidence_projection_max_sources", 1),
    Added(10, "packing", "evidence_projection_score_decay", 1.0),
    Added(11, "packing", "evidence_augmentation_top_k", 0),
    Added(11, "packing", "evidence_augmentation_max_sources", 1),
    Added(11, "packing", "evidence_augmentation_score_decay", 0.99),
    Added(12, "packing", "evidence_augmentation_anchor_policy", "all"),
    Added(14, "packing", "context_citations", False),
)

OPTIONAL: dict[str, int] = {
    "fusion": 15,
    "rrf_k": 15,
    "session_context_rank_fusion_score_decay": 17,
    "min_score_skipped": 18,
    "rrf_recency_boost": 19,
    "rrf_tie_break": 19,
    "recency_time": 20,
    "session_context_packing": 21,
    "fold_repeated_text": 22,
}
"""Key that stands only where it is set -> first version that may hold it."""

ADJUSTMENTS: dict[str, int] = {
    "neural_blend": 2,
    "session_decay": 2,
    "episode_decay": 8,
    "current_update": 9,
    "evidence_projection": 10,
    "evidence_augmentation": 11,
    "neural_rank_assignment": 13,
}
"""Kind of adjustment -> first version that may hold it."""

OURS_ONLY = frozenset({"min_edge_confidence", "pinned_limit"})
"""Settings of ours that the schema has no key for: they belong in ``execution.parameters``."""

THEIRS_ONLY: dict[str, Any] = {"chars_per_token": 4.2, "cross_scope_token_budget": 512}
"""Keys of the schema without any effect, here as in the reference: always these values."""

_WITHOUT_EXECUTION = 2
_FORCED_OFF = frozenset({"context_guidance_mode", "context_citations", "current_update_multiplier"})
"""What a receipt without an execution descriptor leaves out, whatever was set."""


def version_for(
    scoring: ScoringSettings,
    packing: PackingSettings,
    *,
    rank_assignment: bool = False,
    min_score_skipped: bool = False,
    execution: bool = True,
) -> int:
    """Return the lowest version, of those that are written, that states the settings in force.

    Args:
        scoring: Scoring settings in force.
        packing: Packing settings in force.
        rank_assignment: Whether any score was assigned by a cross-encoder's envelope policy.
        min_score_skipped: Whether the floor was skipped because the vector path failed.
        execution: Whether the receipt gets an execution descriptor.

    Raises:
        InvalidRequest: without an execution descriptor, where a setting needs one.
    """
    if not execution:
        _refuse_without_execution(scoring, packing, rank_assignment)
        return _WITHOUT_EXECUTION
    if _folds(packing):
        return 22
    if _packs_sessions(packing):
        return 21
    if scoring.fusion == "rrf":
        return _fused_version(scoring, packing, min_score_skipped)
    return _weighted_version(scoring, packing, rank_assignment)


def _fused_version(scoring: ScoringSettings, packing: PackingSettings, min_score_skipped: bool) -> int:
    if scoring.rrf_recency_boost is not None or scoring.rrf_tie_break is not None:
        return 19
    if min_score_skipped:
        return 18
    return 16 if packing.session_context_rank_fusion_score_decay is None else 17


def _weighted_version(scoring: ScoringSettings, packing: PackingSettings, rank_assignment: bool) -> int:
    if scoring.recency_time is not None:
        return 20
    if packing.context_format == "reader":
        return 14
    return 13 if rank_assignment else 12


def _folds(packing: PackingSettings) -> bool:
    return packing.fold_repeated_text and packing.context_format == "reader"


def _packs_sessions(packing: PackingSettings) -> bool:
    expands = packing.session_context_window > 0 and packing.session_context_top_k > 0
    return packing.session_context_packing is not None and expands


def _refuse_without_execution(scoring: ScoringSettings, packing: PackingSettings, rank_assignment: bool) -> None:
    needing = [
        added.name
        for added in ADDED
        if added.group == "packing" and added.name not in _FORCED_OFF and getattr(packing, added.name) != added.reads_as
    ]
    needing += ["fusion"] if scoring.fusion == "rrf" else []
    needing += ["recency_time"] if scoring.recency_time is not None else []
    needing += ["session_context_packing"] if _packs_sessions(packing) else []
    needing += ["neural_rank_assignment"] if rank_assignment else []
    if needing:
        raise InvalidRequest(
            argument="execution",
            given=None,
            allowed=f"an execution descriptor: a receipt without one cannot state {', '.join(needing)}",
        )


def recorded_scoring(scoring: ScoringSettings, *, version: int) -> Scoring:
    """Return scoring settings as a receipt of this version states them: what is unset is left out."""
    found = scoring.model_dump(mode="json", exclude_none=True)
    if scoring.fusion != "rrf":
        found.pop("fusion")
    return cast(Scoring, _held(found, "scoring", version))


def recorded_packing(packing: PackingSettings, *, version: int, fused: bool) -> Packing:
    """Return packing settings as a receipt of this version states them.

    Left out is what is unset or has no effect: folding outside the reader format, session packing
    without session expansion, the fused session decay under the weighted formula.

    Args:
        packing: The settings in force.
        version: Version of the receipt.
        fused: Whether rank fusion scored.
    """
    found = packing.model_dump(mode="json", exclude_none=True, exclude=set(OURS_ONLY)) | THEIRS_ONLY
    if not _folds(packing):
        del found["fold_repeated_text"]
    if not _packs_sessions(packing):
        found.pop("session_context_packing", None)
    if not fused:
        found.pop("session_context_rank_fusion_score_decay", None)
    held = _held(found, "packing", version)
    return cast(Packing, {name: held[name] for name in Packing.__annotations__ if name in held})


def _held(settings: dict[str, Any], group: str, version: int) -> dict[str, Any]:
    newer = {added.name for added in ADDED if added.group == group and added.version > version}
    return {name: value for name, value in settings.items() if name not in newer}
