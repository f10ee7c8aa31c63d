"""What the receipt verbs give: a past retrieval, its replay, its reproduction, its owner's chain."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = [
    "ChainBreak",
    "ChainReport",
    "Difference",
    "Reason",
    "ReasonCode",
    "Replay",
    "Reproduction",
    "Retrieval",
    "RetrievalPage",
    "RetrievalSummary",
    "Snapshot",
]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Snapshot(_Record):
    """The state a retrieval read, and its place in the owner's chain of records (decision 21).

    Attributes:
        version: Version of this record, 1.
        sequence: The owner's own number that was read.
        generation: Encoder generation of the vectors that were read.
        encoder: Identity of the encoder.
        lexical_digest: SHA-256 over the texts that were searched, in the order of their admission.
        graph_digest: SHA-256 over the graph's memories and edges, likewise.
        settings_fingerprint: That of the settings.
        context_sha256: SHA-256 of the packed context.
        number: Which record of the owner this is: 1, 2, 3…
        previous: Chain hash of the owner's record before it; 64 zeros before the first.
        chain: Chain hash of this record.
    """

    version: int
    sequence: int
    generation: int
    encoder: str
    lexical_digest: str | None
    graph_digest: str | None
    settings_fingerprint: str
    context_sha256: str
    number: int
    previous: str
    chain: str


class Retrieval(_Record):
    """One retrieval on record.

    Attributes:
        request_id: Its request.
        recorded_at: When its record became durable.
        record: The RFC's JSON object (RFC §10).
        receipt: The receipt as canonical JSON text (digest b §3.3); ``None`` for a request that failed.
        receipt_checksum: SHA-256 of that text.
        snapshot: What it read; ``None`` for a request that failed.
    """

    request_id: str
    recorded_at: datetime
    record: dict[str, Any]
    receipt: str | None
    receipt_checksum: str | None
    snapshot: Snapshot | None


class RetrievalSummary(_Record):
    """One line of a page."""

    request_id: str
    recorded_at: datetime
    query: str
    retrieval_mode: str
    sequence: int
    candidates: int
    objects_included_in_bundle: int
    tokens_used: int
    error: str | None
    number: int


class RetrievalPage(_Record):
    """Retrievals of an owner in the order of their records; ``next_cursor`` only where there are more."""

    retrievals: list[RetrievalSummary]
    next_cursor: str | None


class Replay(_Record):
    """What a receipt gives when its scores are computed again from what it says (digest b §3.4)."""

    request_id: str
    schema_version: int
    receipt_checksum: str
    ranking_policy: str
    ranking: list[str]
    scores: dict[str, float]


class ReasonCode(StrEnum):
    """Why a retrieval cannot be run again, or not to the same end (decision 22)."""

    SNAPSHOT_EXPIRED = "snapshot_expired"
    """Vectors of the encoder generation that was read are no longer kept."""
    ENCODER_CHANGED = "encoder_changed"
    """Another encoder is configured, and the record does not hold every vector that is needed."""
    RERANKER_CHANGED = "reranker_changed"
    """Another cross-encoder is configured, or none."""
    SETTINGS_CHANGED = "settings_changed"
    """This version of prme-ray does not know the settings that were in force."""
    CONTENT_ERASED = "content_erased"
    """A memory of the answer has another text than then, or none."""
    REQUEST_FAILED = "request_failed"
    """The request had no answer."""
    CODE_CHANGED = "code_changed"
    """The answer differs, and so does the code that made it."""


class Reason(_Record):
    """A reason, and what it is about."""

    code: ReasonCode
    detail: str


class Difference(_Record):
    """One thing that came out otherwise."""

    what: str
    recorded: Any
    reproduced: Any


class Reproduction(_Record):
    """The outcome of running a past retrieval again on its snapshot.

    Attributes:
        request_id: Its request.
        reproduced: Whether ids, order, scores, lineage, exclusions and the context's bytes are the same.
        reasons: Why it could not be run, or why it came out otherwise.
        differences: What came out otherwise, the first of each kind.
        snapshot: The owner's number it ran on.
        context: The packed context, where it was run.
        context_sha256: SHA-256 of that context.
    """

    request_id: str
    reproduced: bool
    reasons: list[Reason]
    differences: list[Difference]
    snapshot: int
    context: str | None
    context_sha256: str | None


class ChainBreak(_Record):
    """A record of an owner's chain that is not as it was written.

    Attributes:
        number: Its number among the owner's records; the first where several are missing.
        problem: ``missing``, ``altered``, ``out of order``, ``tail removed`` or ``added``.
        detail: The same in words.
    """

    number: int
    problem: str
    detail: str


class ChainReport(_Record):
    """Result of following an owner's chain of records from its beginning.

    Attributes:
        records: How many were looked at.
        head: Chain hash of the newest one.
        breaks: What is missing, altered or out of order.
    """

    records: int
    head: str
    breaks: list[ChainBreak]

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.breaks
