"""OpenTelemetry spans: one per request, one per retrieval, one per step of the flow.

They exist where the host has set a tracer provider, or where ``OTEL_EXPORTER_OTLP_ENDPOINT`` names a
collector and :func:`configure_tracing` was called. Elsewhere nothing is imported and a request pays for a
look-up. Spans of steps are made afterwards, from the times that are taken anyway.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from prme_ray.model.errors import InvalidSettings

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

__all__ = ["configure_tracing", "request_span", "trace_run"]

Ended = Callable[[str, int], None]
"""Told the template of the route and the status before the span ends."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_SERVER_ERROR = 500


def _ignore(route: str, status: int) -> None:
    return None


_OFF: AbstractContextManager[Ended] = nullcontext(_ignore)


def configure_tracing() -> Callable[[], None]:
    """Export spans to the collector that ``OTEL_EXPORTER_OTLP_ENDPOINT`` names, if it does.

    A tracer provider that the host has set stays. All other ``OTEL_`` variables have their usual meaning.

    Returns:
        What sends the last spans and ends the export.

    Raises:
        InvalidSettings: a collector is named and the extra ``otel`` is not installed.
    """
    endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
    if endpoint is None or _tracer() is not None:
        return _nothing
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise InvalidSettings(
            argument=_ENDPOINTS[0], given=endpoint, allowed="it after `pip install prme-ray[otel]`, or unset it"
        ) from error
    service = os.environ.get("OTEL_SERVICE_NAME", "prme-ray")
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def request_span(method: str, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[Ended]:
    """Make a request's span the current one; it continues the trace of a W3C ``traceparent`` header.

    Args:
        method: HTTP method.
        headers: Headers as ASGI gives them: lower-case names, bytes.

    Returns:
        A context manager; call what it gives with route template and status before it ends.
    """
    tracer = _tracer()
    return _OFF if tracer is None else _request_span(tracer, method, headers)


def trace_run(
    started: Mapping[str, float],
    seconds: Mapping[str, float],
    *,
    name: str = "retrieve",
    attributes: Mapping[str, str | int | float | bool] | None = None,
) -> None:
    """Make spans of a run that has ended, below the current span: one for all of it, one a step.

    Args:
        started: Reading of ``time.perf_counter`` at the start of each step, in this process.
        seconds: Time of each step. A name without a start, ``<step>.away``, becomes an attribute of the
            step's span: the time spent on an actor.
        name: Name of the span around the steps.
        attributes: Attributes of that span; never text of a memory or a question.
    """
    tracer = _tracer()
    if tracer is None or not started:
        return
    from opentelemetry import trace

    # The clock that steps are timed by has no epoch; both are read now, and differ by a constant.
    epoch = time.time_ns() - time.perf_counter_ns()

    def at(reading: float) -> int:
        return epoch + int(reading * 1e9)

    first = min(started.values())
    last = max(begun + seconds.get(step, 0.0) for step, begun in started.items())
    whole = tracer.start_span(name, start_time=at(first), attributes=dict(attributes or {}))
    if whole.is_recording():
        context = trace.set_span_in_context(whole)
        for step, begun in started.items():
            away = seconds.get(f"{step}.away")
            found: dict[str, str | float] = {"prme.stage": step}
            if away is not None:
                found["prme.away_ms"] = away * 1e3
            span = tracer.start_span(f"{name}.{step}", context, start_time=at(begun), attributes=found)
            span.end(at(begun + seconds.get(step, 0.0)))
    whole.end(at(last))


@contextmanager
def _request_span(tracer: Tracer, method: str, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Ended]:
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    names = (b"traceparent", b"tracestate")
    carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in headers if key in names}
    parent = TraceContextTextMapPropagator().extract(carrier)
    # What an exception says may quote a memory, so the span must not record it.
    with tracer.start_as_current_span(
        method, parent, SpanKind.SERVER, record_exception=False, set_status_on_exception=False
    ) as span:
        span.set_attribute("http.request.method", method)

        def ended(route: str, status: int) -> None:
            span.update_name(f"{method} {route}")
            span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", status)
            if status >= _SERVER_ERROR:
                span.set_status(Status(StatusCode.ERROR))

        yield ended


def _tracer() -> Tracer | None:
    """Return the tracer of the provider in force, or none: the API's own stand-in records nothing."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    tracer: Tracer = provider.get_tracer("prme_ray")
    return tracer


def _nothing() -> None:
    return None
