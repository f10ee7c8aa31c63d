"""Turns the arguments of ``store`` into log entries: event, memory, names and edges (digest b §6.1).

Everything here is deterministic given clock and ids. Linking needs no look-up: the id of a name or
session hub is derived from its owner and folded name, so two writes that mention one name meet in
one node, and no two owners ever share one.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prme_ray.arguments import OMITTED, MemoryArguments
from prme_ray.model.enums import EdgeType, NodeType, Scope
from prme_ray.model.nodes import SPEAKER_KEY, Edge, Event, Node
from stages.link import Mention, link
from storage.records import Admission, Entry, EntryKind, OwnerKey

__all__ = ["OMITTED", "Draft", "admission_of", "draft_memory", "draft_node", "edge_entry"]

_HUBS = uuid.UUID("6a1f0a4e-6d52-5f0b-9a3c-0d6f6f3c8f11")
_SESSION_CONFIDENCE = 1.0


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that is checked and complete but for its vector.

    Attributes:
        owner: Whose it is.
        event: Source of a plain ``store``; ``None`` for ``store_node``.
        node: The memory.
        mentions: Names found in it.
    """

    owner: OwnerKey
    event: Event | None
    node: Node
    mentions: tuple[Mention, ...]

    @property
    def text(self) -> str | None:
        """Text to embed; ``None`` for blank content, which has no vector."""
        return self.node.content if self.node.content.strip() else None


def draft_memory(
    arguments: MemoryArguments,
    *,
    owner: OwnerKey,
    now: datetime,
    new_id: Callable[[], str],
    link_entities: bool,
    request_digest: str | None = None,
) -> Draft:
    """Return the event and the memory of one plain ``store``."""
    event = Event(
        id=new_id(),
        content=arguments.content,
        role=arguments.role,
        session_id=arguments.session_id,
        scope=arguments.scope,
        timestamp=now,
        event_time=arguments.event_time,
        content_hash=hashlib.sha256(arguments.content.encode()).hexdigest(),
        metadata=arguments.metadata,
        request_digest=request_digest,
    )
    node = _node(arguments, node_id=new_id(), now=now, evidence=(event.id,))
    return Draft(owner, event, node, _mentions(node) if link_entities else ())


def draft_node(
    arguments: MemoryArguments,
    *,
    owner: OwnerKey,
    now: datetime,
    node_id: str,
    evidence_refs: tuple[str, ...],
    link_entities: bool,
) -> Draft:
    """Return a structured memory without a source event of its own."""
    node = _node(arguments, node_id=node_id, now=now, evidence=evidence_refs)
    link_it = link_entities and node.node_type is not NodeType.ENTITY
    return Draft(owner, None, node, _mentions(node) if link_it else ())


def admission_of(draft: Draft, *, vector: bytes | None, generation: int) -> Admission:
    """Return everything that becomes visible together with this memory."""
    entries = []
    if draft.event is not None:
        entries.append(Entry(EntryKind.EVENT, draft.event.id, draft.event.model_dump_json(exclude_none=True)))
    node = draft.node
    entries.append(Entry(EntryKind.NODE, node.id, node.model_dump_json(exclude_none=True), vector))
    for mention in draft.mentions:
        hub = _hub_id(draft.owner, "entity", mention.key)
        entries.append(_hub_entry(hub, mention.name, NodeType.ENTITY, node.created_at))
        entries.append(_link_entry(node, hub, EdgeType.MENTIONS, mention.confidence))
    if node.session_id is not None:
        hub = _hub_id(draft.owner, "session", node.session_id)
        entries.append(_hub_entry(hub, node.session_id, NodeType.EVENT, node.created_at))
        entries.append(_link_entry(node, hub, EdgeType.PART_OF, _SESSION_CONFIDENCE))
    return Admission(draft.owner, tuple(entries), generation)


def edge_entry(edge: Edge) -> Entry:
    """Return the log entry of a caller's edge."""
    return Entry(EntryKind.EDGE, edge.id, edge.model_dump_json(exclude_none=True))


def _node(arguments: MemoryArguments, *, node_id: str, now: datetime, evidence: tuple[str, ...]) -> Node:
    text = arguments.content if arguments.retrieval_content is None else arguments.retrieval_content
    return Node(
        id=node_id,
        content=text,
        node_type=arguments.node_type,
        session_id=arguments.session_id,
        scope=arguments.scope,
        epistemic_type=arguments.epistemic_type,
        source_type=arguments.source_type,
        lifecycle_state=arguments.lifecycle_state,
        decay_profile=arguments.decay_profile,
        confidence=arguments.confidence,
        salience=arguments.salience,
        confidence_base=arguments.confidence,
        salience_base=arguments.salience,
        created_at=now,
        updated_at=now,
        event_time=arguments.event_time,
        valid_from=arguments.valid_from or now,
        valid_to=arguments.valid_to,
        last_reinforced_at=now,
        pinned=arguments.pinned,
        ttl_days=arguments.ttl_days,
        evidence_refs=evidence,
        metadata=arguments.node_metadata(),
    )


def _mentions(node: Node) -> tuple[Mention, ...]:
    speaker: Mapping[str, Any] = node.metadata or {}
    return link(node.content, speaker=speaker.get(SPEAKER_KEY))


def _hub_id(owner: OwnerKey, kind: str, name: str) -> str:
    # Lengths frame the parts, so that no two different lists of parts can spell the same key.
    parts = (owner.tenant, owner.owner, kind, name)
    return str(uuid.uuid5(_HUBS, "".join(f"{len(part)}:{part}" for part in parts)))


def _hub_entry(hub: str, name: str, node_type: NodeType, now: datetime) -> Entry:
    node = Node(
        id=hub,
        content=name,
        node_type=node_type,
        scope=Scope.PERSONAL,
        created_at=now,
        updated_at=now,
        valid_from=now,
        last_reinforced_at=now,
        structural=True,
    )
    return Entry(EntryKind.NODE, hub, node.model_dump_json(exclude_none=True), if_absent=True)


def _link_entry(node: Node, hub: str, edge_type: EdgeType, confidence: float) -> Entry:
    edge = Edge(
        id=str(uuid.uuid5(_HUBS, f"{node.id}{edge_type}{hub}")),
        source_id=node.id,
        target_id=hub,
        edge_type=edge_type,
        confidence=confidence,
        created_at=node.created_at,
        valid_from=node.created_at,
        provenance_event_id=node.evidence_refs[0] if node.evidence_refs else None,
    )
    return edge_entry(edge)
