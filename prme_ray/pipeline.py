"""The flow of a retrieval, declared once as data.

::

    analysis ─ plan ─┬─ embedding ─ vector ─┐
                     ├─ lexical, scans ─────┤
                     ├─ graph ──────────────┼─ nodes ─ merged ─┬─ generated ─ allowed ─ scored ─ reranked
                     └─ pinned ─────────────┘                  │                                     │
          alternates ─ passes (channels ─ merge) ──────────────┘                                  ranked
                                                                                                     │
          packed ─ selection ─ evidence ─ episodes ─ sessions ───────────────────────────────────────┘

Every executor runs :data:`FLOW` and nothing else, so all give the same bytes. A step names what it
needs; what is not the name of another step is given with the request (:data:`GIVEN`). Two options are
part of the flow whether they are on or off, and pass everything through when off: other wordings of
the question (``alternates``, ``passes``) and a cross-encoder (``pairs``, ``neural``, ``reranked``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from prme_ray.model.enums import Path
from prme_ray.model.tables import no_hits
from prme_ray.steps import alternates, finish, generate, neural, rank
from prme_ray.steps.values import Scans

__all__ = ["FLOW", "GIVEN", "Each", "Fragment", "Place", "Step", "check_flow", "fragment", "tail_steps"]


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
    RERANKER = "reranker"
    """The caller's cross-encoder, if any."""
    REFORMULATOR = "reformulator"
    """The caller's rewriter of questions, if any."""


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


@dataclass(frozen=True, slots=True)
class Each:
    """A flow of its own, run once for every item of a list; the runs know nothing of each other.

    Its result is a list in the order of the items: what ``result`` made, or the exception that ended
    the item's run. A channel that is off, or has failed for the question itself, is empty here too; one
    that fails here ends the run, as a later step decides what a failed run means.

    Attributes:
        name: Name of the result.
        items: Name of the list.
        item: Name the steps know an item by.
        steps: Steps of one run. They may name whatever the outer flow has made before.
        result: Name of the step whose value is the outcome.
    """

    name: str
    items: str
    item: str
    steps: tuple[Step, ...]
    result: str


@dataclass(frozen=True, slots=True)
class Fragment:
    """The steps of one place, to be run in one call by the process that has what the place needs.

    Attributes:
        place: The place.
        steps: Its steps, in the order of the flow.
        inputs: Names made by steps of other places, in the order they are first needed.
    """

    place: Place
    steps: tuple[Step, ...]
    inputs: tuple[str, ...]


GIVEN: tuple[str, ...] = ("request", "settings", "tools", "failures")
"""Values that come with the request: ``failures`` maps a failed channel to its reason."""


def _nothing() -> None:
    return None


_CHANNELS = ("graph", "vector", "lexical", "pinned", "scans")

_FOUND = ("alternate_graph", "alternate_vector", "alternate_lexical", "pinned")

_ALTERNATE: tuple[Step, ...] = (
    Step("alternate_plan", alternates.plan_alternate, ("alternate", "plan")),
    Step("alternate_embedding", generate.embed, ("alternate_plan",), Place.EMBEDDER, Path.VECTOR, _nothing),
    Step(
        "alternate_vector",
        generate.search_vectors,
        ("alternate_embedding", "alternate_plan"),
        Place.VECTOR,
        Path.VECTOR,
        no_hits,
    ),
    Step("alternate_lexical", generate.search_text, ("alternate_plan",), Place.LEXICAL, Path.LEXICAL, no_hits),
    Step("alternate_graph", generate.traverse, ("alternate_plan",), Place.GRAPH, Path.GRAPH, no_hits),
    Step("alternate_nodes", alternates.hydrate, _FOUND, Place.RECORDS),
    Step("alternate_merged", alternates.merge_channels, (*_FOUND, "alternate_nodes")),
)

