"""Runs the flow with vector, lexical and graph search on actors, side by side with the embedding.

::

    coordinator   analysis, plan ─┬──────────────────┬─ pinned ─ merge … pack
    vector actor                  ├─ embed, vector ──┤   (or embedding actor ─► vector actor)
    lexical actor                 ├─ lexical, scans ─┤
    graph actor                   └─ graph ──────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from actors.handles import Handles
from actors.pool import PoolProvider
from prme_ray.executors.engine import Outcome, Run, Work, call_or_empty, run_flow
from prme_ray.executors.question import Question, outcome_of, packed_question
from prme_ray.executors.stage_call import packed_stage, stage_outcome
from prme_ray.model.enums import Path
from prme_ray.pipeline import Fragment, Place, fragment, tail_steps
from storage.encoder.cache import CachedEncoder, Flight
from storage.records import OwnerKey

__all__ = ["CHANNEL_PLACES", "RayAway", "RayExecutor", "owner_of", "question_of"]

CHANNEL_PLACES = (Place.LEXICAL, Place.GRAPH, Place.VECTOR)
"""Places that have actors of their own, one a shard group."""


_EMBED = fragment(Place.EMBEDDER)
_VECTOR = fragment(Place.VECTOR)
_SEMANTIC = Fragment(Place.EMBEDDER, (*_EMBED.steps, *_VECTOR.steps), ("plan",))
"""Embedding and vector search as one, asked for first: one call, or two that follow each other without us."""


class RayAway:
    """Computes the channels' fragments on their actors, and configured pure steps on theirs.

    Args:
        handles: The actors.
        encoder: Vectors kept by this coordinator.
        pool: The embedding actors.
    """

    def __init__(self, handles: Handles, encoder: CachedEncoder, pool: PoolProvider) -> None:
        self._handles = handles
        self._encoder = encoder
        self._pool = pool
        placed = handles.deployment.cluster.stages
        self.stages = tuple(
            Fragment(Place.TAIL, (step,), step.inputs) for step in map(tail_steps().get, placed) if step
        )

    def fragments(self, flow: str) -> Sequence[Fragment]:
        """Return what is computed away; see :class:`~prme_ray.executors.engine.Away`."""
        if flow:
            return [fragment(place, flow) for place in CHANNEL_PLACES]
        others = (fragment(place) for place in CHANNEL_PLACES if place is not Place.VECTOR)
        return [_SEMANTIC, *others, *self.stages]

    def start(self, fragment: Fragment, work: Work) -> Callable[[], Outcome]:
        """Start a fragment on its actor; the function returned waits for it."""
        if fragment.place is Place.TAIL:
            return self._start_stage(fragment, work)
        if fragment is _SEMANTIC:
            return self._start_semantic(work)
        owner, view = owner_of(work.values), work.resources[fragment.place]
        asked = packed_question(question_of(fragment, work))
        kind, group = fragment.place.value, partial(self._handles.group_of, owner)
        under_way = self._handles.ask(kind, group, "answer", asked)

        def wait() -> Outcome:
            return outcome_of(self._handles.answer(under_way, kind, group, "answer", asked), view, fragment)

        return wait

    def _start_semantic(self, work: Work) -> Callable[[], Outcome]:
        """Start embedding and vector search; the vector goes from one actor to the other."""
        query: str = work.values["plan"].query
        if not query.strip() or Path.VECTOR in work.disabled or Path.VECTOR in work.values["failures"]:
            return lambda: self._step_by_step(work)
        known = self._encoder.begin_query(query)
        if known is None:  # another request is getting it
            return lambda: self._step_by_step(work)
        if not isinstance(known, Flight):
            return self._start_search(work, known)
        try:
            under_way, done = self._ask_semantic(packed_question(question_of(_SEMANTIC, work)), owner_of(work.values))
        except BaseException:
            known.abandon()
            raise

        def wait() -> Outcome:
            try:
                made, answered = self._handles.wait(under_way, "vector")
            except Exception:
                # Once more, one after the other: that waits for the return of an actor, or tells which failed.
                known.abandon()
                return self._step_by_step(work)
            finally:
                done()
            outcome = outcome_of(answered, work.resources[Place.VECTOR], _VECTOR)
            embedding = known.land(np.frombuffer(made, np.float32))
            return Outcome({"embedding": embedding, **outcome.values}, outcome.failures, outcome.seconds)

        return wait

    def _ask_semantic(self, asked: bytes, owner: OwnerKey) -> tuple[Any, Callable[[], None]]:
        """Return what resolves to vector and hits, and what to call when it has."""
        kind, group = Place.VECTOR.value, partial(self._handles.group_of, owner)
        if self._handles.deployment.embeds_beside_vectors:
            return self._handles.ask(kind, group, "answer_text", asked), _nothing
        vector, done = self._pool.begin(asked)
        return [vector, self._handles.ask(kind, group, "answer_near", asked, vector)], done

    def _start_search(self, work: Work, embedding: Any) -> Callable[[], Outcome]:
        """Start the vector search with a vector that is here."""
        wait = self.start(_VECTOR, replace(work, values={**work.values, "embedding": embedding}))

        def both() -> Outcome:
            outcome = wait()
            return Outcome({"embedding": embedding, **outcome.values}, outcome.failures, outcome.seconds)

        return both

    def _step_by_step(self, work: Work) -> Outcome:
        """Embed, then search."""
        (step,) = _EMBED.steps
        values = {**work.values, "failures": dict(work.values["failures"])}
        embedding = call_or_empty(step, values, work.resources, work.disabled)
        if embedding is None:
            empty = {one.name: one.empty() for one in _VECTOR.steps if one.empty is not None}
            return Outcome({"embedding": None, **empty}, values["failures"])
        return self._start_search(replace(work, values=values), embedding)()

    def _start_stage(self, fragment: Fragment, work: Work) -> Callable[[], Outcome]:
        step = fragment.steps[0]
        asked = packed_stage(step, work.values)
        handles = self._handles
        kind = f"stage.{step.name}"
        if handles.deployment.cluster.stages[step.name] == "task":
            return lambda: stage_outcome(step, handles.task(asked))
        under_way = handles.ask(kind, _only, "compute", asked)
        return lambda: stage_outcome(step, handles.answer(under_way, kind, _only, "compute", asked))


def _nothing() -> None:
    """Nobody counts the questions under way at a vector actor."""


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
