"""The verbs about past retrievals: read, replay, reproduce, verify."""

from __future__ import annotations

from abc import ABC, abstractmethod

from prme_ray.defaults import DEFAULT_TENANT, owner_key
from prme_ray.model.enums import Scope
from prme_ray.model.request import one_of
from prme_ray.model.retrievals import ChainReport, Replay, Reproduction, Retrieval, RetrievalPage
from prme_ray.receipts import Receipts

__all__ = ["ReceiptVerbs", "scope_of"]


class ReceiptVerbs(ABC):
    """What an owner's past retrievals can be asked; a part of :class:`~prme_ray.memory.Memory`."""

    @abstractmethod
    def _open_receipts(self) -> Receipts:
        """Return the reader of records.

        Raises:
            StoreClosed: after ``close``.
        """

    def get_retrieval(
        self, request_id: str, *, owner: str, tenant: str = DEFAULT_TENANT, confined_to: str | None = None
    ) -> Retrieval:
        """Return a past retrieval: its record, its receipt and the snapshot it read (RFC §10, §11).

        Args:
            request_id: Its request.
            owner: Whose it was.
            tenant: Tenant of the owner.
            confined_to: Only a retrieval that could see nothing but this scope, hints included; any other
                is not found. For callers who may see one scope only.

        Raises:
            InvalidRequest: the id is no UUID.
            NotFound: this owner has no such retrieval.
            AmbiguousRecord: several requests were answered under this id.
            ContentErased: memories it returned have been erased.
            ReceiptRejected: the record was altered.
        """
        return self._open_receipts().get(owner_key(tenant, owner), request_id, confined_to=scope_of(confined_to))

    def list_retrievals(
        self,
        *,
        owner: str,
        tenant: str = DEFAULT_TENANT,
        cursor: str | None = None,
        limit: int = 100,
        confined_to: str | None = None,
    ) -> RetrievalPage:
        """Return an owner's retrievals, oldest first, a page at a time.

        Args:
            owner: Whose; an unknown owner has none.
            tenant: Tenant of the owner.
            cursor: ``next_cursor`` of the page before.
            limit: Most retrievals, 1 to 1000.
            confined_to: See :meth:`get_retrieval`; a page may then have fewer than ``limit``.

        Raises:
            InvalidRequest: ``limit`` or ``cursor`` is not allowed.
        """
        return self._open_receipts().page(
            owner_key(tenant, owner), cursor=cursor, limit=limit, confined_to=scope_of(confined_to)
        )

    def replay(
        self, request_id: str, *, owner: str, tenant: str = DEFAULT_TENANT, confined_to: str | None = None
    ) -> Replay:
        """Derive scores and order of a past retrieval from its receipt alone (RFC §11, digest b §3.4).

        No graph, index or model is asked. Errors as :meth:`get_retrieval`.

        Raises:
            ReceiptRejected: what the receipt says does not follow from what it says.
        """
        return self._open_receipts().replay(owner_key(tenant, owner), request_id, confined_to=scope_of(confined_to))

    def reproduce(
        self, request_id: str, *, owner: str, tenant: str = DEFAULT_TENANT, confined_to: str | None = None
    ) -> Reproduction:
        """Run a past retrieval again on the snapshot it read, and compare every byte (decision 22).

        Works after further writes, in another process and on another executor. Where it cannot be run, or
        comes out otherwise, the outcome says why.

        Raises:
            InvalidRequest: the id is no UUID.
            NotFound: this owner has no such retrieval.
            AmbiguousRecord: several requests were answered under this id.
        """
        return self._open_receipts().reproduce(owner_key(tenant, owner), request_id, confined_to=scope_of(confined_to))

    def verify_chain(self, *, owner: str, tenant: str = DEFAULT_TENANT) -> ChainReport:
        """Follow the hash chain over all of an owner's records: what was removed, altered or moved is found."""
        return self._open_receipts().verify_chain(owner_key(tenant, owner))


def scope_of(confined_to: str | None) -> Scope | None:
    """Return the scope that a caller is confined to; ``None``: none.

    Raises:
        InvalidRequest: no such scope.
    """
    return None if confined_to is None else one_of(Scope, confined_to, "confined_to")
