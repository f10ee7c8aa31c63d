"""What operators see: metrics, logs without memory text, spans.

===================== ==========================================================================
``metrics_text``      Body of ``GET /metrics``.
``observe_request``   After every HTTP request: route template, status, seconds.
``observe_answer``    After every retrieval.
``observe_recovery``  After a retry or a repair.
``watch_health``      Once a store: lag, queues, memory, recoveries are read when metrics are.
``watch_encoder``     Once an encoder: hits and misses of its cache.
``watch_gate``        Once a service: requests in progress and waiting.
``forward_to_ray``    Once a process that runs in a Ray cluster: the same metrics through Ray's agents.
``configure_logging`` Once a process: JSON lines.
``configure_tracing`` Once a process: spans to the collector that the environment names.
``request_span``      Around every HTTP request.
``trace_run``         After every executed flow.
===================== ==========================================================================
"""

from prme_ray.observe.logs import configure_logging
from prme_ray.observe.metrics import (
    metrics_text,
    observe_answer,
    observe_recovery,
    observe_request,
    watch_encoder,
    watch_gate,
    watch_health,
)
from prme_ray.observe.ray_bridge import forward_to_ray
from prme_ray.observe.spans import configure_tracing, request_span, trace_run

__all__ = [
    "configure_logging",
    "configure_tracing",
    "forward_to_ray",
    "metrics_text",
    "observe_answer",
    "observe_recovery",
    "observe_request",
    "request_span",
    "trace_run",
    "watch_encoder",
    "watch_gate",
    "watch_health",
]
