"""Small memories for the packing tests: ids by number, times by text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from prme_ray.model.settings import PackingSettings
from prme_ray.tokens import counter
from stages.costs import CachedLines
from stages.pack import Packed, pack
from tests.conformance.tables import scored_table


def node_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def memory(number: int, content: str, score: float = 0.5, **fields: Any) -> dict[str, Any]:
    """Return a golden-style candidate; ``paths`` and ``link`` aside, fields are the node's."""
    paths = fields.pop("paths", ["VECTOR"])
    link = fields.pop("link", None)
    candidate = {
        "node": {"id": node_id(number), "content": content} | fields,
        "paths": paths,
        "path_count": fields.pop("path_count", len(paths)),
        "composite_score": score,
    }
    candidate["node"].pop("path_count", None)
    if link is not None:
        candidate["session_context_link"] = {"trigger_id": node_id(link[0]), "offset": link[1]}
    return candidate


def table(*memories: dict[str, Any]) -> pa.Table:
    return scored_table(list(memories))


def packed(
    *memories: dict[str, Any],
    cache: Any = None,
    notices: tuple[str, ...] = (),
    guidance: str | None = None,
    **given: Any,
) -> Packed:
    """Pack memories with real rendering and cl100k counts; ``given`` are packing settings."""
    packing = PackingSettings(**given)
    return pack(
        table(*memories),
        packing=packing,
        token_budget=packing.token_budget,
        min_fidelity=packing.min_fidelity,
        costs=CachedLines(packing, counter("cl100k_base"), {} if cache is None else cache, owner="acme\0ada"),
        notices=notices,
        guidance=guidance,
    )


def numbers(ids: list[str]) -> list[int]:
    return [int(value[-12:]) for value in ids]
