"""Bodies of requests and answers. Names, types and meaning are those of the Python calls.

Unknown keys are refused. What a body leaves out is left out of the call too, so that ``ttl_days`` of
``null`` (never expires) and no ``ttl_days`` (by type) stay different.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from prme_ray.feedback_arguments import ANSWER_ID_LIMIT, CITED_LIMIT
from prme_ray.model.enums import (
    EdgeType,
    EpistemicType,
    LifecycleState,
    NodeType,
    RetrievalMode,
    Role,
    Scope,
    SourceType,
)
from prme_ray.model.feedback import CitationMethod, RelevanceMethod, Surface
from prme_ray.model.response import Bundle, Candidate, Exclusion, Metadata
from prme_ray.model.settings.packing import MinFidelity
from prme_ray.model.text import NAME_LIMIT
from prme_ray.records.ledger import LARGEST_PAGE, PAGE

__all__ = [
    "AnswerBody",
    "BatchBody",
    "CitationsBody",
    "EdgeBody",
    "EdgeStoredBody",
    "ErrorBody",
    "HealthBody",
    "ItemsStoredBody",
    "NodeBody",
    "Owned",
    "PageQuery",
    "RelevanceBody",
    "RetrievalsQuery",
    "RetrieveBody",
    "StateBody",
    "StoreBody",
    "StoredBody",
]

Name = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT)]
Time = Annotated[
    str,
    Field(
        description="ISO 8601 with an offset, such as 2026-05-04T10:00:00Z.", json_schema_extra={"format": "date-time"}
    ),
]
Uuid = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Unit = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Least = Annotated[int, Field(ge=1, le=2**31 - 1)]


class _Body(BaseModel):
    # Strict: JSON has numbers and truth values, so text that looks like one is a mistake.
    model_config = ConfigDict(extra="forbid", strict=True)


class Owned(_Body):
    """On whose behalf; what a key is bound to may be left out."""

    owner: Name | None = Field(default=None, description="On whose behalf; the key's own when left out.")
    tenant: Name | None = Field(default=None, description="Tenant of the owner; the key's own when left out.")


class _Arguments(_Body):
    session_id: Name | None = Field(default=None, description="Conversation it belongs to.")
    event_time: Time | None = Field(default=None, description="When it was said or happened.")
    role: Role = Field(default=Role.USER, description="Who spoke.")
    speaker: str | None = Field(default=None, description="Name shown with the text.")
    node_type: NodeType = Field(default=NodeType.NOTE, description="Kind of memory.")
    scope: Scope = Field(default=Scope.PERSONAL, description="Namespace inside the owner.")
    metadata: dict[str, Any] | None = Field(default=None, description="JSON values kept with it.")
    retrieval_content: str | None = Field(
        default=None, description="Text that is indexed, ranked and packed instead of content."
    )
    value_bindings: dict[str, str] | None = Field(default=None, description="Presentation to look-up value.")
    confidence: Unit | None = Field(default=None, description="By epistemic and source type when left out.")
    epistemic_type: EpistemicType | None = Field(default=None, description="How it is known.")
    source_type: SourceType | None = Field(default=None, description="Where it comes from.")
    valid_from: Time | None = Field(default=None, description="Start of validity; admission when left out.")
    valid_to: Time | None = Field(default=None, description="End of validity, exclusive; needs valid_from.")
    ttl_days: Least | None = Field(
        default=None, description="Days until it may expire; by type when left out, null for never."
    )


class _Item(_Arguments):
    content: str = Field(description="Exact source text, kept unchanged.")


class StoreBody(_Item, Owned):
    """A text to remember."""


class BatchBody(_Arguments, Owned):
    """Texts to remember; what stands beside ``items`` is for all of them, an item's own wins."""

    items: list[str | _Item] = Field(min_length=1, description="Texts, or objects with content.")


class NodeBody(_Item, Owned):
    """A structured memory: a fact, a preference, an entity, a task, a pin."""

    node_type: NodeType = Field(description="Kind of memory.")
    node_id: Uuid | None = Field(default=None, description="Id of the memory; made up when left out.")
    evidence_refs: list[Uuid] = Field(default=[], description="Ids of what it was drawn from.")
    salience: Unit | None = Field(default=None, description="0.5 when left out; 1 always brings it up.")
    pinned: bool = Field(default=False, description="Always bring it up.")
    lifecycle_state: LifecycleState = Field(default=LifecycleState.TENTATIVE, description="Where it stands.")


class EdgeBody(Owned):
    """A relation between two memories of one owner."""

    source_id: Uuid
    target_id: Uuid
    edge_type: EdgeType
    confidence: Unit = 0.5
    valid_from: Time | None = None
    valid_to: Time | None = None
    metadata: dict[str, Any] | None = None


