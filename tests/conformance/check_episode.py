"""Golden file ``episode``."""

from __future__ import annotations

from typing import Any

from prme_ray.model.enums import Path
from prme_ray.model.settings.packing import PackingSettings
from prme_ray.model.tables import records
from stages.expand_episode import expand_episode, rank_episodes, terms
from tests.conformance.tables import result, scored_table


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Run the stage on one case."""
    given = case["given"]
    scored = scored_table(given["scored"])
    found = expand_episode(given["query"], scored, packing=PackingSettings(**given["config"])).table
    return {
        "query_terms": terms(given["query"]),
        "episodes": [
            {
                "scope": str(episode.scope),
                "session_id": episode.session_id,
                "bm25": episode.score,
                "members": len(episode.rows),
            }
            for episode in rank_episodes(given["query"], scored)
        ],
        "promoted": [row["node_id"] for row in records(found) if row["paths"] & Path.EPISODE_CONTEXT.bit],
        "results": [result(row) for row in records(found)],
    }
