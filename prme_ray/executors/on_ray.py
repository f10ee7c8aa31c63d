"""Runs the flow with vector, lexical and graph search on actors, side by side with the embedding.

::

    coordinator   analysis, plan ─┬─ embed ──────────┬─ pinned ─ merge … pack
                                  │ (pool)           │
    lexical actor                 ├─ lexical, scans ─┤
    graph actor                   ├─ graph ──────────┤
    vector actor                  └──────── vector ──┘
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from actors.handles import Handles
from prme_ray.executors.engine import Outcome, Run, Work, run_flow
from prme_ray.executors.question import Question, outcome_of, packed_question
from prme_ray.executors.stage_call import packed_stage, stage_outcome
from prme_ray.pipeline import Fragment, Place, fragment, tail_steps
from storage.records import OwnerKey

__all__ = ["CHANNEL_PLACES", "RayAway", "RayExecutor", "owner_of", "question_of"]

CHANNEL_PLACES = (Place.LEXICAL, Place.GRAPH, Place.VECTOR)
"""Places that have actors of their own, one a shard group."""


class RayAway:
    """Computes the channels' fragments on their actors, and configured pure steps on theirs.

    Args:
        handles: The actors.
    """

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        placed = handles.deployment.cluster.stages
        self.stages = tuple(
            Fragment(Place.TAIL, (step,), step.inputs) for step in map(tail_steps().get, placed) if step
        )

    def fragments(self, flow: str) -> Sequence[Fragment]:
        """Return what is computed away; see :class:`~prme_ray.executors.engine.Away`."""
        channels = [fragment(place, flow) for place in CHANNEL_PLACES]
        return [*channels, *(() if flow else self.stages)]

    def start(self, fragment: Fragment, work: Work) -> Callable[[], Outcome]:
        """Start a fragment on its actor; the function returned waits for it."""
        if fragment.place is Place.TAIL:
            return self._start_stage(fragment, work)
        owner = owner_of(work.values)
        view = work.resources[fragment.place]
        asked = packed_question(question_of(fragment, work))
        kind = fragment.place.value

        def group() -> int:
            return self._handles.group_of(owner)

        under_way = self._handles.ask(kind, group, "answer", asked)

        def wait() -> Outcome:
            answered = self._handles.answer(under_way, kind, group, "answer", asked)
            return outcome_of(answered, view, fragment)

        return wait

    def _start_stage(self, fragment: Fragment, work: Work) -> Callable[[], Outcome]:
        step = fragment.steps[0]
        asked = packed_stage(step, work.values)
        handles = self._handles
        kind = f"stage.{step.name}"
        if handles.deployment.cluster.stages[step.name] == "task":
            return lambda: stage_outcome(step, handles.task(asked))
        under_way = handles.ask(kind, _only, "compute", asked)
        return lambda: stage_outcome(step, handles.answer(under_way, kind, _only, "compute", asked))


def _only() -> int:
    return 0  # a stage's actor serves all groups


class RayExecutor:
    """Runs the flow here and its channels on actors; the same bytes as ``inline``.

    Args:
        away: Where fragments are computed.
    """

    def __init__(self, away: RayAway) -> None:
        self._away = away
        self.executions = 0
        """Questions answered by a compiled graph: none."""

    def close(self) -> None:
        """Hold nothing, so let go of nothing."""

    def run(
        self, given: dict[str, Any], *, view: Any, resources: Mapping[Place, Any], disabled: Collection[str] = ()
    ) -> Run:
        """Return the values of every step; see :class:`~prme_ray.executors.engine.Executor`.

        Raises:
            SnapshotGone: an actor no longer has the owner at the view's number; take a newer view.
            ServiceUnavailable: an actor did not answer in time.
        """
        # An owner who never wrote has nothing to search, and no actor knows them.
        away = self._away if view.owner_seq else None
        return run_flow(Work("", dict(given), dict.fromkeys(Place, view) | dict(resources), disabled, away))


def owner_of(values: Mapping[str, Any]) -> OwnerKey:
    """Return whose memories a request asks for."""
    request = values["request"]
    return OwnerKey(request.tenant, request.owner)


def question_of(fragment: Fragment, work: Work) -> Question:
    """Return what a channel's actor is asked for a fragment of some work."""
    values = {name: work.values[name] for name in fragment.inputs}
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            values[name] = np.ascontiguousarray(value, np.float32)
    return Question(
        owner_of(work.values),
        work.resources[Place.VECTOR].owner_seq,
        work.flow,
        values,
        frozenset(work.disabled),
        dict(work.values["failures"]),
        strict=bool(work.flow),
    )
