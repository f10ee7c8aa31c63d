"""Counters, gauges and histograms of one process, and their Prometheus text.

One registry feeds two readers: the text of ``GET /metrics`` and, on a cluster, Ray's own metrics
(:mod:`prme_ray.observe.ray_bridge`). Both take a snapshot; recording never waits for a reader longer
than a copy takes.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

__all__ = ["SOURCE_FAILURES", "Family", "Kind", "Metric", "Registry", "Series"]

_LOG = logging.getLogger("prme_ray.observe")
_MOST_SERIES = 500
_OTHER = "other"


class Kind(StrEnum):
    """Kind of a metric, by its name in Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """Declaration of a metric.

    Attributes:
        name: Name with its unit; counters end in ``_total``.
        kind: What it is.
        help: One sentence.
        labels: Names of its labels.
        buckets: Upper bounds of a histogram, ascending and positive; the last bucket has none.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


SOURCE_FAILURES = Metric(
    "prme_source_failures_total", Kind.COUNTER, "Stores and queues that raised while their state was read."
)
"""Every registry has this one: it tells of itself."""


class Series:
    """Values of one metric under one set of labels. Use it under the registry's lock."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value in the first bucket whose bound is not below it."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(frozen=True, slots=True)
class Family:
    """Snapshot of a metric: by label values, the value, or for a histogram (counts by bucket, sum)."""

    metric: Metric
    series: dict[tuple[str, ...], tuple[tuple[int, ...], float]]


class Registry:
    """Values of the declared metrics. Safe to use from many threads.

    Args:
        metrics: Declarations; :data:`SOURCE_FAILURES` is added.

    Attributes:
        metrics: All declarations, in the order of the exposition.
        lock: Held while values change; take it once around many :meth:`series` observations.
    """

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.metrics = (*metrics, SOURCE_FAILURES)
        self.lock = threading.Lock()
        self._by_name = {metric.name: metric for metric in self.metrics}
        self._values: dict[str, dict[tuple[str, ...], Series]] = {name: {} for name in self._by_name}
        self._gauges = [metric.name for metric in self.metrics if metric.kind is Kind.GAUGE]
        self._reading = threading.Lock()
        self._sources: list[Callable[[], None]] = []

    def series(self, name: str, *labels: str) -> Series:
        """Return a series, made when new. Hold :attr:`lock`.

        Labels are words of the program and few. A metric that has 500 series all the same puts the rest
        under ``other``, so that a mistake cannot fill the memory.
        """
        found = self._values[name]
        series = found.get(labels)
        if series is None:
            metric = self._by_name[name]
            if len(labels) != len(metric.labels):
                raise ValueError(f"{name} has labels {metric.labels}, {len(labels)} were given")
            if len(found) >= _MOST_SERIES:
                labels = (_OTHER,) * len(labels)
            series = found.setdefault(labels, Series(metric.buckets))
        return series

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Raise a counter or gauge."""
        with self.lock:
            self.series(name, *labels).total += amount

    def watch(self, source: Callable[[], None]) -> Callable[[], None]:
        """Have ``source`` add its gauges whenever the registry is read; the function returned ends that.

        Gauges are zero before the sources are asked, so several stores of a process add up.
        """
        with self._reading:
            self._sources.append(source)

        def unwatch() -> None:
            with self._reading:
                if source in self._sources:
                    self._sources.remove(source)

        return unwatch

    def collect(self, *, ask: bool = True) -> list[Family]:
        """Return a snapshot of every metric that has a value.

        Args:
            ask: Ask the sources first; else gauges are as they were when last asked.
        """
        with self._reading:
            if ask:
                with self.lock:
                    for name in self._gauges:
                        self._values[name].clear()
                for source in self._sources:
                    self._ask(source)
            with self.lock:
                return [
                    Family(metric, {labels: (tuple(one.counts), one.total) for labels, one in found.items()})
                    for metric in self.metrics
                    if (found := self._values[metric.name])
                ]

    def text(self) -> bytes:
        """Return the Prometheus text exposition, version 0.0.4."""
        lines: list[str] = []
        for family in self.collect():
            metric = family.metric
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
            for labels, (counts, total) in sorted(family.series.items()):
                pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(metric.labels, labels, strict=True)]
                if metric.kind is not Kind.HISTOGRAM:
                    lines.append(_line(metric.name, pairs, total))
                    continue
                bounds = [*(repr(bound) for bound in metric.buckets), "+Inf"]
                for bound, count in zip(bounds, accumulate(counts), strict=True):
                    lines.append(_line(f"{metric.name}_bucket", [*pairs, f'le="{bound}"'], count))
                lines.append(_line(f"{metric.name}_sum", pairs, total))
                lines.append(_line(f"{metric.name}_count", pairs, sum(counts)))
        return ("\n".join(lines) + "\n").encode()

    def _ask(self, source: Callable[[], None]) -> None:
        # One store that is closed or busy must not hide what all others say.
        try:
            source()
        except Exception as error:
            _LOG.warning("a source of metrics failed: %s", type(error).__name__)
            self.add(SOURCE_FAILURES.name, 1)


def _line(name: str, pairs: list[str], value: float) -> str:
    return f"{name}{{{','.join(pairs)}}} {value!r}" if pairs else f"{name} {value!r}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
