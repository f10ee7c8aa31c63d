"""A retrieval request, checked whole before any channel is called (digest a §8.3, digest b §6.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar, get_args

from prme_ray.model.enums import NodeType, RetrievalMode, Scope, SourceType
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.json_values import is_number
from prme_ray.model.settings import PackingSettings, ScoringSettings, Settings
from prme_ray.model.settings.packing import MinFidelity
from prme_ray.model.text import check_text, name_of
from prme_ray.model.times import Instant, instant

__all__ = ["BOUNDS", "MULTIPLIERS", "Request", "flag", "make_request", "one_of", "scopes_of"]

E = TypeVar("E", bound=StrEnum)

MULTIPLIERS = ("semantic", "lexical", "graph", "recency", "salience", "confidence")
"""Signals a request may weigh; each factor in [0.25, 4], 1.0 when left out."""
BOUNDS = ("time_from", "time_to", "knowledge_at", "event_time_from", "event_time_to")
"""Times by which a request narrows what it may see."""
_MULTIPLIER_RANGE = (0.25, 4.0)
_NO_COUNT = 2**63
"""A receipt holds numbers of 64 bits."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question on behalf of one owner, with every option resolved.

    Attributes:
        request_id: UUID text, unique a request.
        reference_time: The one clock of the request: analysis, decay, recency, hints.
        scopes: Allowed scopes; ``None``: all.
        multipliers: Factor a signal, or ``None`` when all are neutral.
        scoring: Scoring settings in force: the request's own, its scope's or the store's.
        packing: Packing settings in force, a request's budget and fidelity included.
        closed: Channel -> scopes it may not search, by policy.
        as_of: The owner's number that is read, or the time whose number it is; ``None``: the newest.
    """

    request_id: str
    tenant: str
    owner: str
    query: str
    reference_time: datetime
    mode: RetrievalMode
    scopes: frozenset[Scope] | None
    time_from: datetime | None
    time_to: datetime | None
    knowledge_at: datetime | None
    event_time_from: datetime | None
    event_time_to: datetime | None
    min_score: float | None
    limit: int | None
    max_per_source: int | None
    max_per_evidence: int | None
    exclude_node_types: frozenset[NodeType]
    source_types: frozenset[SourceType] | None
    include_cross_scope: bool
    multipliers: Mapping[str, float] | None
    scoring: ScoringSettings
    packing: PackingSettings
    closed: Mapping[str, frozenset[Scope]]
    as_of: int | datetime | None = None


def make_request(
    query: str,
    *,
    request_id: str,
    tenant: str,
    owner: str,
    now: datetime,
    settings: Settings,
    scope: str | Collection[str] | None = None,
    reference_time: Instant | None = None,
    time_from: Instant | None = None,
    time_to: Instant | None = None,
    knowledge_at: Instant | None = None,
    event_time_from: Instant | None = None,
    event_time_to: Instant | None = None,
    token_budget: int | None = None,
    min_fidelity: str | None = None,
    min_score: float | None = None,
    limit: int | None = None,
    max_per_source: int | None = None,
    max_per_evidence: int | None = None,
    exclude_node_types: Collection[str] | None = None,
    source_types: Collection[str] | None = None,
    weights: ScoringSettings | Mapping[str, Any] | None = None,
    ranking_multipliers: Mapping[str, float] | None = None,
    retrieval_mode: str = RetrievalMode.DEFAULT,
    include_cross_scope: bool = True,
    as_of: int | Instant | None = None,
) -> Request:
    """Return a checked request.

    Raises:
        InvalidRequest: naming the argument, what was given and what is allowed.
        InvalidText: the question has NUL or a lone surrogate.
    """
    scopes = scopes_of(scope)
    scoring = settings.scoring_for(scopes) if weights is None else _scoring(weights)
    packing = settings.packing
    changes: dict[str, Any] = {}
    if token_budget is not None:
        changes["token_budget"] = _count(token_budget, "token_budget", minimum=0)
    if min_fidelity is not None:
        if min_fidelity not in get_args(MinFidelity):
            raise InvalidRequest(
                argument="min_fidelity", given=min_fidelity, allowed=f"one of {', '.join(get_args(MinFidelity))}"
            )
        changes["min_fidelity"] = min_fidelity
    start = instant(event_time_from, "event_time_from")
    end = instant(event_time_to, "event_time_to")
    return Request(
        request_id=request_id,
        tenant=name_of(tenant, "tenant"),
        owner=name_of(owner, "owner"),
        query=check_text(query, "query"),
        reference_time=instant(reference_time, "reference_time") or now,
        mode=one_of(RetrievalMode, retrieval_mode, "retrieval_mode"),
        scopes=scopes,
        time_from=instant(time_from, "time_from"),
        time_to=instant(time_to, "time_to"),
        knowledge_at=instant(knowledge_at, "knowledge_at"),
        event_time_from=start,
        event_time_to=end,
        min_score=_score(min_score),
        limit=None if limit is None else _count(limit, "limit", minimum=0),
        max_per_source=None if max_per_source is None else _count(max_per_source, "max_per_source", minimum=1),
        max_per_evidence=None if max_per_evidence is None else _count(max_per_evidence, "max_per_evidence", minimum=1),
        exclude_node_types=_members(NodeType, exclude_node_types or (), "exclude_node_types"),
        source_types=None if source_types is None else _members(SourceType, source_types, "source_types"),
        include_cross_scope=flag(include_cross_scope, "include_cross_scope"),
        multipliers=_multipliers(ranking_multipliers, scoring),
        scoring=scoring,
        packing=packing.model_copy(update=changes) if changes else packing,
        closed=settings.closed_scopes(),
        as_of=_count(as_of, "as_of", minimum=0) if isinstance(as_of, int) else instant(as_of, "as_of"),
    )


def one_of(enum: type[E], value: Any, argument: str) -> E:
    """Return the member of ``enum`` spelled ``value``.

    Raises:
        InvalidRequest: listing the members.
    """
    try:
        return enum(value)
    except ValueError:
        raise InvalidRequest(argument=argument, given=value, allowed=f"one of {', '.join(enum)}") from None


def flag(value: Any, argument: str) -> bool:
    """Return ``value``, which must be a bool: the text "false" would count as true.

    Raises:
        InvalidRequest: it is something else.
    """
    if not isinstance(value, bool):
        raise InvalidRequest(argument=argument, given=value, allowed="True or False")
    return value


def scopes_of(scope: str | Collection[str] | None) -> frozenset[Scope] | None:
    """Return the allowed scopes; ``None`` for no restriction (digest a §7.5).

    Raises:
        InvalidRequest: an unknown name, an empty sequence or a set.
    """
    if scope is None:
        return None
    names = [scope] if isinstance(scope, str) else scope
    if not isinstance(names, list | tuple) or not names:
        raise InvalidRequest(argument="scope", given=scope, allowed="None, a scope name, or a nonempty list of them")
    return frozenset(one_of(Scope, name, "scope") for name in names)


def _members(enum: type[E], names: Any, argument: str) -> frozenset[E]:
    if isinstance(names, str) or not isinstance(names, list | tuple | set | frozenset):
        raise InvalidRequest(argument=argument, given=names, allowed=f"a list, tuple or set of {', '.join(enum)}")
    return frozenset(one_of(enum, name, argument) for name in names)


def _count(value: Any, argument: str, *, minimum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value < _NO_COUNT:
        raise InvalidRequest(argument=argument, given=value, allowed=f"a whole number from {minimum} to 2**63 - 1")
    return value


def _score(value: Any) -> float | None:
    if value is None:
        return None
    if not is_number(value, 0):
        raise InvalidRequest(argument="min_score", given=value, allowed="a finite number of at least 0, or None")
    return float(value)


def _scoring(weights: Any) -> ScoringSettings:
    if isinstance(weights, ScoringSettings):
        return weights.checked(at="weights")
    if not isinstance(weights, Mapping):
        raise InvalidRequest(argument="weights", given=weights, allowed="ScoringSettings or a mapping of its fields")
    return ScoringSettings.parse(dict(weights), at="weights")


def _multipliers(given: Any, scoring: ScoringSettings) -> Mapping[str, float] | None:
    if given is None:
        return None
    low, high = _MULTIPLIER_RANGE
    allowed = f"factors in [{low}, {high}] for {', '.join(MULTIPLIERS)}"
    if not isinstance(given, Mapping) or any(name not in MULTIPLIERS for name in given):
        raise InvalidRequest(argument="ranking_multipliers", given=given, allowed=allowed)
    for name, value in given.items():
        if not is_number(value, low, high):
            raise InvalidRequest(argument=f"ranking_multipliers.{name}", given=value, allowed=allowed)
    complete = {name: float(given.get(name, 1.0)) for name in MULTIPLIERS}
    if all(value == 1.0 for value in complete.values()):
        return None
    if scoring.fusion == "rrf":
        raise InvalidRequest(
            argument="ranking_multipliers",
            given=dict(given),
            allowed="neutral factors (1.0) under rank fusion, or weights with fusion='weighted'",
        )
    return complete
