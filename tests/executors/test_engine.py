"""Work that fails leaves nothing under way behind: others may be waiting for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from prme_ray.executors.engine import Outcome, UnderWay, Work, run_flow
from prme_ray.pipeline import Fragment, Place, fragment


class _Away:
    """Starts one fragment that no step before the failure asks for."""

    def __init__(self) -> None:
        self.left = 0
        self.waited = 0

    def fragments(self, flow: str) -> Sequence[Fragment]:
        return [Fragment(Place.EMBEDDER, fragment(Place.EMBEDDER, flow).steps, ())]

    def start(self, fragment: Fragment, work: Work) -> UnderWay:
        return UnderWay(self._wait, self._leave)

    def _wait(self) -> Outcome:
        self.waited += 1
        return Outcome({"embedding": None})

    def _leave(self) -> None:
        self.left += 1


def test_a_fragment_is_left_when_a_step_before_it_fails() -> None:
    away = _Away()
    with pytest.raises(KeyError, match="request"):  # the first step finds no request
        run_flow(Work("", {"failures": {}}, {}, (), away))
    assert (away.left, away.waited) == (1, 0)
