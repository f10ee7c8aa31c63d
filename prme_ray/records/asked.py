"""The request and the settings that a record tells of, so that it can be asked again."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from typing import Any

from prme_ray.model.enums import NodeType, RetrievalMode, Scope, SourceType
from prme_ray.model.request import BOUNDS, Request
from prme_ray.model.settings import Settings
from prme_ray.model.settings.scoring import ScoringSettings

__all__ = ["request_of", "settings_of", "wordings_of"]

_AS_THEY_ARE: tuple[str, ...] = (
    "min_score",
    "limit",
    "max_per_source",
    "max_per_evidence",
    "include_cross_scope",
    "multipliers",
    "as_of",
)


def settings_of(head: dict[str, Any], present: Settings) -> Settings:
    """Return the settings a record was made with; those that change no answer are the present ones.

    Args:
        head: Head of the record.
        present: Settings in force now.

    Raises:
        InvalidSettings: this version of prme-ray does not know them all.
    """
    recorded: dict[str, Any] = json.loads(head["settings"])
    encoder = present.encoder.model_dump(mode="json") | recorded.get("encoder", {})
    here = {name: getattr(present, name) for name in ("storage", "cluster", "log_retrievals", "strict_receipts")}
    return Settings.parse(recorded | here | {"encoder": encoder})


def request_of(head: dict[str, Any], settings: Settings) -> Request:
    """Return the recorded request, with every option resolved as it was.

    Args:
        head: Head of the record.
        settings: The settings it was made with.
    """
    limits = {"token_budget": head["token_budget"], "min_fidelity": head["min_fidelity"]}
    times = {name: None if head[name] is None else datetime.fromisoformat(head[name]) for name in BOUNDS}
    others: dict[str, Any] = times | {name: head[name] for name in _AS_THEY_ARE}
    return Request(
        request_id=head["request_id"],
        tenant=head["tenant"],
        owner=head["user_id"],
        query=head["query"],
        reference_time=datetime.fromisoformat(head["reference_time"]),
        mode=RetrievalMode(head["retrieval_mode"]),
        scopes=None if head["scopes"] is None else frozenset(map(Scope, head["scopes"])),
        exclude_node_types=frozenset(map(NodeType, head["exclude_node_types"])),
        source_types=None if head["source_types"] is None else frozenset(map(SourceType, head["source_types"])),
        scoring=ScoringSettings.parse(head["weights"]),
        packing=settings.packing.model_copy(update=limits),
        closed=settings.closed_scopes(),
        **others,
    )


def wordings_of(head: dict[str, Any], request: Request) -> tuple[Request, ...]:
    """Return the request in the other words that were searched too, as the rewriter gave them then."""
    return tuple(dataclasses.replace(request, query=text) for text in head["alternate_queries"])
