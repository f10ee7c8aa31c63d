"""The metrics of the product, declared once: the registry, Ray, the dashboard and the tests read this list.

No label ever names a tenant, an owner or anything a user wrote: labels are words of the program.
"""

from __future__ import annotations

from prme_ray.observe.registry import Kind, Metric

__all__ = ["METRICS"]

_FAST = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SLOW = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_COUNTS = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 150.0, 250.0, 500.0, 1000.0, 2500.0)

METRICS: tuple[Metric, ...] = (
    Metric("prme_http_requests_total", Kind.COUNTER, "HTTP requests answered.", ("route", "status")),
    Metric("prme_http_request_seconds", Kind.HISTOGRAM, "Time to answer an HTTP request.", ("route",), _SLOW),
    Metric("prme_retrieval_seconds", Kind.HISTOGRAM, "Time of a whole retrieval.", ("outcome",), _SLOW),
    Metric(
        "prme_stage_seconds",
        Kind.HISTOGRAM,
        "Time of one step of the flow; channel: what it searches, if anything; place: here, or away on an actor.",
        ("stage", "channel", "place"),
        _FAST,
    ),
    Metric("prme_candidates", Kind.HISTOGRAM, "Candidates a channel gave to one retrieval.", ("channel",), _COUNTS),
    Metric("prme_exclusions_total", Kind.COUNTER, "Memories found and left out of the context.", ("reason",)),
    Metric("prme_channel_failures_total", Kind.COUNTER, "Retrievals without one channel.", ("channel", "reason")),
    Metric("prme_encoder_cache_hits_total", Kind.COUNTER, "Texts whose vector was kept or already being computed."),
    Metric("prme_encoder_cache_misses_total", Kind.COUNTER, "Texts sent to the encoder."),
    Metric("prme_recoveries_total", Kind.COUNTER, "Repairs: lost actors looked up again, retried calls.", ("what",)),
    Metric("prme_records_lost_total", Kind.COUNTER, "Retrieval records given up; answers are unaffected."),
    Metric("prme_requests_in_progress", Kind.GAUGE, "Requests that hold a place."),
    Metric("prme_requests_waiting", Kind.GAUGE, "Requests that wait for a place."),
    Metric("prme_writes_waiting", Kind.GAUGE, "Writes that wait for a commit."),
    Metric("prme_records_waiting", Kind.GAUGE, "Retrieval records that wait for a commit."),
    Metric("prme_projection_lag_entries", Kind.GAUGE, "Log entries that the tables have yet to take."),
    Metric("prme_unhealthy_shards", Kind.GAUGE, "Shards whose log and channels disagree, or with a failed part."),
    Metric("prme_resident_bytes", Kind.GAUGE, "Memory held by owners' vectors, text indexes and graphs."),
    Metric("prme_evictions_total", Kind.COUNTER, "Owners dropped from memory to keep within the budget."),
)
"""In the order of the exposition."""
