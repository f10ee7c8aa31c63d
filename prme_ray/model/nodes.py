"""Memories and edges as records: what callers see, what the log keeps, and their table rows."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import pyarrow as pa
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from prme_ray.model.enums import (
    DecayProfile,
    EdgeType,
    EpistemicType,
    LifecycleState,
    NodeType,
    Role,
    Scope,
    SourceType,
    code,
)
from prme_ray.model.tables import NODE
from prme_ray.model.times import micros
from prme_ray.model.wording import has_date, has_update_wording

__all__ = ["ENTITY_TYPE_KEY", "SPEAKER_KEY", "Edge", "Event", "Node", "node_rows", "node_table", "valid_speaker"]

SPEAKER_KEY = "prme_speaker_v1"
"""Reserved metadata key that holds the stored speaker name (digest a §1.3)."""

ENTITY_TYPE_KEY = "entity_type"
"""Metadata key of an entity memory by which callers say what it is, such as "person" (decision 10)."""

_SPEAKER_LIMIT = 200
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def valid_speaker(value: Any) -> str | None:
    """Return the trimmed speaker name, or ``None`` where ``value`` cannot be shown as one.

    A name has 1 to 200 characters and no control, surrogate, line- or paragraph-separator or
    bidirectional control character, so it cannot forge a line of the packed context.
    """
    if not isinstance(value, str):
        return None
    name = value.strip()
    if not 1 <= len(name) <= _SPEAKER_LIMIT or _BIDI.search(name):
        return None
    if any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in name):
        return None
    return name


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Event(_Record):
    """The source of a memory: immutable, kept word for word.

    ``request_digest`` is the SHA-256 of the request that brought it, where that had an idempotency key.
    """

    id: str
    content: str
    role: Role = Role.USER
    session_id: str | None = None
    scope: Scope = Scope.PERSONAL
    timestamp: AwareDatetime
    event_time: AwareDatetime | None = None
    content_hash: str
    metadata: dict[str, Any] | None = None
    request_digest: str | None = None


class Node(_Record):
    """A memory. Times are UTC; scores are in [0, 1].

    ``structural`` marks the hubs that plain ``store`` adds to the graph (names and sessions): they
    carry paths between memories, are never answers, and have no vector and no lexical document.
    """

    id: str
    content: str
    node_type: NodeType = NodeType.NOTE
    session_id: str | None = None
    scope: Scope = Scope.PERSONAL
    epistemic_type: EpistemicType = EpistemicType.ASSERTED
    source_type: SourceType = SourceType.USER_STATED
    lifecycle_state: LifecycleState = LifecycleState.TENTATIVE
    decay_profile: DecayProfile = DecayProfile.MEDIUM
    confidence: float = Field(default=0.5, ge=0, le=1)
    salience: float = Field(default=0.5, ge=0, le=1)
    confidence_base: float = Field(default=0.5, ge=0, le=1)
    salience_base: float = Field(default=0.5, ge=0, le=1)
    reinforcement_boost: float = Field(default=0.0, ge=0)
    created_at: AwareDatetime
    updated_at: AwareDatetime
    event_time: AwareDatetime | None = None
    valid_from: AwareDatetime
    valid_to: AwareDatetime | None = None
    last_reinforced_at: AwareDatetime
    superseded_by: str | None = None
    pinned: bool = False
    ttl_days: int | None = None
    evidence_refs: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None
    structural: bool = False


class Edge(_Record):
    """A relation between two memories of one owner."""

    id: str
    source_id: str
    target_id: str
    edge_type: EdgeType
    confidence: float = Field(default=0.5, ge=0, le=1)
    created_at: AwareDatetime
    valid_from: AwareDatetime
    valid_to: AwareDatetime | None = None
    provenance_event_id: str | None = None
    metadata: dict[str, Any] | None = None


def node_rows(nodes: list[Node]) -> dict[str, list[Any]]:
    """Return the nodes' values for every column of ``NODE``, times in microseconds."""
    columns: dict[str, list[Any]] = {field.name: [] for field in NODE}
    for node in nodes:
        for name, value in _row(node).items():
            columns[name].append(value)
    return columns


def node_table(nodes: list[Node]) -> pa.Table:
    """Return a ``NODE`` table with a row a node, in the order given."""
    columns = node_rows(nodes)
    return pa.Table.from_arrays([pa.array(columns[field.name], field.type) for field in NODE], schema=NODE)


def _row(node: Node) -> dict[str, Any]:
    metadata = node.metadata or {}
    condition = metadata.get("condition_state")
    return {
        "node_id": node.id,
        "session_id": node.session_id,
        "scope": code(node.scope),
        "node_type": code(node.node_type),
        "content": node.content,
        "epistemic_type": code(node.epistemic_type),
        "source_type": code(node.source_type),
        "lifecycle_state": code(node.lifecycle_state),
        "decay_profile": code(node.decay_profile),
        "confidence": node.confidence,
        "salience": node.salience,
        "confidence_base": node.confidence_base,
        "salience_base": node.salience_base,
        "reinforcement_boost": node.reinforcement_boost,
        "created_at": micros(node.created_at),
        "updated_at": micros(node.updated_at),
        "event_time": None if node.event_time is None else micros(node.event_time),
        "valid_from": micros(node.valid_from),
        "valid_to": None if node.valid_to is None else micros(node.valid_to),
        "last_reinforced_at": micros(node.last_reinforced_at),
        "superseded_by": node.superseded_by,
        "pinned": node.pinned,
        "condition_state": condition if isinstance(condition, str) else None,
        "speaker": valid_speaker(metadata.get(SPEAKER_KEY)),
        "evidence": ",".join(sorted(set(node.evidence_refs))),
        "metadata": None if node.metadata is None else json.dumps(node.metadata, ensure_ascii=False),
        "dated": has_date(node.content),
        "update_wording": has_update_wording(node.content),
    }
