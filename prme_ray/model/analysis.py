"""What stage 1 finds out about a question (RFC §3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from prme_ray.model.enums import Intent, RetrievalMode, TemporalType

__all__ = ["CurrentState", "Entity", "QueryAnalysis", "TemporalSignal"]

CurrentState = Literal["none", "explicit", "implicit"]
"""``implicit`` counts only when the scored pool holds update wording (digest a §2.5)."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A name in the question. ``type`` is ``unknown`` until the owner's entity nodes name it."""

    name: str
    type: str = "unknown"
    confidence: float = 0.5


@dataclass(frozen=True, slots=True)
class TemporalSignal:
    """A stretch of the question that speaks of time; ``resolved`` is ``None`` where it has no instant."""

    type: TemporalType
    value: str
    resolved: datetime | None


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """Outcome of query analysis.

    Attributes:
        query: The question as given.
        intent: First matching intent of the configured order.
        entities: Names, proper nouns first, then quoted strings, without repeats.
        temporal_signals: Signals in the order found.
        time_from: Lower end of the window that feeds temporal affinity (never a filter).
        time_to: Upper end.
        is_aggregation: A count or list question that is not elapsed time.
        current_state: Whether the question asks for the present state of something.
        explicit_wording: It has explicit present-state wording.
        implicit_pattern: It has the shape of an implicit present-state question.
        recent_episodic: It asks about a recent episode (weighted formula only).
        answer_class_pattern: "what kind of … does …" (weighted formula only).
        mode: Retrieval mode of the request.
    """

    query: str
    intent: Intent
    entities: tuple[Entity, ...] = ()
    temporal_signals: tuple[TemporalSignal, ...] = ()
    time_from: datetime | None = None
    time_to: datetime | None = None
    is_aggregation: bool = False
    current_state: CurrentState = "none"
    explicit_wording: bool = False
    implicit_pattern: bool = False
    recent_episodic: bool = False
    answer_class_pattern: bool = False
    mode: RetrievalMode = RetrievalMode.DEFAULT
