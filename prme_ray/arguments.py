"""The arguments of ``store`` and ``store_node``, checked and completed (digest b §6.1, digest a §1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from prme_ray.confidence import decay_profile_of, infer_epistemic, infer_source, initial_confidence
from prme_ray.model.enums import (
    DecayProfile,
    EpistemicType,
    LifecycleState,
    NodeType,
    Role,
    Scope,
    SourceType,
)
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.json_values import is_number, json_object
from prme_ray.model.nodes import SPEAKER_KEY, valid_speaker
from prme_ray.model.request import flag, one_of
from prme_ray.model.settings import Settings
from prme_ray.model.text import check_text, name_of
from prme_ray.model.times import Instant, instant

__all__ = ["BINDINGS_KEY", "OMITTED", "MemoryArguments", "Omitted", "check_arguments"]

BINDINGS_KEY = "prme_value_bindings_v1"
"""Reserved metadata key of the value bindings."""
_BINDINGS_LIMIT = 256
_TTL_LIMIT = 1_000_000
_DEFAULT_SALIENCE = 0.5


class Omitted:
    """Type of :data:`OMITTED`, which differs from ``None`` where ``None`` means something."""

    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Final = Omitted()

_DEFAULT_TTL = {
    NodeType.EVENT: 365,
    NodeType.DECISION: 180,
    NodeType.TASK: 90,
    NodeType.SUMMARY: 365,
    NodeType.NOTE: 90,
}


@dataclass(frozen=True, slots=True)
class MemoryArguments:
    """Checked arguments; every inferred value is filled in."""

    content: str
    retrieval_content: str | None
    value_bindings: tuple[tuple[str, str], ...]
    session_id: str | None
    metadata: dict[str, Any] | None
    role: Role
    speaker: str | None
    node_type: NodeType
    scope: Scope
    confidence: float
    epistemic_type: EpistemicType
    source_type: SourceType
    decay_profile: DecayProfile
    lifecycle_state: LifecycleState
    event_time: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    ttl_days: int | None
    salience: float
    pinned: bool

    def node_metadata(self) -> dict[str, Any] | None:
        """Return the caller's metadata with speaker and bindings under their reserved keys."""
        metadata = dict(self.metadata or {})
        if self.epistemic_type is EpistemicType.CONDITIONAL:
            metadata.setdefault("condition_state", "unknown")
        if self.speaker is not None:
            metadata[SPEAKER_KEY] = self.speaker
        if self.value_bindings:
            metadata[BINDINGS_KEY] = [list(pair) for pair in self.value_bindings]
        return metadata or None


