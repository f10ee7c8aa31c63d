"""The verbs about what became of past retrievals: which memories were relevant, which an answer cited."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from prme_ray.defaults import DEFAULT_TENANT, owner_key
from prme_ray.feedback import Feedback
from prme_ray.feedback_arguments import citations_given, relevance_given
from prme_ray.model.feedback import Citations, CitationsPage, Relevance, RelevancePage
from prme_ray.receipt_verbs import scope_of

__all__ = ["FeedbackVerbs"]


class FeedbackVerbs(ABC):
    """Judgements bound to receipts (digest b §3.6); a part of :class:`~prme_ray.memory.Memory`.

    Nothing of it changes a score. ``confined_to`` is what it is for ``get_retrieval``.
    """

    @abstractmethod
    def _open_feedback(self) -> Feedback:
        """Return what keeps the judgements.

        Raises:
            StoreClosed: after ``close``.
        """

    def record_relevance(
        self,
        request_id: str,
        labels: Mapping[str, bool],
        *,
        owner: str,
        tenant: str = DEFAULT_TENANT,
        method: str,
        surface: str = "results",
        feedback_id: str | None = None,
        confined_to: str | None = None,
    ) -> Relevance:
        """Say which memories of a past retrieval were relevant; return when it is durable.

        Args:
            request_id: The retrieval.
            labels: True or False for one or more of the memories it returned, by id.
            owner: Whose it was.
            tenant: Tenant of the owner.
            method: explicit_user or structured_evaluation.
            surface: results, or context: then the memories must be in the packed context, and with text
                where they are relevant.
            feedback_id: UUID of your own; made up when left out. The same call again changes nothing.
            confined_to: See ``get_retrieval``.

        Raises:
            InvalidRequest: an argument is not allowed, whatever the retrieval was.
            FeedbackRejected: the receipt does not bear it out, or the id stands for another judgement.
            NotFound: this owner has no such retrieval, or it has no receipt.
            AmbiguousRecord: several requests were answered under this id.
            ContentErased: memories it returned have been erased.
            ReceiptRejected: its record was altered.
            ReadOnlyStore: this process only reads.
        """
        feedback = self._open_feedback()
        given = relevance_given(
            request_id,
            labels,
            feedback_id=feedback.new_id() if feedback_id is None else feedback_id,
            surface=surface,
            method=method,
        )
        return feedback.record_relevance(owner_key(tenant, owner), given, confined_to=scope_of(confined_to))

    def get_relevance(
        self, feedback_id: str, *, owner: str, tenant: str = DEFAULT_TENANT, confined_to: str | None = None
    ) -> Relevance:
        """Return a judgement by its id.

        Raises:
            InvalidRequest: the id is no UUID.
            NotFound: this owner has no such judgement.
            FeedbackAltered: its record was altered.
        """
        return self._open_feedback().get_relevance(
            owner_key(tenant, owner), feedback_id, confined_to=scope_of(confined_to)
        )

    def list_relevance(
        self,
        *,
        owner: str,
        tenant: str = DEFAULT_TENANT,
        after_id: str | None = None,
        limit: int = 100,
        confined_to: str | None = None,
    ) -> RelevancePage:
        """Return an owner's judgements by id ascending, a page at a time.

        Args:
            owner: Whose; an unknown owner has none.
            tenant: Tenant of the owner.
            after_id: ``next_after_id`` of the page before.
            limit: Most judgements, 1 to 1000.
            confined_to: See ``get_retrieval``; a page may then have fewer than ``limit``.

        Raises:
            InvalidRequest: ``after_id`` or ``limit`` is not allowed.
            FeedbackAltered: a record was altered.
        """
        return self._open_feedback().list_relevance(
            owner_key(tenant, owner), after_id=after_id, limit=limit, confined_to=scope_of(confined_to)
        )

    def record_citations(
        self,
        request_id: str,
        cited_node_ids: Sequence[str],
        *,
        owner: str,
        tenant: str = DEFAULT_TENANT,
        answer_id: str,
        method: str,
        answer_sha256: str | None = None,
        citation_id: str | None = None,
        confined_to: str | None = None,
    ) -> Citations:
        """Say which memories an answer made from a past retrieval cites; return when it is durable.

        Args:
            request_id: The retrieval.
            cited_node_ids: Up to 1000 memories whose text is in its context; none: nothing was cited.
            owner: Whose it was.
            tenant: Tenant of the owner.
            answer_id: Your name of the answer, 1 to 512 characters.
            method: model_reported, application_verified or human_verified.
            answer_sha256: SHA-256 of the answer's text, in hex.
            citation_id: UUID of your own; made up when left out. The same call again changes nothing.
            confined_to: See ``get_retrieval``.

        Raises:
            ConflictingOperation: the id stands for other citations.
            FeedbackRejected: a memory is not in the context with its text.
            Exception: the others of :meth:`record_relevance`.
        """
        feedback = self._open_feedback()
        given = citations_given(
            request_id,
            cited_node_ids,
            citation_id=feedback.new_id() if citation_id is None else citation_id,
            answer_id=answer_id,
            answer_sha256=answer_sha256,
            method=method,
        )
        return feedback.record_citations(owner_key(tenant, owner), given, confined_to=scope_of(confined_to))

    def get_citations(
        self, citation_id: str, *, owner: str, tenant: str = DEFAULT_TENANT, confined_to: str | None = None
    ) -> Citations:
        """Return an answer's citations by their id; errors as :meth:`get_relevance`."""
        return self._open_feedback().get_citations(
            owner_key(tenant, owner), citation_id, confined_to=scope_of(confined_to)
        )

    def list_citations(
        self,
        *,
        owner: str,
        tenant: str = DEFAULT_TENANT,
        after_id: str | None = None,
        limit: int = 100,
        confined_to: str | None = None,
    ) -> CitationsPage:
        """Return an owner's citations by id ascending; arguments and errors as :meth:`list_relevance`."""
        return self._open_feedback().list_citations(
            owner_key(tenant, owner), after_id=after_id, limit=limit, confined_to=scope_of(confined_to)
        )
