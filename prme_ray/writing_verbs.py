"""The writing verbs of a memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from prme_ray.arguments import OMITTED, Omitted
from prme_ray.defaults import DEFAULT_TENANT, owner_key
from prme_ray.model.times import Instant
from prme_ray.writing import Stored, Writer

__all__ = ["WritingVerbs"]


class WritingVerbs(ABC):
    """``store``, ``store_many``, ``store_node`` and ``store_edge``; a part of :class:`~prme_ray.memory.Memory`."""

    @abstractmethod
    def _open_writer(self) -> Writer:
        """Return the writer.

        Raises:
            StoreClosed: after ``close``.
        """

    def store(
        self,
        content: str,
        *,
        owner: str,
        tenant: str = DEFAULT_TENANT,
        session_id: str | None = None,
        event_time: Instant | None = None,
        role: str = "user",
        speaker: str | None = None,
        node_type: str = "note",
        scope: str = "personal",
        metadata: Mapping[str, Any] | None = None,
        retrieval_content: str | None = None,
        value_bindings: Mapping[str, str] | None = None,
        confidence: float | None = None,
        epistemic_type: str | None = None,
        source_type: str | None = None,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        ttl_days: int | Omitted | None = OMITTED,
        idempotency_key: str | None = None,
    ) -> Stored:
        """Remember a text; return when it is durable and every channel finds it.

        Args:
            content: Exact source text, kept unchanged.
            owner: On whose behalf; required.
            tenant: Tenant of the owner.
            session_id: Conversation it belongs to; its neighbours are found with it.
            event_time: When it was said or happened.
            role: Who spoke: user, participant, assistant, tool or system.
            speaker: Name shown with the text, where the text does not start with it.
            node_type: Kind of memory.
            scope: Namespace inside the owner.
            metadata: JSON values kept with it.
            retrieval_content: Text that is indexed, ranked and packed instead of ``content``.
            value_bindings: Pairs of presentation and look-up value; see ``bundle.value_bindings``.
            confidence: 0 to 1; by epistemic and source type when left out.
            epistemic_type: How it is known; by role and type when left out.
            source_type: Where it comes from; by role when left out.
            valid_from: Start of validity; admission when left out.
            valid_to: End of validity, exclusive; needs ``valid_from``.
            ttl_days: Days until it may expire; by type when left out, ``None`` for never.
            idempotency_key: UUID; a repeat of the same call gives the same ids and stores nothing.

        Raises:
            IdempotencyConflict: the owner used the key for another call.
            InvalidText: text with NUL or a lone surrogate.
            InvalidRequest: any other argument that is not allowed.
            EncoderMismatch: the store's vectors come from another encoder.
            StoreBusy: the write queue stayed full.
            WriteFailed: it could not be made durable or visible; says which.
        """
        return self._open_writer().store(
            content,
            owner=owner_key(tenant, owner),
            session_id=session_id,
            event_time=event_time,
            role=role,
            speaker=speaker,
            node_type=node_type,
            scope=scope,
            metadata=metadata,
            retrieval_content=retrieval_content,
            value_bindings=value_bindings,
            confidence=confidence,
            epistemic_type=epistemic_type,
            source_type=source_type,
            valid_from=valid_from,
            valid_to=valid_to,
            ttl_days=ttl_days,
            idempotency_key=idempotency_key,
        )

    def store_many(
        self, items: Iterable[Any], *, owner: str, tenant: str = DEFAULT_TENANT, **common: Any
    ) -> list[Stored]:
        """Remember a stream of texts; much faster than one by one.

        Args:
            items: Texts, or mappings with ``content`` and any argument of :meth:`store` but owner and
                tenant. Any iterable; it is read as it is stored.
            owner: On whose behalf.
            tenant: Tenant of the owner.
            common: Arguments of :meth:`store` for every item; an item's own win. ``idempotency_key``
                stands for the whole list.

        Returns:
            A receipt for each item, in order.

        Raises:
            InvalidItems: some items were refused, all others are stored; carries both.
        """
        return self._open_writer().store_many(items, owner=owner_key(tenant, owner), **common)

    def store_node(
        self,
        content: str,
        *,
        owner: str,
        tenant: str = DEFAULT_TENANT,
        node_type: str,
        node_id: str | None = None,
        evidence_refs: Iterable[str] = (),
        salience: float | None = None,
        pinned: bool = False,
        lifecycle_state: str = "tentative",
        **arguments: Any,
    ) -> Stored:
        """Store a structured memory: a fact, a preference, an entity, a task, a pin.

        Takes the arguments of :meth:`store` too. ``evidence_refs`` are ids of the events (or
        memories) it was drawn from; ``pinned`` or ``salience=1.0`` always brings it up.
        """
        return self._open_writer().store_node(
            content,
            owner=owner_key(tenant, owner),
            node_type=node_type,
            node_id=node_id,
            evidence_refs=evidence_refs,
            salience=salience,
            pinned=pinned,
            lifecycle_state=lifecycle_state,
            **arguments,
        )

    def store_edge(
        self,
        source_id: str,
        target_id: str,
        edge_type: str,
        *,
        owner: str,
        tenant: str = DEFAULT_TENANT,
        confidence: float = 0.5,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> str:
        """Relate two memories of one owner; return the id of the edge.

        Raises:
            NotFound: one of them is not this owner's.
        """
        return self._open_writer().store_edge(
            source_id,
            target_id,
            edge_type,
            owner=owner_key(tenant, owner),
            confidence=confidence,
            valid_from=valid_from,
            valid_to=valid_to,
            metadata=metadata,
            idempotency_key=idempotency_key,
        )
