"""Hands a process's metrics to Ray, whose agents export those of every process of a cluster.

Ray takes one observation at a time, 2 to 3 microseconds each, so they are handed over by a thread and
not by the request. Ray puts ``ray_`` before every name. It keeps histograms as counts by bucket, and
computes their sums from the middles of buckets; that is all this bridge gives it.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from prme_ray.observe.metrics import METERS
from prme_ray.observe.registry import Kind, Metric, Registry

__all__ = ["RayBridge", "forward_to_ray"]

_EVERY_S = 2.0
_ASK_EVERY = 8
"""Sources are asked at every eighth pass: a store's health costs some 30 ms."""
_BREATH = 50
"""Observations handed over before other threads get a turn."""

_Key = tuple[str, tuple[str, ...]]


class RayBridge:
    """Forwards what has changed since the last pass, while Ray is initialised in this process.

    Args:
        registry: What is forwarded.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._metrics: dict[str, Any] = {}
        self._counts: dict[_Key, tuple[int, ...]] = {}
        self._totals: dict[_Key, float] = {}
        self._handed = 0
        self._pass = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Forward every two seconds from a thread; starting twice is harmless."""
        with self._pass:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="prme-ray-metrics", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Forward once more and stop the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def forward(self, *, ask: bool = True) -> bool:
        """Forward what has changed; return whether there was a Ray to take it.

        Args:
            ask: Ask the sources of gauges first.
        """
        ray = sys.modules.get("ray")
        if ray is None or not ray.is_initialized():
            return False
        with self._pass:
            gauges: set[_Key] = set()
            for family in self._registry.collect(ask=ask):
                metric = family.metric
                for labels, (counts, total) in family.series.items():
                    if metric.kind is Kind.HISTOGRAM:
                        self._observe(metric, labels, counts)
                    elif metric.kind is Kind.COUNTER:
                        self._raise(metric, labels, total)
                    else:
                        gauges.add((metric.name, labels))
                        self._set(metric, labels, total)
            self._zero(gauges)
        return True

    def _work(self) -> None:
        passes = 0
        while not self._stop.wait(_EVERY_S):
            self.forward(ask=passes % _ASK_EVERY == 0)
            passes += 1
        self.forward()

    def _observe(self, metric: Metric, labels: tuple[str, ...], counts: tuple[int, ...]) -> None:
        key = (metric.name, labels)
        before = self._counts.get(key, (0,) * len(counts))
        tags = dict(zip(metric.labels, labels, strict=True))
        lower = 0.0
        for bound, now, then in zip((*metric.buckets, 2 * metric.buckets[-1]), counts, before, strict=True):
            for _ in range(now - then):
                self._metric(metric).observe((lower + bound) / 2, tags)
                self._handed += 1
                if self._handed % _BREATH == 0:
                    time.sleep(0)
            lower = bound
        self._counts[key] = counts

    def _raise(self, metric: Metric, labels: tuple[str, ...], total: float) -> None:
        key = (metric.name, labels)
        rise = total - self._totals.get(key, 0.0)
        if rise > 0:
            self._metric(metric).inc(rise, dict(zip(metric.labels, labels, strict=True)))
            self._totals[key] = total

    def _set(self, metric: Metric, labels: tuple[str, ...], value: float) -> None:
        self._metric(metric).set(value, dict(zip(metric.labels, labels, strict=True)))
        self._totals[metric.name, labels] = value

    def _zero(self, seen: set[_Key]) -> None:
        """Set gauges to zero that nobody answers for any more: Ray would show their last value for ever."""
        for metric in self._registry.metrics:
            if metric.kind is Kind.GAUGE:
                for key in [key for key in self._totals if key[0] == metric.name and key not in seen]:
                    self._metric(metric).set(0, dict(zip(metric.labels, key[1], strict=True)))
                    del self._totals[key]

    def _metric(self, metric: Metric) -> Any:
        found = self._metrics.get(metric.name)
        if found is None:
            from ray.util import metrics

            if metric.kind is Kind.HISTOGRAM:
                found = metrics.Histogram(metric.name, metric.help, list(metric.buckets), metric.labels)
            else:
                kind = metrics.Counter if metric.kind is Kind.COUNTER else metrics.Gauge
                found = kind(metric.name, metric.help, metric.labels)
            self._metrics[metric.name] = found
        return found


_BRIDGE = RayBridge(METERS.registry)


def forward_to_ray() -> RayBridge:
    """Forward this process's metrics to Ray from now on; calling it again is harmless."""
    _BRIDGE.start()
    return _BRIDGE