class Filters(_Body):
    """What may be found."""

    scope: Scope | Annotated[list[Scope], Field(min_length=1)] | None = Field(
        default=None, description="A scope or several; all when left out."
    )
    time_from: Time | None = Field(default=None, description="Keep memories still valid after it.")
    time_to: Time | None = Field(default=None, description="Keep memories already valid at it.")
    knowledge_at: Time | None = Field(default=None, description="Keep what had been stored by then.")
    event_time_from: Time | None = Field(default=None, description="Keep what happened at or after it.")
    event_time_to: Time | None = Field(default=None, description="Keep what happened at or before it.")
    include_cross_scope: bool = Field(default=True, description="Also hint at memories outside scope.")
    exclude_node_types: list[NodeType] | None = Field(default=None, description="Kinds of memory to leave out.")
    source_types: list[SourceType] | None = Field(
        default=None, description="Kinds of source to keep; an empty list keeps nothing."
    )


class RetrieveBody(Owned):
    """A question. Its request id is the header ``X-Request-ID``."""

    query: str = Field(description="Plain text; nothing in it is an operator.")
    token_budget: Count | None = Field(default=None, description="Tokens the packed context may take.")
    reference_time: Time | None = Field(default=None, description='"Now" of the question.')
    min_fidelity: MinFidelity | None = Field(default=None, description="Lowest representation to pack.")
    min_score: Annotated[float, Field(ge=0)] | None = Field(default=None, description="Lowest relevance.")
    limit: Count | None = Field(default=None, description="Most memories, pins included.")
    max_per_source: Least | None = Field(default=None, description="Most with one evidence set and one text.")
    max_per_evidence: Least | None = Field(default=None, description="Most with one evidence set.")
    weights: dict[str, Any] | None = Field(default=None, description="Scoring settings: docs/settings.md, scoring.")
    ranking_multipliers: dict[str, float] | None = Field(
        default=None, description="Factors of the weighted formula's signals, 0.25 to 4."
    )
    retrieval_mode: RetrievalMode = Field(default=RetrievalMode.DEFAULT, description="Which memories it may see.")
    as_of: Annotated[int, Field(ge=0, le=2**53 - 1)] | Time | None = Field(
        default=None, description="Answer from the past: a number of the owner's (metadata.snapshot), or a time."
    )
    filters: Filters = Field(default_factory=Filters, description="What may be found.")


class _Page(Owned):
    # Text of a query, so a number comes as digits.
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE, strict=False)] = Field(default=PAGE, description="Most records.")


class RetrievalsQuery(_Page):
    """Which of an owner's retrievals to list."""

    cursor: str | None = Field(default=None, description="next_cursor of the page before.")


class PageQuery(_Page):
    """Which of an owner's feedback to list."""

    after_id: Uuid | None = Field(default=None, description="next_after_id of the page before.")


class RelevanceBody(Owned):
    """Which memories of a retrieval were relevant."""

    request_id: Uuid = Field(description="The retrieval.")
    labels: dict[str, bool] = Field(min_length=1, description="True or false for memories it returned, by id.")
    surface: Surface = Field(default=Surface.RESULTS, description="What was judged: the list, or the packed text.")
    method: RelevanceMethod = Field(description="Who judged.")
    feedback_id: Uuid | None = Field(default=None, description="Your own id; the same call again changes nothing.")


class CitationsBody(Owned):
    """Which memories an answer cites."""

    request_id: Uuid = Field(description="The retrieval it was made from.")
    cited_node_ids: list[Uuid] = Field(
        max_length=CITED_LIMIT, description="Memories whose text is in the context; an empty list: nothing was cited."
    )
    answer_id: str = Field(min_length=1, max_length=ANSWER_ID_LIMIT, description="Your name of the answer.")
    method: CitationMethod = Field(description="Who says so.")
    answer_sha256: str | None = Field(default=None, description="SHA-256 of the answer's text, in hex.")
    citation_id: Uuid | None = Field(default=None, description="Your own id; the same call again changes nothing.")


class StoredBody(BaseModel):
    """Receipt of an acknowledged write: durable, and visible to every channel."""

    node_id: str
    event_id: str | None
    sequence: int = Field(description="A retrieval whose snapshot is at least this sees it.")


class ItemsStoredBody(BaseModel):
    """A receipt for each item, in order."""

    stored: list[StoredBody]


class EdgeStoredBody(BaseModel):
    """Receipt of an edge."""

    edge_id: str


class AnswerBody(BaseModel):
    """Everything the Python call returns (decision 18)."""

    bundle: Bundle
    results: list[Candidate]
    excluded: list[Exclusion]
    cross_scope_hints: list[Candidate]
    metadata: Metadata


class StateBody(BaseModel):
    """Whether the process lives, or takes requests."""

    status: str


class HealthBody(StateBody):
    """State of the service; ``details`` only for keys with ``memory:admin``."""

    version: str
    details: dict[str, Any] | None = None


class _Error(BaseModel):
    code: str
    message: str
    details: dict[str, Any]


class ErrorBody(BaseModel):
    """Every error there is."""

    error: _Error
