"""The flow of a retrieval, declared once as data.

::

    analysis ─ plan ─┬─ embedding ─ vector ─┐
                     ├─ lexical, scans ─────┤
                     ├─ graph ──────────────┼─ nodes ─ merged ─ allowed ─ scored ─ ranked
                     └─ pinned ─────────────┘                                      │
          packed ─ selection ─ evidence ─ episodes ─ sessions ─────────────────────┘

Every executor runs :data:`FLOW` and nothing else, so all give the same bytes. A step names what it
needs; what is not the name of another step is given with the request (:data:`GIVEN`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from prme_ray.model.enums import Path
from prme_ray.model.tables import CHANNEL
from prme_ray.steps import finish, generate, rank
from prme_ray.steps.values import Scans

__all__ = ["FLOW", "GIVEN", "Place", "Step", "check_flow"]


class Place(StrEnum):
    """What a step needs beside its inputs, and so where it may run."""

    TAIL = "tail"
    """Nothing: pure, wherever the coordinator is."""
    EMBEDDER = "embedder"
    """The encoder."""
    VECTOR = "vector"
    """The owner's vectors."""
    LEXICAL = "lexical"
    """The owner's text index."""
    GRAPH = "graph"
    """The owner's graph."""
    RECORDS = "records"
    """The owner's memories."""


@dataclass(frozen=True, slots=True)
class Step:
    """One node of the flow.

    Attributes:
        name: Name of the step and of its result.
        run: Function of the place's resource (if any) and the inputs, in order.
        inputs: Names of results or given values.
        place: Resource it needs.
        channel: Channel it belongs to: if it raises, the request goes on with ``empty`` and the
            response says so (``backend_failures``).
        empty: Makes the result of a failed or disabled channel step.
    """

    name: str
    run: Callable[..., Any]
    inputs: tuple[str, ...]
    place: Place = Place.TAIL
    channel: str | None = None
    empty: Callable[[], Any] | None = None


GIVEN: tuple[str, ...] = ("request", "settings", "tools", "failures")
"""Values that come with the request: ``failures`` maps a failed channel to its reason."""


def _nothing() -> None:
    return None


_CHANNELS = ("graph", "vector", "lexical", "pinned", "scans")
_HINT_VECTOR = ("embedding", "request", "plan")

FLOW: tuple[Step, ...] = (
    Step("analysis", generate.analyze, ("request", "settings")),
    Step("plan", generate.plan, ("request", "analysis")),
    Step("embedding", generate.embed, ("request",), Place.EMBEDDER, Path.VECTOR, _nothing),
    Step("vector", generate.search_vectors, ("embedding", "plan"), Place.VECTOR, Path.VECTOR, CHANNEL.empty_table),
    Step("lexical", generate.search_text, ("request", "plan"), Place.LEXICAL, Path.LEXICAL, CHANNEL.empty_table),
    Step("scans", generate.scan_terms, ("plan",), Place.LEXICAL, "LEXICAL_AGG", Scans),
    Step("graph", generate.traverse, ("request", "plan"), Place.GRAPH, Path.GRAPH, CHANNEL.empty_table),
    Step("pinned", generate.find_pinned, ("request", "plan"), Place.RECORDS, Path.PINNED, CHANNEL.empty_table),
    Step("nodes", generate.hydrate, _CHANNELS, Place.RECORDS),
    Step("merged", rank.merge_channels, (*_CHANNELS, "nodes")),
    Step("allowed", rank.keep_allowed, ("merged", "request", "settings")),
    Step("scored", rank.rank, ("allowed", "request", "analysis", "settings")),
    Step("ranked", rank.mark_conflicts, ("scored",), Place.RECORDS),
    Step("windows", rank.find_windows, ("ranked", "request", "plan"), Place.RECORDS),
    Step("sessions", rank.expand_sessions, ("ranked", "windows", "request", "settings")),
    Step("episodes", rank.expand_episodes, ("sessions", "request")),
    Step("sources", rank.find_sources, ("episodes", "request", "plan"), Place.RECORDS),
    Step("evidence", rank.project_evidence, ("episodes", "sources", "request", "settings")),
    Step("hint_vector", finish.find_vector_hints, _HINT_VECTOR, Place.VECTOR, Path.VECTOR, CHANNEL.empty_table),
    Step("hint_lexical", finish.find_text_hints, ("request", "plan"), Place.LEXICAL, Path.LEXICAL, CHANNEL.empty_table),
    Step("hint_pool", finish.hydrate_hints, ("hint_vector", "hint_lexical", "plan"), Place.RECORDS),
    Step("hints", finish.rank_hints, ("hint_pool", "allowed", "request", "analysis", "settings")),
    Step("selection", finish.choose, ("evidence", "hints", "request", "failures")),
    Step("packed", finish.pack_context, ("selection", "request", "analysis", "tools")),
)


def check_flow(flow: tuple[Step, ...] = FLOW) -> None:
    """Check that every input is given or made by an earlier step.

    Raises:
        ValueError: naming the step and the input.
    """
    known = set(GIVEN)
    for step in flow:
        for name in step.inputs:
            if name not in known:
                raise ValueError(f"step {step.name!r} needs {name!r}, which no earlier step makes")
        if step.name in known:
            raise ValueError(f"two steps are named {step.name!r}")
        known.add(step.name)


check_flow()
