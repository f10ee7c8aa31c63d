"""Golden cases of what a reader line shows before the text."""

from __future__ import annotations

from typing import Any

from stages.render_reader import parts
from stages.render_record import read
from tests.conformance.tables import nodes_table


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Return time label, tags and speaker of a case's line."""
    shown = parts(read(nodes_table([case["given"]["node"]]))[0])
    return {"time_label": shown.time, "tags": list(shown.tags), "speaker": shown.speaker}
