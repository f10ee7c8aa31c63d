"""A pure step in another process: its inputs pickled there, its value pickled back."""

from __future__ import annotations

import pickle
import time
from functools import lru_cache
from typing import Any

from prme_ray.executors.engine import Outcome
from prme_ray.pipeline import Step, tail_steps
from prme_ray.steps.values import Tools
from prme_ray.tokens import counter
from stages.line_cache import LineCache

__all__ = ["compute_stage", "packed_stage", "stage_outcome"]


@lru_cache(maxsize=4)
def _tools(tokenizer: str) -> Tools:
    # A token counter and its cache cannot travel; every process has its own.
    return Tools(counter(tokenizer), LineCache())


def packed_stage(step: Step, values: dict[str, Any]) -> bytes:
    """Return a step's name and inputs as bytes."""
    inputs = {name: values[name] for name in step.inputs if name != "tools"}
    tokenizer = values["settings"].packing.tokenizer
    return pickle.dumps((step.name, tokenizer, inputs), protocol=pickle.HIGHEST_PROTOCOL)


def compute_stage(asked: bytes) -> bytes:
    """Return what the step made of its inputs, and in how many seconds.

    Raises:
        Exception: the step's own.
    """
    name, tokenizer, inputs = pickle.loads(asked)
    step = tail_steps()[name]
    if "tools" in step.inputs:
        inputs["tools"] = _tools(tokenizer)
    started = time.perf_counter()
    made = step.run(*(inputs[needed] for needed in step.inputs))
    return pickle.dumps((made, time.perf_counter() - started), protocol=pickle.HIGHEST_PROTOCOL)


def stage_outcome(step: Step, answered: bytes) -> Outcome:
    """Return the step's value from :func:`compute_stage`."""
    made, seconds = pickle.loads(answered)
    return Outcome({step.name: made}, seconds={step.name: seconds})
