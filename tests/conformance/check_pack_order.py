"""Golden cases of packing order, levels and budget.

The cases give costs in place of text, so the adapter serves them through the stage's ``LineCosts``.
They file preferences with events under ``provenance_refs``, ours stand in ``preferences`` (decision
15). Both types are otherwise packed alike: ``deviation`` hands preferences over as events, and the
product must then agree with the case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from prme_ray.model.settings import PackingSettings
from prme_ray.model.tables import texts
from stages.lines import Line, Lines
from stages.pack import Packed, pack
from stages.render_record import LEVELS
from tests.conformance.tables import scored_table

NOTICE, GUIDANCE = "a notice", "some guidance"
UNLIMITED = 10**9


@dataclass
class GivenCosts:
    """Line costs of a golden case; line breaks cost nothing."""

    given: dict[str, Any]

    def lines(self, table: pa.Table, *, level: str, references: Sequence[str] | None) -> Lines:
        return Lines.of(
            [
                Line(
                    f"{node_id} {level}", cost := self.given["costs"][node_id][level], cost, False, not content.strip()
                )
                for node_id, content in zip(texts(table, "node_id"), texts(table, "content"), strict=True)
            ]
        )

    def count(self, text: str) -> int:
        return sum(self._line(line) for line in text.split("\n"))

    def _line(self, text: str) -> int:
        if not text:
            return 0
        if text in (NOTICE, GUIDANCE):
            return self.given["notice_cost" if text == NOTICE else "guidance_cost"]
        node_id, _, level = text.partition(" ")
        if node_id in self.given["costs"] and level in LEVELS:
            return self.given["costs"][node_id][level]
        return self.given["section_label_cost" if text.startswith("[") else "header_cost"]


def packed(given: dict[str, Any], **changes: Any) -> Packed:
    """Pack a golden case; ``changes`` replace values of its config."""
    config = given["config"] | changes
    return pack(
        scored_table(given["candidates"]),
        packing=PackingSettings(**config),
        token_budget=config["token_budget"],
        min_fidelity=config["min_fidelity"],
        costs=GivenCosts(given),
        notices=() if given["notice_cost"] is None else (NOTICE,),
        guidance=None if given["guidance_cost"] is None else GUIDANCE,
    )


def outcome(found: Packed) -> dict[str, Any]:
    """Return a packed context in golden form."""
    return {
        "sections": [[name, ids] for name, ids in found.sections.items()],
        "excluded_ids": list(found.excluded),
        "levels": found.levels,
        "entry_costs": found.token_costs,
        "included_count": len(found.included),
        "tokens_used": found.tokens_used,
        "budget_remaining": found.budget_remaining,
        "notice_included": found.coverage_notice is not None,
        "guidance_included": found.context_guidance is not None,
    }


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Return what the stage makes of a case."""
    given = case["given"]
    return outcome(packed(given)) | {"priority_order": packed(given, token_budget=UNLIMITED).included}


def deviation(case: dict[str, Any]) -> dict[str, Any] | None:
    """Return what decision 15 makes of a case with preferences: the same as if they were events."""
    given = as_events(case["given"])
    if given is None:
        return None
    return {"decision": 15, "actual": actual(case | {"given": given}), "expected": case["expect"]}


def as_events(given: dict[str, Any]) -> dict[str, Any] | None:
    """Return a case with its preferences as events; ``None`` where it has none."""
    kinds = [item["node"].get("node_type") for item in given["candidates"]]
    if "preference" not in kinds:
        return None
    candidates = [
        item | {"node": item["node"] | {"node_type": "event"}} if kind == "preference" else item
        for item, kind in zip(given["candidates"], kinds, strict=True)
    ]
    return given | {"candidates": candidates}
