"""Golden file ``session``; the windows come from a plain look-up written from the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from prme_ray.model.settings.packing import PackingSettings
from prme_ray.model.tables import records, texts
from stages.expand_session import expand_session, session_triggers
from tests.conformance.tables import node, nodes_table, result, scored_table, windows_table

_ACTIVE = {"tentative", "stable", "contested"}


def windows(given: dict[str, Any], triggers: pa.Table, width: int) -> pa.Table:
    """Return the turns around each trigger: active, same owner, session and scope, by (created_at, id)."""
    rows: list[dict[str, Any]] = []
    trigger_ids: list[str] = []
    offsets: list[int] = []
    store = {item["id"]: item for item in given["store"]}
    for trigger_id in texts(triggers, "trigger_id"):
        trigger = next(item["node"] for item in given["scored"] if item["node"]["id"] == trigger_id)
        turns = [
            item
            for item in store.values()
            if item.get("user_id", "owner-1") == given["user_id"]
            and item.get("session_id") == trigger["session_id"]
            and item.get("scope", "personal") == trigger.get("scope", "personal")
            and item.get("lifecycle_state", "tentative") in _ACTIVE
            and (given["scopes"] is None or item.get("scope", "personal") in given["scopes"])
        ]
        turns.sort(key=lambda item: (node(item).created_at, item["id"]))
        places = [place for place, item in enumerate(turns) if item["id"] == trigger_id]
        for here in places:
            for place in range(max(0, here - width), min(len(turns), here + width + 1)):
                rows.append(turns[place])
                trigger_ids.append(trigger_id)
                offsets.append(place - here)
    table = windows_table(nodes_table(rows), trigger_ids, offsets)
    # The stage has to sort: give it the rows in an order that means nothing.
    return table.take(pa.array(np.random.default_rng(7).permutation(table.num_rows)))


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Run the stage on one case."""
    given = case["given"]
    packing = PackingSettings(**given["config"])
    scored = scored_table(given["scored"])
    triggers = session_triggers(scored, packing=packing)
    found = expand_session(scored, windows(given, triggers, packing.session_context_window), packing=packing)
    return {"results": [result(row) for row in records(found.table)], "added": list(found.added)}