FLOW: tuple[Step | Each, ...] = (
    Step("analysis", generate.analyze, ("request", "settings")),
    Step("plan", generate.plan, ("request", "analysis")),
    Step("entities", generate.name_types, ("analysis", "plan"), Place.RECORDS),
    Step("embedding", generate.embed, ("plan",), Place.EMBEDDER, Path.VECTOR, _nothing),
    Step("lexical", generate.search_text, ("plan",), Place.LEXICAL, Path.LEXICAL, no_hits),
    Step("scans", generate.scan_terms, ("lexical", "plan"), Place.LEXICAL, "LEXICAL_AGG", Scans),
    Step("graph", generate.traverse, ("plan",), Place.GRAPH, Path.GRAPH, no_hits),
    Step("pinned", generate.find_pinned, ("plan",), Place.RECORDS, Path.PINNED, no_hits),
    Step("vector", generate.search_vectors, ("embedding", "plan"), Place.VECTOR, Path.VECTOR, no_hits),
    Step("nodes", generate.hydrate, _CHANNELS, Place.RECORDS),
    Step("merged", rank.merge_channels, (*_CHANNELS, "nodes")),
    Step("alternates", alternates.reformulate, ("request", "settings"), Place.REFORMULATOR),
    Each("passes", items="alternates", item="alternate", steps=_ALTERNATE, result="alternate_merged"),
    Step("generated", alternates.add_alternates, ("merged", "passes", "settings")),
    Step("allowed", rank.keep_allowed, ("generated", "request", "settings")),
    Step("scored", rank.rank, ("allowed", "request", "analysis", "settings")),
    Step("pairs", neural.find_pairs, ("scored", "settings")),
    Step("neural", neural.score_pairs, ("pairs", "request"), Place.RERANKER),
    Step("reranked", neural.apply_scores, ("scored", "neural", "settings")),
    Step("ranked", rank.mark_conflicts, ("reranked",), Place.RECORDS),
    Step("windows", rank.find_windows, ("ranked", "request", "plan"), Place.RECORDS),
    Step("sessions", rank.expand_sessions, ("ranked", "windows", "request", "settings")),
    Step("episodes", rank.expand_episodes, ("sessions", "request")),
    Step("sources", rank.find_sources, ("episodes", "request", "plan"), Place.RECORDS),
    Step("evidence", rank.project_evidence, ("episodes", "sources", "request", "settings")),
    Step("hint_vector", finish.find_vector_hints, ("embedding", "plan"), Place.VECTOR, Path.VECTOR, no_hits),
    Step("hint_lexical", finish.find_text_hints, ("plan",), Place.LEXICAL, Path.LEXICAL, no_hits),
    Step("hint_pool", finish.hydrate_hints, ("hint_vector", "hint_lexical", "plan"), Place.RECORDS),
    Step("hints", finish.rank_hints, ("hint_pool", "allowed", "request", "analysis", "settings")),
    Step("selection", finish.choose, ("evidence", "hints", "request", "failures")),
    Step("packed", finish.pack_context, ("selection", "request", "analysis", "tools")),
)


@cache
def fragment(place: Place, flow: str = "") -> Fragment:
    """Return what a place does for a question, or for one item of the ``Each`` named ``flow``."""
    steps = FLOW if not flow else next(each.steps for each in FLOW if isinstance(each, Each) and each.name == flow)
    own = tuple(step for step in steps if isinstance(step, Step) and step.place is place)
    made = {step.name for step in own}
    needed = dict.fromkeys(name for step in own for name in step.inputs if name not in made)
    return Fragment(place, own, tuple(needed))


@cache
def tail_steps() -> dict[str, Step]:
    """Return the pure steps by name: each may run anywhere."""
    return {step.name: step for step in FLOW if isinstance(step, Step) and step.place is Place.TAIL}


def check_flow(flow: tuple[Step | Each, ...] = FLOW) -> None:
    """Check that every input is given or made by an earlier step, and that no name has two meanings.

    Raises:
        ValueError: naming the step and the input.
    """
    _check(flow, set(GIVEN))


def _check(flow: tuple[Step | Each, ...], known: set[str]) -> None:
    """Check a flow that finds the names ``known``, and add the names of its steps to them."""
    for step in flow:
        for name in (step.items,) if isinstance(step, Each) else step.inputs:
            if name not in known:
                raise ValueError(f"step {step.name!r} needs {name!r}, which no earlier step makes")
        if isinstance(step, Each):
            _check_each(step, known)
        if step.name in known:
            raise ValueError(f"two steps are named {step.name!r}")
        known.add(step.name)


def _check_each(each: Each, known: set[str]) -> None:
    if each.item in known:
        raise ValueError(f"the item of {each.name!r} is named {each.item!r}, as something else is")
    _check(each.steps, {*known, each.item})
    if each.result not in {step.name for step in each.steps}:
        raise ValueError(f"the result of {each.name!r} is {each.result!r}, which none of its steps makes")


check_flow()
