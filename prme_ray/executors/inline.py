"""Runs the flow as plain calls in this process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from prme_ray.executors.engine import Run, Work, run_flow
from prme_ray.pipeline import Place

__all__ = ["InlineExecutor"]


class InlineExecutor:
    """Calls one step after the other."""

    def run(
        self, given: dict[str, Any], *, view: Any, resources: Mapping[Place, Any], disabled: Collection[str] = ()
    ) -> Run:
        """Return the values of every step; see :class:`~prme_ray.executors.engine.Executor`."""
        return run_flow(Work("", dict(given), dict.fromkeys(Place, view) | dict(resources), disabled))
