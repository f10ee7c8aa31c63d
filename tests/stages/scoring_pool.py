"""Small candidate pools for the scoring tests: ids are numbers, ages are days before one clock."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from prme_ray.model.enums import Intent
from prme_ray.model.settings import ScoringSettings
from prme_ray.model.tables import floats, records, texts
from prme_ray.model.times import iso
from stages.query_wording import with_wording
from stages.score import Scored, score
from tests.conformance.tables import candidates_table

REF = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEIGHTED = ScoringSettings(fusion="weighted", rrf_recency_boost=None, rrf_tie_break=None)
PLAIN_FUSION = ScoringSettings(rrf_recency_boost=None, rrf_tie_break=None)
PRODUCT = ScoringSettings()


def name(number: int) -> str:
    return str(uuid.UUID(int=number))


def number(node_id: str) -> int:
    return uuid.UUID(node_id).int


def days_ago(days: float) -> str:
    return iso(REF - timedelta(days=days))


def candidate(
    identity: int,
    semantic: float | None = None,
    lexical: float | None = None,
    *,
    graph: float = 0.0,
    age: float = 0.0,
    path_count: int | None = None,
    **node: Any,
) -> dict[str, Any]:
    """Return a golden-style candidate; ``None`` means off that channel."""
    paths = [
        path
        for path, found in (("GRAPH", graph), ("VECTOR", semantic is not None), ("LEXICAL", lexical is not None))
        if found
    ]
    stamp = days_ago(age)
    record = {
        "id": name(identity),
        "content": "plain text",
        "created_at": stamp,
        "last_reinforced_at": stamp,
        **node,
    }
    return {
        "node": record,
        "paths": paths,
        "path_count": len(paths) if path_count is None else path_count,
        "semantic_score": semantic or 0.0,
        "lexical_score": lexical or 0.0,
        "graph_proximity": graph,
    }


def pool(*candidates: dict[str, Any]) -> pa.Table:
    return candidates_table(list(candidates))


def ask(
    candidates: list[dict[str, Any]],
    query: str = "favourite food",
    *,
    scoring: ScoringSettings = PLAIN_FUSION,
    intent: Intent = Intent.SEMANTIC,
    time_from: datetime | None = None,
    time_to: datetime | None = None,
    **arguments: Any,
) -> Scored:
    """Score a pool for a question at ``REF``."""
    analysis = with_wording(query, intent=intent, time_from=time_from, time_to=time_to)
    return score(pool(*candidates), analysis=analysis, scoring=scoring, reference_time=REF, **arguments)


def scores(found: Scored) -> dict[int, float]:
    """Return composite scores by number, in rank order."""
    ids, values = texts(found.table, "node_id"), floats(found.table, "composite_score").tolist()
    return {number(node_id): value for node_id, value in zip(ids, values, strict=True)}


def row(found: Scored, identity: int) -> dict[str, Any]:
    """Return the scored row of one candidate."""
    return next(item for item in records(found.table) if item["node_id"] == name(identity))
