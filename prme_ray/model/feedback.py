"""Judgements that are bound to a receipt: which memories were relevant, which an answer cited (digest b §3.6)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from prme_ray.model.enums import Scope

__all__ = [
    "CitationMethod",
    "Citations",
    "CitationsGiven",
    "CitationsPage",
    "Relevance",
    "RelevanceGiven",
    "RelevanceMethod",
    "RelevancePage",
    "Surface",
]


class Surface(StrEnum):
    """What was judged."""

    RESULTS = "results"
    """The list of memories."""
    CONTEXT = "context"
    """The packed text."""


class RelevanceMethod(StrEnum):
    """Who judged."""

    EXPLICIT_USER = "explicit_user"
    STRUCTURED_EVALUATION = "structured_evaluation"


class CitationMethod(StrEnum):
    """Who says that the answer rests on these memories."""

    MODEL_REPORTED = "model_reported"
    APPLICATION_VERIFIED = "application_verified"
    HUMAN_VERIFIED = "human_verified"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RelevanceGiven(_Record):
    """What a caller says about the memories of one retrieval.

    Attributes:
        feedback_id: The caller's UUID; the same one again is the same record.
        request_id: The retrieval.
        labels: Whether each of these memories was relevant, by id ascending.
        surface: What was judged.
        method: Who judged.
    """

    feedback_id: str
    request_id: str
    labels: dict[str, bool]
    surface: Surface
    method: RelevanceMethod


class CitationsGiven(_Record):
    """Which memories of one retrieval a caller's answer cites.

    Attributes:
        citation_id: The caller's UUID; the same one again is the same record.
        request_id: The retrieval.
        answer_id: The caller's name of the answer.
        cited_node_ids: Cited memories in the caller's order; none: the answer cites nothing.
        answer_sha256: SHA-256 of the answer's text, where the caller gave it.
        method: Who says so.
    """

    citation_id: str
    request_id: str
    answer_id: str
    cited_node_ids: list[str]
    answer_sha256: str | None
    method: CitationMethod


class Relevance(RelevanceGiven):
    """A judgement on record.

    Attributes:
        tenant: Tenant of the owner.
        owner: Whose retrieval it was.
        scope: The only scope whose memories the retrieval could see; ``None`` where it saw several.
        receipt_checksum: SHA-256 of the receipt that was judged.
        recorded_at: When it became durable.
    """

    tenant: str
    owner: str
    scope: Scope | None
    receipt_checksum: str
    recorded_at: datetime


class Citations(CitationsGiven):
    """Citations on record; attributes as in :class:`Relevance`.

    Attributes:
        context_sha256: SHA-256 of the context that the answer was made from.
    """

    tenant: str
    owner: str
    scope: Scope | None
    receipt_checksum: str
    context_sha256: str
    recorded_at: datetime


class RelevancePage(_Record):
    """Judgements by ``feedback_id`` ascending; ``next_after_id`` only where there are more."""

    relevance: list[Relevance]
    next_after_id: str | None


class CitationsPage(_Record):
    """Citations by ``citation_id`` ascending; ``next_after_id`` only where there are more."""

    citations: list[Citations]
    next_after_id: str | None
