"""Golden cases of folding; see :mod:`tests.conformance.check_pack_order` for the adapter."""

from __future__ import annotations

from typing import Any

from tests.conformance.check_pack_order import UNLIMITED, as_events, outcome, packed


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Return what the stage makes of a case, and what only folding takes out."""
    given = case["given"]
    unlimited = packed(given, token_budget=UNLIMITED)
    folded = sorted(node_id for node_id, reason in unlimited.excluded.items() if reason == "folded")
    return outcome(packed(given)) | {"folded_with_unlimited_budget": folded}


def deviation(case: dict[str, Any]) -> dict[str, Any] | None:
    """Return what decision 15 makes of a case with preferences: the same as if they were events."""
    given = as_events(case["given"])
    if given is None:
        return None
    return {"decision": 15, "actual": actual(case | {"given": given}), "expected": case["expect"]}
