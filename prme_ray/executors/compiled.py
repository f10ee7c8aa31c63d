"""The channels of the flow as one of Ray's compiled graphs: shared memory instead of calls.

::

    asked ─┬─► embedder ─► vector ─┐
           ├─► lexical ────────────┼─► the coordinator
           └─► graph ──────────────┘

A compiled graph's actors poll for work, which keeps a fifth of a core busy each, so a graph is built when
questions come and taken down when they stop. While it is being built, is busy with another question or
has lost an actor, questions take the way of the ``ray`` executor: the same actors, the same bytes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ray
from ray.dag import InputNode, MultiOutputNode
from ray.exceptions import RayTaskError

from actors.handles import Handles
from prme_ray.executors.engine import Outcome, Run, UnderWay, Work, run_flow
from prme_ray.executors.on_ray import CHANNEL_PLACES, CHANNELS, RayAway, RayExecutor, merged, owner_of, question_of
from prme_ray.executors.question import outcome_of, packed_question
from prme_ray.pipeline import Fragment, Place
from prme_ray.pipeline import fragment as fragment_of
from storage.records import OwnerKey

__all__ = ["CompiledExecutor"]

_LOG = logging.getLogger("prme_ray.actors")

_WAITING = 2
"""Answers under way in one graph: a question waits for its own before the next one enters."""
_RESTS_S = 1.0
"""Seconds without a question after which a graph may make room for another group's."""


class _GraphFailed(Exception):
    """Between the lines below only: the question must be asked again by calls."""


