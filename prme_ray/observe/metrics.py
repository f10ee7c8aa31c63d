"""What is counted, and when: the calls that the service and the library make."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from prme_ray.observe.catalog import METRICS
from prme_ray.observe.registry import Registry

if TYPE_CHECKING:
    from prme_ray.answer import Answer
    from prme_ray.health import Health

__all__ = [
    "METERS",
    "CountsTexts",
    "HasPlaces",
    "Meters",
    "metrics_text",
    "observe_answer",
    "observe_recovery",
    "observe_request",
    "watch_encoder",
    "watch_gate",
    "watch_health",
]

_AWAY = ".away"


class CountsTexts(Protocol):
    """What :meth:`Meters.watch_encoder` reads: texts answered from the cache, and sent, since the start."""

    hits: int
    misses: int


class HasPlaces(Protocol):
    """What :meth:`Meters.watch_gate` reads: requests under way, and waiting for their turn."""

    @property
    def in_progress(self) -> int:
        """Requests that hold a place."""
        ...

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        ...


class Meters:
    """Writes into a registry of :data:`~prme_ray.observe.catalog.METRICS`."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """Count an HTTP request.

        Args:
            route: Template of the route, never the path: a path may hold ids.
            status: HTTP status.
            seconds: Time it took.
        """
        registry = self.registry
        with registry.lock:
            registry.series("prme_http_requests_total", route, str(status)).total += 1
            registry.series("prme_http_request_seconds", route).observe(seconds)

    def observe_answer(self, answer: Answer) -> None:
        """Count a retrieval: its time and that of its steps, candidates, exclusions and failed channels.

        Costs about as much as recording fifty numbers, because that is what it does; nothing is built.
        """
        metadata, registry = answer.metadata, self.registry
        channels = _channels()
        left_out = Counter(answer.bundle.excluded.values())
        with registry.lock:
            for name, milliseconds in metadata.timings_ms.items():
                seconds = milliseconds / 1e3
                if name == "total":
                    registry.series("prme_retrieval_seconds", str(metadata.outcome)).observe(seconds)
                    continue
                place = "here"
                if name.endswith(_AWAY):
                    name, place = name.removesuffix(_AWAY), "away"  # noqa: PLW2901
                registry.series("prme_stage_seconds", name, channels.get(name, ""), place).observe(seconds)
            for channel, count in metadata.candidates_generated.items():
                registry.series("prme_candidates", channel).observe(count)
            for reason, count in metadata.exclusion_counts.items():
                registry.series("prme_exclusions_total", _word(reason)).total += count
            for reason, count in left_out.items():
                registry.series("prme_exclusions_total", reason).total += count
            for channel, reason in metadata.backend_failures.items():
                registry.series("prme_channel_failures_total", channel, _word(reason)).total += 1

    def observe_recovery(self, what: str, count: int = 1) -> None:
        """Count repairs: ``actor`` for a lost actor that was replaced, ``retry`` for a repeated call."""
        self.registry.add("prme_recoveries_total", count, what)

    def watch_health(self, read: Callable[[], Health]) -> Callable[[], None]:
        """Read a store's health (``memory.health``) whenever metrics are read; returns what ends that."""
        evictions, recoveries, lost = _Rise(), _Rise(), _Rise()

        def source() -> None:
            health, add = read(), self.registry.add
            add("prme_resident_bytes", health.resident_bytes)
            add("prme_evictions_total", evictions.since(health.evictions))
            add("prme_unhealthy_shards", sum(bool(shard.disagreements) for shard in health.shards))
            add("prme_projection_lag_entries", sum(shard.projector.get("lag", 0) for shard in health.shards))
            add("prme_writes_waiting", sum(shard.committer.get("waiting", 0) for shard in health.shards))
            coordinator = health.coordinator or {}
            waiting = sum(shard.committer.get("operations_waiting", 0) for shard in health.shards)
            add("prme_records_waiting", waiting + coordinator.get("records_waiting", 0))
            gone = sum(shard.committer.get("operations_lost", 0) for shard in health.shards)
            add("prme_records_lost_total", lost.since(gone + coordinator.get("records_lost", 0)))
            add("prme_recoveries_total", recoveries.since(coordinator.get("recoveries", 0)), "actor")

        return self.registry.watch(source)

    def watch_encoder(self, encoder: CountsTexts) -> Callable[[], None]:
        """Count the hits and misses of an encoder's cache; returns what ends that."""
        hits, misses = _Rise(), _Rise()

        def source() -> None:
            self.registry.add("prme_encoder_cache_hits_total", hits.since(encoder.hits))
            self.registry.add("prme_encoder_cache_misses_total", misses.since(encoder.misses))

        return self.registry.watch(source)

    def watch_gate(self, gate: HasPlaces) -> Callable[[], None]:
        """Show how many requests are under way and wait; returns what ends that."""

        def source() -> None:
            self.registry.add("prme_requests_in_progress", gate.in_progress)
            self.registry.add("prme_requests_waiting", gate.waiting)

        return self.registry.watch(source)

    def metrics_text(self) -> bytes:
        """Return the Prometheus text of this process; reads every watched store, so call it in a thread."""
        return self.registry.text()


class _Rise:
    """By how much a running total rose since it was last seen; one that fell belongs to a restarted process."""

    def __init__(self) -> None:
        self._seen = 0

    def since(self, total: int) -> int:
        rise = total - self._seen if total >= self._seen else total
        self._seen = total
        return rise


@functools.cache
def _channels() -> dict[str, str]:
    """Return step to channel. An answer exists, so the flow is loaded already."""
    from prme_ray.pipeline import FLOW, Step

    return {step.name: str(step.channel) for step in FLOW if isinstance(step, Step) and step.channel is not None}


def _word(reason: str) -> str:
    """Return a reason without the numbers it may end in: ``unverified_below_threshold:0.20<=0.30``."""
    word, _, detail = reason.partition(":")
    return reason if detail.isidentifier() else word


METERS = Meters(Registry(METRICS))
"""The meters of this process."""

observe_request = METERS.observe_request
observe_answer = METERS.observe_answer
observe_recovery = METERS.observe_recovery
watch_health = METERS.watch_health
watch_encoder = METERS.watch_encoder
watch_gate = METERS.watch_gate
metrics_text = METERS.metrics_text