def check_arguments(
    content: Any,
    *,
    settings: Settings,
    item: int | None = None,
    retrieval_content: str | None = None,
    value_bindings: Mapping[str, str] | None = None,
    session_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    role: str = Role.USER,
    speaker: str | None = None,
    node_type: str = NodeType.NOTE,
    scope: str = Scope.PERSONAL,
    confidence: float | None = None,
    epistemic_type: str | None = None,
    source_type: str | None = None,
    lifecycle_state: str = LifecycleState.TENTATIVE,
    event_time: Instant | None = None,
    valid_from: Instant | None = None,
    valid_to: Instant | None = None,
    ttl_days: int | Omitted | None = OMITTED,
    salience: float | None = None,
    pinned: bool = False,
) -> MemoryArguments:
    """Return checked arguments of one memory.

    Raises:
        InvalidText: text that no index can hold; ``item`` names its place in a ``store_many``.
        InvalidRequest: any other argument that is not allowed.
    """
    text = check_text(content, "content", item)
    indexed = None if retrieval_content is None else check_text(retrieval_content, "retrieval_content", item)
    who = one_of(Role, role, "role")
    kind = one_of(NodeType, node_type, "node_type")
    source = infer_source(who) if source_type is None else one_of(SourceType, source_type, "source_type")
    epistemic = (
        infer_epistemic(who, kind)
        if epistemic_type is None
        else one_of(EpistemicType, epistemic_type, "epistemic_type")
    )
    checked_metadata = _metadata(metadata, epistemic, item)
    start, end = instant(valid_from, "valid_from"), instant(valid_to, "valid_to")
    if end is not None and (start is None or end <= start):
        raise InvalidRequest(argument="valid_to", given=valid_to, allowed="a time later than an explicit valid_from")
    return MemoryArguments(
        content=text,
        retrieval_content=indexed,
        value_bindings=_bindings(value_bindings, text, text if indexed is None else indexed, item),
        session_id=None if session_id is None else name_of(session_id, "session_id"),
        metadata=checked_metadata,
        role=who,
        speaker=_speaker(speaker),
        node_type=kind,
        scope=one_of(Scope, scope, "scope"),
        confidence=(
            initial_confidence(epistemic, source, kind, overrides=settings.confidence_overrides)
            if confidence is None
            else _unit(confidence, "confidence")
        ),
        epistemic_type=epistemic,
        source_type=source,
        decay_profile=decay_profile_of(epistemic, kind),
        lifecycle_state=one_of(LifecycleState, lifecycle_state, "lifecycle_state"),
        event_time=instant(event_time, "event_time"),
        valid_from=start,
        valid_to=end,
        ttl_days=_DEFAULT_TTL.get(kind) if isinstance(ttl_days, Omitted) else _days(ttl_days),
        salience=_DEFAULT_SALIENCE if salience is None else _unit(salience, "salience"),
        pinned=flag(pinned, "pinned"),
    )


def _unit(value: Any, argument: str) -> float:
    if not is_number(value, 0, 1):
        raise InvalidRequest(argument=argument, given=value, allowed="a number from 0 to 1")
    return float(value)


def _days(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or not is_number(value, 1, _TTL_LIMIT):
        allowed = f"a whole number of days from 1 to {_TTL_LIMIT}, or None for no expiry"
        raise InvalidRequest(argument="ttl_days", given=value, allowed=allowed)
    return value


def _speaker(value: str | None) -> str | None:
    if value is None:
        return None
    name = valid_speaker(value)
    if name is None:
        raise InvalidRequest(
            argument="speaker", given=str(value)[:40], allowed="1 to 200 characters without control or line characters"
        )
    return name


def _metadata(value: Mapping[str, Any] | None, epistemic: EpistemicType, item: int | None) -> dict[str, Any] | None:
    if epistemic is EpistemicType.DEPRECATED:
        raise InvalidRequest(
            argument="epistemic_type", given="deprecated", allowed="a type that can be assigned at creation"
        )
    metadata = {} if value is None else json_object(value, "metadata", item)
    for key in (SPEAKER_KEY, BINDINGS_KEY):
        if key in metadata:
            raise InvalidRequest(argument="metadata", given=key, allowed="other keys; this one is reserved")
    if epistemic is EpistemicType.CONDITIONAL:
        condition = metadata.get("condition")
        if not isinstance(condition, str) or not condition.strip():
            raise InvalidRequest(
                argument="metadata.condition", given=condition, allowed="the condition's text, for a conditional memory"
            )
        if metadata.get("condition_state", "unknown") != "unknown":
            raise InvalidRequest(
                argument="metadata.condition_state", given=metadata["condition_state"], allowed="'unknown' at creation"
            )
    return metadata or None


def _bindings(
    value: Mapping[str, str] | None, content: str, indexed: str, item: int | None
) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping) or len(value) > _BINDINGS_LIMIT:
        raise InvalidRequest(
            argument="value_bindings", given=type(value).__name__, allowed=f"a mapping of up to {_BINDINGS_LIMIT} pairs"
        )
    for presentation, lookup in value.items():
        check_text(presentation, "value_bindings", item)
        check_text(lookup, "value_bindings", item)
        if not presentation or presentation == lookup or presentation not in content or presentation not in indexed:
            raise InvalidRequest(
                argument="value_bindings",
                given=presentation[:40],
                allowed="a presentation that stands word for word in both texts and differs from its lookup",
            )
    return tuple(value.items())