@dataclass(slots=True)
class _Graph:
    """One group's compiled graph; whoever holds the lock may use it, build it or take it down."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    compiled: Any = None
    used: float = 0.0


class _InGraph:
    """Computes one question in a compiled graph, as an ``Away``."""

    def __init__(self, compiled: Any, plain: RayAway, timeout_s: float) -> None:
        self._compiled = compiled
        self._plain = plain
        self._timeout_s = timeout_s

    def fragments(self, flow: str) -> Sequence[Fragment]:
        return self._plain.fragments(flow) if flow else [CHANNELS, *self._plain.stages]

    def start(self, fragment: Fragment, work: Work) -> UnderWay:
        if fragment is not CHANNELS:
            return self._plain.start(fragment, work)
        view = work.resources[Place.VECTOR]
        try:
            under_way = self._compiled.execute(packed_question(question_of(CHANNELS, work)))
        except Exception as error:
            raise _GraphFailed from error

        def wait() -> Outcome:
            vector, *answers = self._read(under_way)
            embedding = np.frombuffer(vector, np.float32) if vector else None
            found = zip(CHANNEL_PLACES, answers, strict=True)
            return merged(
                [
                    Outcome({"embedding": embedding}),
                    *(outcome_of(answered, view, fragment_of(place)) for place, answered in found),
                ]
            )

        return UnderWay(wait)

    def _read(self, under_way: list[Any]) -> list[bytes]:
        """Return all results; all are read even if one is an error, or the next question would wait for them."""
        results: list[bytes] = []
        raised: RayTaskError | None = None
        for one in under_way:
            try:
                results.append(ray.get(one, timeout=self._timeout_s))
            except RayTaskError as error:
                raised = raised or error
            except Exception as error:
                raise _GraphFailed from error
        if raised is not None:
            raise _GraphFailed from raised
        return results


class CompiledExecutor:
    """Runs the flow here and its channels in a compiled graph, one a shard group.

    Args:
        handles: The actors.
        away: Computes fragments by calls.
    """

    def __init__(self, handles: Handles, away: RayAway) -> None:
        self._handles = handles
        self._plain = away
        self._by_calls = RayExecutor(away)
        self._idle_s = handles.deployment.cluster.compiled_idle_s
        self._most = handles.deployment.cluster.compiled_graphs
        self._graphs: dict[int, _Graph] = {}
        self._closing = threading.Event()
        self.executions = 0
        """Questions answered by a compiled graph."""
        self._watch = threading.Thread(target=self._take_down_idle, name="prme-ray-compiled", daemon=True)
        self._watch.start()

    def run(
        self, given: dict[str, Any], *, view: Any, resources: Mapping[Place, Any], disabled: Collection[str] = ()
    ) -> Run:
        """Return the values of every step; see :class:`~prme_ray.executors.on_ray.RayExecutor`."""
        usual = bool(view.owner_seq) and not disabled and not given["failures"] and "embedding" not in given
        graph = self._free_graph(owner_of(given)) if usual else None
        if graph is not None:
            try:
                away = _InGraph(graph.compiled, self._plain, self._handles.timeout_s)
                run = run_flow(Work("", dict(given), dict.fromkeys(Place, view) | dict(resources), disabled, away))
                self.executions += 1
            except _GraphFailed as error:
                # Calls wait for the return of an actor that died, and tell which step raised.
                if not isinstance(error.__cause__, RayTaskError):
                    _LOG.warning("a compiled graph failed (%s); it is rebuilt", type(error.__cause__).__name__)
                    self._handles.recoveries += 1
                    _take_down(graph)
            else:
                return run
            finally:
                graph.used = time.monotonic()
                graph.lock.release()
            given["failures"].clear()
        return self._by_calls.run(given, view=view, resources=resources, disabled=disabled)

    def close(self) -> None:
        """Take every graph down. Repeatable."""
        self._closing.set()
        self._watch.join()
        for graph in list(self._graphs.values()):
            with graph.lock:
                _take_down(graph)

    def _free_graph(self, owner: OwnerKey) -> _Graph | None:
        """Return the owner's graph, its lock taken; ``None`` while it is not built or in use."""
        group = self._handles.group_of(owner)
        graph = self._graphs.setdefault(group, _Graph())
        if not graph.lock.acquire(blocking=False):
            return None
        if graph.compiled is not None and not self._closing.is_set():
            return graph
        if not self._has_room():
            graph.lock.release()
            return None
        # The builder frees the lock.
        threading.Thread(target=self._build, args=(graph, group), name="prme-ray-compile", daemon=True).start()
        return None

    def _has_room(self) -> bool:
        """Return whether another graph may be built; the one unused for longest makes room if it rests."""
        built = [one for one in list(self._graphs.values()) if one.compiled is not None]
        if len(built) < self._most:
            return True
        oldest = min(built, key=lambda one: one.used)
        if time.monotonic() - oldest.used < _RESTS_S or not oldest.lock.acquire(blocking=False):
            return False
        try:
            _take_down(oldest)
        finally:
            oldest.lock.release()
        return True

    def _build(self, graph: _Graph, group: int) -> None:
        try:
            if self._closing.is_set():
                return
            embedder = self._handles.embedder(group)
            channels = [self._handles.get(place.value, lambda: group) for place in CHANNEL_PLACES]
            with InputNode() as asked:
                vector = embedder.embed_question.bind(asked)
                found = [
                    actor.answer_near.bind(asked, vector) if place is Place.VECTOR else actor.answer.bind(asked)
                    for place, actor in zip(CHANNEL_PLACES, channels, strict=True)
                ]
                flow = MultiOutputNode([vector, *found])
            graph.compiled = flow.experimental_compile(
                _submit_timeout=self._handles.timeout_s, _max_inflight_executions=_WAITING
            )
            graph.used = time.monotonic()
        except Exception as error:
            # Questions go on by calls; the next one tries to build it again.
            _LOG.warning("no compiled graph for group %s: %s", group, type(error).__name__)
        finally:
            graph.lock.release()

    def _take_down_idle(self) -> None:
        while not self._closing.wait(self._idle_s / 4):
            for graph in list(self._graphs.values()):
                idle = time.monotonic() - graph.used > self._idle_s
                if graph.compiled is not None and idle and graph.lock.acquire(blocking=False):
                    try:
                        _take_down(graph)
                    finally:
                        graph.lock.release()


def _take_down(graph: _Graph) -> None:
    compiled, graph.compiled = graph.compiled, None
    if compiled is not None:
        compiled.teardown(kill_actors=False)
