"""The closed vocabularies of the memory model (RFC-0005 §3-§7).

Members are the lower-case wire strings used in JSON, in receipts and over HTTP. In Arrow tables the
same values travel as ``int8`` codes: a member's code is its position in the enum, so a table of
weights indexed by code is one NumPy look-up. The order is part of the store format: append only.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

__all__ = [
    "ACTIVE_STATES",
    "PINNABLE_STATES",
    "Adjustment",
    "ConditionState",
    "DecayProfile",
    "EdgeType",
    "EpistemicType",
    "Intent",
    "LifecycleState",
    "NodeType",
    "Path",
    "RetrievalMode",
    "Role",
    "Scope",
    "SourceType",
    "TemporalType",
    "code",
    "member",
    "path_names",
]

E = TypeVar("E", bound=StrEnum)


class NodeType(StrEnum):
    """What a memory is; ``intent`` is RFC-0013's minimum (decision 9)."""

    ENTITY = "entity"
    EVENT = "event"
    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    TASK = "task"
    SUMMARY = "summary"
    NOTE = "note"
    INSTRUCTION = "instruction"
    INTENT = "intent"


class EdgeType(StrEnum):
    """How two memories are related; traversal treats every type as undirected."""

    RELATES_TO = "relates_to"
    SUPERSEDES = "supersedes"
    DERIVED_FROM = "derived_from"
    MENTIONS = "mentions"
    PART_OF = "part_of"
    CAUSED_BY = "caused_by"
    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    HAS_FACT = "has_fact"


class Scope(StrEnum):
    """Namespace of a memory inside its owner."""

    PERSONAL = "personal"
    PROJECT = "project"
    ORGANISATION = "organisation"
    AGENT = "agent"
    SYSTEM = "system"
    SANDBOX = "sandbox"


class LifecycleState(StrEnum):
    """Where a memory stands; see :data:`ACTIVE_STATES`."""

    TENTATIVE = "tentative"
    STABLE = "stable"
    CONTESTED = "contested"
    SUPERSEDED = "superseded"
    DEPRECATED = "deprecated"
    ARCHIVED = "archived"


class EpistemicType(StrEnum):
    """How a memory is known (RFC-0003)."""

    OBSERVED = "observed"
    ASSERTED = "asserted"
    INFERRED = "inferred"
    HYPOTHETICAL = "hypothetical"
    CONDITIONAL = "conditional"
    DEPRECATED = "deprecated"
    UNVERIFIED = "unverified"


class SourceType(StrEnum):
    """Who or what a memory came from."""

    USER_STATED = "user_stated"
    USER_DEMONSTRATED = "user_demonstrated"
    SYSTEM_INFERRED = "system_inferred"
    EXTERNAL_DOCUMENT = "external_document"
    TOOL_OUTPUT = "tool_output"


class ConditionState(StrEnum):
    """Truth of a conditional memory's condition."""

    UNKNOWN = "unknown"
    TRUE = "true"
    FALSE = "false"
    EXPIRED = "expired"


class DecayProfile(StrEnum):
    """Forgetting speed of salience and confidence."""

    PERMANENT = "permanent"
    SLOW = "slow"
    MEDIUM = "medium"
    FAST = "fast"
    RAPID = "rapid"


class Role(StrEnum):
    """Who spoke the source event."""

    USER = "user"
    PARTICIPANT = "participant"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class RetrievalMode(StrEnum):
    """Which memories a request may see (RFC §3, decision 8)."""

    DEFAULT = "default"
    EXPLICIT = "explicit"
    AUDIT = "audit"


class Intent(StrEnum):
    """Query intents; only ``temporal`` is read downstream (RFC §3)."""

    ENTITY_LOOKUP = "entity_lookup"
    TEMPORAL = "temporal"
    RELATIONAL = "relational"
    FACTUAL = "factual"
    SEMANTIC = "semantic"


class TemporalType(StrEnum):
    """Kinds of temporal signal (RFC §3)."""

    ABSOLUTE = "ABSOLUTE"
    RELATIVE = "RELATIVE"
    DURATION = "DURATION"
    RECURRING = "RECURRING"


class Path(StrEnum):
    """Ways a candidate was found. In tables: one bit each, in this order."""

    GRAPH = "GRAPH"
    VECTOR = "VECTOR"
    LEXICAL = "LEXICAL"
    PINNED = "PINNED"
    SESSION_CONTEXT = "SESSION_CONTEXT"
    EPISODE_CONTEXT = "EPISODE_CONTEXT"
    EVIDENCE_CONTEXT = "EVIDENCE_CONTEXT"

    @property
    def bit(self) -> int:
        """This path's bit in the ``paths`` column."""
        return _PATH_BITS[self]


class Adjustment(StrEnum):
    """Ordered changes of a base score, recorded in the lineage (digest a §1.4)."""

    NEURAL_BLEND = "neural_blend"
    NEURAL_RANK_ASSIGNMENT = "neural_rank_assignment"
    CURRENT_UPDATE = "current_update"
    SESSION_DECAY = "session_decay"
    EPISODE_DECAY = "episode_decay"
    EVIDENCE_PROJECTION = "evidence_projection"
    EVIDENCE_AUGMENTATION = "evidence_augmentation"


ACTIVE_STATES: tuple[LifecycleState, ...] = (
    LifecycleState.TENTATIVE,
    LifecycleState.STABLE,
    LifecycleState.CONTESTED,
)
"""The seed's ACTIVE (decision 7)."""

PINNABLE_STATES: tuple[LifecycleState, ...] = (LifecycleState.TENTATIVE, LifecycleState.STABLE)
"""States in which a pin, a task or an intent is looked up directly (decision 7)."""

_CODED: tuple[type[StrEnum], ...] = (
    NodeType,
    EdgeType,
    Scope,
    LifecycleState,
    EpistemicType,
    SourceType,
    DecayProfile,
    Role,
    Adjustment,
)
_MEMBERS: dict[type[StrEnum], tuple[StrEnum, ...]] = {enum: tuple(enum) for enum in _CODED}
# Keyed by type first: members of different enums that share a string compare equal.
_CODES: dict[type[StrEnum], dict[str, int]] = {
    enum: {value: position for position, value in enumerate(enum)} for enum in _CODED
}
_PATH_BITS = {path: 1 << position for position, path in enumerate(Path)}
_PATH_NAMES: list[tuple[str, ...]] = [
    tuple(str(path) for path, bit in _PATH_BITS.items() if mask & bit) for mask in range(1 << len(_PATH_BITS))
]


def code(value: StrEnum) -> int:
    """Return the ``int8`` code of an enum member."""
    return _CODES[type(value)][value]


def member(enum: type[E], value: int) -> E:
    """Return the member of ``enum`` with this code."""
    return _MEMBERS[enum][value]  # type: ignore[return-value]


def path_names(mask: int) -> tuple[str, ...]:
    """Return the path names in ``mask``, in the order of :class:`Path`."""
    return _PATH_NAMES[mask]
