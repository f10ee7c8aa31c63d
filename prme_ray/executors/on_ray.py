"""Runs the flow with vector, lexical and graph search on actors, side by side with the embedding.

::

    coordinator   analysis, plan ─┬──────────────────┬─ pinned ─ merge … pack
    vector actor                  ├─ embed, vector ──┤   (or embedding actor ─► vector actor)
    lexical actor                 ├─ lexical, scans ─┤
    graph actor                   └─ graph ──────────┘   (a small owner's: coordinator, which has it too)

A call costs 1 to 2 ms of both processes' time whatever it does, most of it for waking threads, and on a machine of
few cores that time is taken from the embedding. So there are as few calls as there can be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from actors.channel import semantic_of
from actors.handles import Handles
from actors.pool import PoolProvider
from prme_ray.executors.engine import Outcome, Run, UnderWay, Work, call_or_empty, run_flow
from prme_ray.executors.question import Question, outcome_of, packed_question
from prme_ray.executors.stage_call import packed_stage, stage_outcome
from prme_ray.model.enums import Path
from prme_ray.pipeline import Fragment, Place, fragment, tail_steps
from storage.encoder.cache import CachedEncoder, Flight
from storage.records import OwnerKey

__all__ = ["CHANNELS", "CHANNEL_PLACES", "RayAway", "RayExecutor", "merged", "owner_of", "question_of"]

CHANNEL_PLACES = (Place.LEXICAL, Place.GRAPH, Place.VECTOR)
"""Places that have actors of their own, one a shard group."""

_EMBED, _VECTOR = fragment(Place.EMBEDDER), fragment(Place.VECTOR)
_LEXICAL, _GRAPH = fragment(Place.LEXICAL), fragment(Place.GRAPH)

CHANNELS = Fragment(
    Place.EMBEDDER, tuple(step for one in (_EMBED, *map(fragment, CHANNEL_PLACES)) for step in one.steps), ("plan",)
)
"""Embedding and all channels: everything that needs the plan alone and is computed away."""


class RayAway:
    """Computes the channels on their actors, and configured pure steps on theirs.

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
        return [fragment(place, flow) for place in CHANNEL_PLACES] if flow else [CHANNELS, *self.stages]

    def start(self, fragment: Fragment, work: Work) -> UnderWay:
        """Start a fragment on its actors."""
        if fragment.place is Place.TAIL:
            return self._start_stage(fragment, work)
        return self._start_channels(work) if fragment is CHANNELS else self._start_search(fragment, work)

    def _start_channels(self, work: Work) -> UnderWay:
        # Embedding takes longest, so it is asked for first and waited for last: what the other channels say is
        # read meanwhile.
        semantic = self._start_semantic(work)
        try:
            others = [self._start_search(_LEXICAL, work), self._start_graph(work)]
        except BaseException:
            semantic.leave()
            raise

        def wait() -> Outcome:
            try:
                found = [one.wait() for one in reversed(others)]
            except BaseException:
                semantic.leave()
                raise
            return merged([semantic.wait(), *found])

        return UnderWay(wait, semantic.leave)

    def _start_search(self, fragment: Fragment, work: Work) -> UnderWay:
        """Start the fragment of one channel's place."""
        owner, view = owner_of(work.values), work.resources[fragment.place]
        asked = packed_question(question_of(fragment, work))
        kind, group = fragment.place.value, partial(self._handles.group_of, owner)
        under_way = self._handles.ask(kind, group, "answer", asked)
        return UnderWay(
            lambda: outcome_of(self._handles.answer(under_way, kind, group, "answer", asked), view, fragment)
        )

    def _start_graph(self, work: Work) -> UnderWay:
        """Start the graph search; a small owner's graph is searched here, while the others are away."""
        if len(work.resources[Place.GRAPH]) >= self._handles.deployment.cluster.graph_actor_from:
            return self._start_search(_GRAPH, work)
        return UnderWay(partial(_searched_here, _GRAPH, work))

    def _start_semantic(self, work: Work) -> UnderWay:
        """Start embedding and vector search, as one call or as two that follow each other without us."""
        query: str = work.values["plan"].query
        if not query.strip() or Path.VECTOR in work.disabled or Path.VECTOR in work.values["failures"]:
            return UnderWay(lambda: self._step_by_step(work))
        known = work.values["embedding"] if "embedding" in work.values else self._encoder.begin_query(query)
        if known is None:  # another request is getting it
            return UnderWay(lambda: self._step_by_step(work))
        if not isinstance(known, Flight):
            search = self._start_with(known, work)
            return UnderWay(lambda: _with(known, search.wait()))
        try:
            under_way, done = self._ask_semantic(packed_question(question_of(CHANNELS, work)), owner_of(work.values))
        except BaseException:
            known.abandon()
            raise

        def leave() -> None:
            known.abandon()
            done()

        def wait() -> Outcome:
            try:
                seconds, made, answered = _semantic(self._handles.wait(under_way, "vector"))
            except Exception:
                # Once more, one after the other: that waits for the return of an actor, or tells which failed.
                leave()
                return self._step_by_step(work)
            except BaseException:
                leave()
                raise
            done()
            embedding = known.land(np.frombuffer(made, np.float32))
            outcome = outcome_of(answered, work.resources[Place.VECTOR], _VECTOR)
            return _with(embedding, replace(outcome, seconds={**seconds, **outcome.seconds}))

        return UnderWay(wait, leave)

    def _ask_semantic(self, asked: bytes, owner: OwnerKey) -> tuple[Any, Callable[[], None]]:
        """Return what resolves to vector and hits, and what to call when it has."""
        kind, group = Place.VECTOR.value, partial(self._handles.group_of, owner)
        if self._handles.deployment.embeds_beside_vectors:
            return self._handles.ask(kind, group, "answer_text", asked), _nothing
        vector, done = self._pool.begin(asked)
        return [vector, self._handles.ask(kind, group, "answer_near", asked, vector)], done

    def _start_with(self, embedding: Any, work: Work) -> UnderWay:
        """Start the vector search with a vector that is here."""
        return self._start_search(_VECTOR, replace(work, values={**work.values, "embedding": embedding}))

    def _step_by_step(self, work: Work) -> Outcome:
        """Embed, then search."""
        (step,) = _EMBED.steps
        values = {**work.values, "failures": dict(work.values["failures"])}
        if "embedding" not in values:
            values["embedding"] = call_or_empty(step, values, work.resources, work.disabled)
        embedding = values["embedding"]
        if embedding is None:
            empty = {one.name: one.empty() for one in _VECTOR.steps if one.empty is not None}
            return Outcome({"embedding": None, **empty}, values["failures"])
        return _with(embedding, self._start_with(embedding, replace(work, values=values)).wait())

    def _start_stage(self, fragment: Fragment, work: Work) -> UnderWay:
        step = fragment.steps[0]
        asked = packed_stage(step, work.values)
        handles = self._handles
        kind = f"stage.{step.name}"
        if handles.deployment.cluster.stages[step.name] == "task":
            return UnderWay(lambda: stage_outcome(step, handles.task(asked)))
        under_way = handles.ask(kind, _only, "compute", asked)
        return UnderWay(lambda: stage_outcome(step, handles.answer(under_way, kind, _only, "compute", asked)))


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Return what several fragments made as one outcome."""
    whole = Outcome({}, {}, {})
    for one in outcomes:
        whole = Outcome(
            {**whole.values, **one.values}, {**whole.failures, **one.failures}, {**whole.seconds, **one.seconds}
        )
    return whole


def _searched_here(work_of: Fragment, work: Work) -> Outcome:
    values = {**work.values, "failures": dict(work.values["failures"])}
    for step in work_of.steps:
        values[step.name] = call_or_empty(step, values, work.resources, work.disabled)
    return Outcome({step.name: values[step.name] for step in work_of.steps}, values["failures"])


def _semantic(answered: Any) -> tuple[dict[str, float], bytes, bytes]:
    """Return seconds of the embedding where known, vector and hits."""
    if isinstance(answered, list):  # of an embedding actor and a vector actor
        vector, hits = answered
        return {}, vector, hits
    seconds, vector, hits = semantic_of(answered)
    return {"embedding": seconds}, vector, hits


def _with(embedding: Any, found: Outcome) -> Outcome:
    return replace(found, values={"embedding": embedding, **found.values})


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
    view = work.resources[Place.VECTOR]
    return Question(
        owner_of(work.values),
        view.owner_seq,
        work.flow,
        values,
        frozenset(work.disabled),
        dict(work.values["failures"]),
        strict=bool(work.flow),
        past=view.generation if view.past else None,
    )
