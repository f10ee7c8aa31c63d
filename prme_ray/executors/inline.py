"""Runs the flow as plain calls in this process."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from prme_ray.pipeline import FLOW, Place, Step

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

    def run(self, given: dict[str, Any], *, view: Any, encoder: Any, disabled: Collection[str] = ()) -> Run:
        """Return the values of every step.

        Args:
            given: The values of ``pipeline.GIVEN``; ``failures`` is filled in.
            view: The owner's ``OwnerView``.
            encoder: The ``CachedEncoder``.
            disabled: Channels that are not called; they count as empty.
        """
        values = dict(given)
        timings: dict[str, float] = {}
        for step in FLOW:
            started = time.perf_counter()
            values[step.name] = self._call(step, values, view, encoder, disabled)
            timings[step.name] = time.perf_counter() - started
        return Run(values, timings)

    def _call(self, step: Step, values: dict[str, Any], view: Any, encoder: Any, disabled: Collection[str]) -> Any:
        arguments = [values[name] for name in step.inputs]
        if step.place is Place.EMBEDDER:
            arguments.insert(0, encoder)
        elif step.place is not Place.TAIL:
            arguments.insert(0, view)
        if step.channel is None or step.empty is None:
            return step.run(*arguments)
        failures: dict[str, str] = values["failures"]
        if step.channel in disabled or step.channel in failures:
            return step.empty()
        try:
            return step.run(*arguments)
        except Exception as error:
            # A channel that fails never fails the request (RFC §4.2): the response names it. What the
            # exception says may quote the question, so the log gets its kind and where it was raised.
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename}:{where.lineno}"
            _LOG.warning("channel %s failed in step %s: %s at %s", step.channel, step.name, type(error).__name__, place)
            failures[step.channel] = BACKEND_ERROR
            return step.empty()
