"""Initial epistemic type, source type, confidence and decay of a memory (digest a §1.2-1.3)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from prme_ray.model.enums import DecayProfile, EpistemicType, NodeType, Role, SourceType

__all__ = ["decay_profile_of", "infer_epistemic", "infer_source", "initial_confidence"]

_MISSING_CELL = 0.5
_INSTRUCTION_FLOOR = 0.7

_STATED, _SHOWN, _INFERRED, _DOCUMENT, _TOOL = SourceType
_MATRIX: dict[EpistemicType, dict[SourceType, float]] = {
    EpistemicType.OBSERVED: {_STATED: 0.90, _SHOWN: 0.85, _INFERRED: 0.70, _DOCUMENT: 0.75, _TOOL: 0.80},
    EpistemicType.ASSERTED: {_STATED: 0.80, _SHOWN: 0.75, _INFERRED: 0.60, _DOCUMENT: 0.65, _TOOL: 0.70},
    EpistemicType.INFERRED: {_SHOWN: 0.60, _INFERRED: 0.55, _DOCUMENT: 0.50, _TOOL: 0.55},
    EpistemicType.HYPOTHETICAL: {_STATED: 0.35, _INFERRED: 0.25, _DOCUMENT: 0.30},
    EpistemicType.CONDITIONAL: {_STATED: 0.45, _INFERRED: 0.30, _DOCUMENT: 0.35, _TOOL: 0.40},
    EpistemicType.UNVERIFIED: {_INFERRED: 0.20, _DOCUMENT: 0.25, _TOOL: 0.30},
}
_DECAY = {
    EpistemicType.OBSERVED: DecayProfile.SLOW,
    EpistemicType.ASSERTED: DecayProfile.MEDIUM,
    EpistemicType.INFERRED: DecayProfile.FAST,
    EpistemicType.HYPOTHETICAL: DecayProfile.RAPID,
    EpistemicType.CONDITIONAL: DecayProfile.MEDIUM,
    EpistemicType.DEPRECATED: DecayProfile.PERMANENT,
    EpistemicType.UNVERIFIED: DecayProfile.RAPID,
}


def infer_source(role: Role) -> SourceType:
    """Return the source type a speaker's role implies."""
    if role in (Role.ASSISTANT, Role.SYSTEM):
        return SourceType.SYSTEM_INFERRED
    return SourceType.TOOL_OUTPUT if role is Role.TOOL else SourceType.USER_STATED


def infer_epistemic(role: Role, node_type: NodeType) -> EpistemicType:
    """Return the epistemic type that role and node type imply."""
    if role in (Role.ASSISTANT, Role.SYSTEM) or node_type is NodeType.SUMMARY:
        return EpistemicType.INFERRED
    if node_type in (NodeType.EVENT, NodeType.INSTRUCTION):
        return EpistemicType.OBSERVED
    return EpistemicType.ASSERTED


def decay_profile_of(epistemic: EpistemicType, node_type: NodeType) -> DecayProfile:
    """Return the default decay profile; instructions decay slowly whatever their type."""
    return DecayProfile.SLOW if node_type is NodeType.INSTRUCTION else _DECAY[epistemic]


def initial_confidence(
    epistemic: EpistemicType, source: SourceType, node_type: NodeType, *, overrides: Mapping[str, float]
) -> float:
    """Return the confidence of a memory whose caller gave none; an empty cell counts 0.5 and warns."""
    found = overrides.get(f"{epistemic}:{source}", _MATRIX.get(epistemic, {}).get(source))
    if found is None:
        warnings.warn(f"no initial confidence for {epistemic}:{source}; using {_MISSING_CELL}", stacklevel=2)
        found = _MISSING_CELL
    return max(found, _INSTRUCTION_FLOOR) if node_type is NodeType.INSTRUCTION else found
