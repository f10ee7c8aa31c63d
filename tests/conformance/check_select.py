"""Golden file ``select``: floor, caps, limit, floor skipping and argument checks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from prme_ray.model.errors import InvalidRequest
from prme_ray.model.request import make_request
from prme_ray.model.settings import Settings
from prme_ray.model.tables import floats, texts
from stages.select import select, skip_floor, with_relevance
from tests.conformance.tables import scored_table

_ARGUMENTS = ("min_score", "limit", "max_per_source", "max_per_evidence")


def _valid(arguments: dict[str, Any]) -> bool:
    try:
        make_request(
            "q",
            request_id="r",
            tenant="golden",
            owner="owner-1",
            now=datetime(2026, 1, 1, tzinfo=UTC),
            settings=Settings(),
            **arguments,
        )
    except InvalidRequest:
        return False
    return True


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Run the stage on one case."""
    given = case["given"]
    arguments = {name: given.get(name) for name in _ARGUMENTS}
    if "candidates" not in given:
        return {"valid": _valid(arguments)}
    scored = scored_table([{"paths": [], "path_count": 0, **item, "node": item} for item in given["candidates"]])
    found: dict[str, Any] = {}
    skip = False
    if "backend_failures" in given:
        scored = with_relevance(scored)
        values = floats(scored, "semantic_relevance")
        failed = "VECTOR" in given["backend_failures"]
        skip = skip_floor(values, fusion="rrf", min_score=given["min_score"], vector_failed=failed)
        found["relevance"] = dict(zip(texts(scored, "node_id"), values.tolist(), strict=True))
        found["min_score_skipped"] = skip
    kept, excluded = select(scored, **arguments, skip_floor=skip)
    found["selected"] = texts(kept, "node_id")
    found["excluded"] = [{**row, "id": row["node_id"]} for row in excluded.to_pylist()]
    return found
