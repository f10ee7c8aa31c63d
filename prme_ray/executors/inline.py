"""Runs the flow as plain calls in this process."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from prme_ray.model.protocols import CrossEncoder, Reformulator
from prme_ray.pipeline import FLOW, Each, Place, Step

__all__ = ["InlineExecutor", "Run"]

_LOG = logging.getLogger("prme_ray.retrieve")
BACKEND_ERROR = "backend_error"


@dataclass(frozen=True, slots=True)
class Run:
    """Everything one execution of the flow made, and how long each step took in seconds."""

    values: dict[str, Any]
    timings: dict[str, float]


class InlineExecutor:
    """Calls one step after the other."""

    def run(
        self,
        given: dict[str, Any],
        *,
        view: Any,
        encoder: Any,
        cross_encoder: CrossEncoder | None = None,
        reformulate: Reformulator | None = None,
        disabled: Collection[str] = (),
    ) -> Run:
        """Return the values of every step.

        Args:
            given: The values of ``pipeline.GIVEN``; ``failures`` is filled in.
            view: The owner's ``OwnerView``.
            encoder: The ``CachedEncoder``.
            cross_encoder: Needed where ``settings.rerank`` is on.
            reformulate: Needed where ``settings.reformulation`` is on.
            disabled: Channels that are not called; they count as empty.
        """
        values = dict(given)
        timings: dict[str, float] = {}
        resources = dict.fromkeys(Place, view)
        resources |= {Place.EMBEDDER: encoder, Place.RERANKER: cross_encoder, Place.REFORMULATOR: reformulate}
        for step in FLOW:
            started = time.perf_counter()
            if isinstance(step, Each):
                values[step.name] = [_run_item(step, item, values, resources, disabled) for item in values[step.items]]
            else:
                values[step.name] = _call_or_empty(step, values, resources, disabled)
            timings[step.name] = time.perf_counter() - started
        return Run(values, timings)


def _call_or_empty(step: Step, values: dict[str, Any], resources: dict[Place, Any], disabled: Collection[str]) -> Any:
    """Return a step's value; that of a channel that fails is empty, and the response will name it (RFC §4.2)."""
    if step.channel is None or step.empty is None:
        return _call(step, values, resources, disabled)
    try:
        return _call(step, values, resources, disabled)
    except Exception as error:
        _LOG.warning("channel %s failed in step %s: %s", step.channel, step.name, _where(error))
        values["failures"][step.channel] = BACKEND_ERROR
        return step.empty()


def _run_item(
    each: Each, item: Any, outer: dict[str, Any], resources: dict[Place, Any], disabled: Collection[str]
) -> Any:
    """Return what one item's run makes, or the exception that ended it."""
    values = {**outer, each.item: item}
    for step in each.steps:
        try:
            values[step.name] = _call(step, values, resources, disabled)
        except Exception as error:
            _LOG.warning("one of %s failed in step %s: %s", each.name, step.name, _where(error))
            return error
    return values[each.result]


def _call(step: Step, values: dict[str, Any], resources: dict[Place, Any], disabled: Collection[str]) -> Any:
    if step.empty is not None and (step.channel in disabled or step.channel in values["failures"]):
        return step.empty()
    arguments = [values[name] for name in step.inputs]
    return step.run(*arguments) if step.place is Place.TAIL else step.run(resources[step.place], *arguments)


def _where(error: Exception) -> str:
    """Return an exception's kind and where it was raised; what it says may quote the question."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
