"""What every executor does with the declared flow: step after step, failures of channels noted.

An executor may have parts of the flow computed *away*, in other processes: it is told of a fragment
(steps that belong together) as soon as its inputs are known, and asked for its values when a step is
reached. Everything else is called here.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from prme_ray.pipeline import FLOW, Each, Fragment, Place, Step

__all__ = ["BACKEND_ERROR", "Away", "Executor", "Outcome", "Run", "UnderWay", "Work", "call_or_empty", "run_flow"]

_LOG = logging.getLogger("prme_ray.retrieve")
BACKEND_ERROR = "backend_error"


@dataclass(frozen=True, slots=True)
class Run:
    """Everything one execution of the flow made, and how long each step took in seconds.

    Attributes:
        values: Result of every step, and what was given.
        timings: Seconds this process spent on a step, or waited for it; for a step computed away also
            ``<step>.away``, the seconds spent there.
        started: Reading of ``time.perf_counter`` at the start of each step.
    """

    values: dict[str, Any]
    timings: dict[str, float]
    started: dict[str, float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the steps of one fragment made: values, failed channels, seconds by step."""

    values: Mapping[str, Any]
    failures: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


def _nothing() -> None:
    """Leave what needs no leaving."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A fragment that is being computed; exactly one of the two is called.

    Attributes:
        wait: Waits for the outcome.
        leave: Called where nobody will wait, because the work has failed elsewhere.
    """

    wait: Callable[[], Outcome]
    leave: Callable[[], None] = _nothing


class Away(Protocol):
    """Computes fragments of the flow in other processes."""

    def fragments(self, flow: str) -> Sequence[Fragment]:
        """Return what is computed away: of the question's flow (``""``) or of an ``Each`` by name."""
        ...

    def start(self, fragment: Fragment, work: Work) -> UnderWay:
        """Start a fragment.

        Raises:
            PrmeRayError: when waiting; a lost process is no failure of a channel.
        """
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """One execution under way.

    Attributes:
        flow: ``""`` for the question, or the name of an ``Each``.
        values: What has been made; ``failures`` is filled in.
        resources: What a step gets, by place.
        disabled: Channels that are not called.
        away: Where fragments are computed; ``None``: nothing is computed away.
    """

    flow: str
    values: dict[str, Any]
    resources: Mapping[Place, Any]
    disabled: Collection[str]
    away: Away | None = None


class Executor(Protocol):
    """Runs the declared flow."""

    def run(
        self, given: dict[str, Any], *, view: Any, resources: Mapping[Place, Any], disabled: Collection[str] = ()
    ) -> Run:
        """Return the values of every step.

        Args:
            given: The values of ``pipeline.GIVEN``; ``failures`` is filled in.
            view: The owner's view; it serves every place that ``resources`` does not.
            resources: Encoder, cross-encoder and rewriter of questions.
            disabled: Channels that are not called; they count as empty.
        """
        ...


def run_flow(work: Work) -> Run:
    """Return the values of every step of the question's flow."""
    timings: dict[str, float] = {}
    started: dict[str, float] = {}
    values = work.values
    waiting = _fragments(work)
    under_way: dict[str, UnderWay] = {}
    with _leaving(under_way):
        for step in FLOW:
            started[step.name] = begun = time.perf_counter()
            _start_ready(waiting, under_way, work)
            if isinstance(step, Each):
                values[step.name] = [_run_item(step, item, work) for item in values[step.items]]
            elif step.name in under_way:
                _take(under_way, step.name, work, timings)
            elif step.name not in values:
                values[step.name] = call_or_empty(step, values, work.resources, work.disabled)
            timings[step.name] = time.perf_counter() - begun
    # Fragments finish in any order; what the answer says of failures must not depend on it.
    values["failures"] = dict(sorted(values["failures"].items()))
    return Run(values, timings, started)


@contextmanager
def _leaving(under_way: Mapping[str, UnderWay]) -> Iterator[None]:
    """Leave what is still under way when the work fails."""
    try:
        yield
    except BaseException:
        for one in {id(one): one for one in under_way.values()}.values():
            one.leave()
        raise


def _fragments(work: Work) -> list[Fragment]:
    return [] if work.away is None else list(work.away.fragments(work.flow))


def _start_ready(waiting: list[Fragment], under_way: dict[str, UnderWay], work: Work) -> None:
    if work.away is None or not waiting:
        return
    for fragment in [one for one in waiting if all(name in work.values for name in one.inputs)]:
        waiting.remove(fragment)
        started = work.away.start(fragment, work)
        under_way.update(dict.fromkeys([step.name for step in fragment.steps], started))


def _take(under_way: dict[str, UnderWay], name: str, work: Work, timings: dict[str, float] | None = None) -> None:
    """Wait for the fragment that a step belongs to and add all it made."""
    taken = under_way[name]
    for other in [other for other, one in under_way.items() if one is taken]:
        del under_way[other]
    outcome = taken.wait()
    work.values.update(outcome.values)
    work.values["failures"].update(outcome.failures)
    if timings is not None:
        timings.update({f"{step}.away": seconds for step, seconds in outcome.seconds.items()})


def _run_item(each: Each, item: Any, outer: Work) -> Any:
    """Return what one item's run makes, or the exception that ended it."""
    work = Work(each.name, {**outer.values, each.item: item}, outer.resources, outer.disabled, outer.away)
    values = work.values
    waiting = _fragments(work)
    under_way: dict[str, UnderWay] = {}
    for step in each.steps:
        try:
            with _leaving(under_way):
                _start_ready(waiting, under_way, work)
                if step.name in under_way:
                    _take(under_way, step.name, work)
                elif step.name not in values:
                    values[step.name] = call(step, values, work.resources, work.disabled)
        except Exception as error:
            _LOG.warning("one of %s failed in step %s: %s", each.name, step.name, _where(error))
            return error
    return values[each.result]


def call_or_empty(step: Step, values: dict[str, Any], resources: Mapping[Place, Any], disabled: Collection[str]) -> Any:
    """Return a step's value; that of a channel that fails is empty, and the response will name it (RFC §4.2)."""
    if step.channel is None or step.empty is None:
        return call(step, values, resources, disabled)
    try:
        return call(step, values, resources, disabled)
    except Exception as error:
        _LOG.warning("channel %s failed in step %s: %s", step.channel, step.name, _where(error))
        values["failures"][step.channel] = BACKEND_ERROR
        return step.empty()


def call(step: Step, values: dict[str, Any], resources: Mapping[Place, Any], disabled: Collection[str]) -> Any:
    """Return a step's value, or what a channel that is off or has failed gives."""
    if step.empty is not None and (step.channel in disabled or step.channel in values["failures"]):
        return step.empty()
    arguments = [values[name] for name in step.inputs]
    return step.run(*arguments) if step.place is Place.TAIL else step.run(resources[step.place], *arguments)


def _where(error: Exception) -> str:
    """Return an exception's kind and where it was raised; what it says may quote the question."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}" if frames else type(error).__name__
