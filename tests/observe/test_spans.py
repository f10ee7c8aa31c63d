"""Spans through the real exporter to a collector of this test, each in a process of its own.

OpenTelemetry allows one tracer provider a process, so a test in this one would decide for all others.
"""

import http.server
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from prme_ray.model.errors import InvalidSettings
from tests.architecture import ROOT

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def collector():
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    received = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    received.extend(scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.received = received
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def run(code, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


REQUEST = f"""
import json, time
from prme_ray.observe.spans import configure_tracing, request_span, trace_run
end = configure_tracing()
with request_span("POST", [(b"traceparent", b"{PARENT}"), (b"authorization", b"secret")]) as ended:
    begun = time.perf_counter()
    time.sleep(0.02)
    trace_run({{"vector": begun, "packed": begun + 0.01}}, {{"vector": 0.01, "packed": 0.01, "vector.away": 0.004}})
    ended("/v1/retrieve", 200)
end()
print(json.dumps(begun))
"""


def test_a_request_its_retrieval_and_its_steps_are_one_trace(collector):
    before = time.time_ns()
    run(REQUEST, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server_port}")
    spans = {span.name: span for span in collector.received}
    assert set(spans) == {"POST /v1/retrieve", "retrieve", "retrieve.vector", "retrieve.packed"}
    trace, parent = bytes.fromhex(PARENT.split("-")[1]), bytes.fromhex(PARENT.split("-")[2])
    assert {span.trace_id for span in collector.received} == {trace}
    request, whole, vector = spans["POST /v1/retrieve"], spans["retrieve"], spans["retrieve.vector"]
    assert request.parent_span_id == parent
    assert whole.parent_span_id == request.span_id
    assert vector.parent_span_id == whole.span_id
    # Within a microsecond: a perf_counter reading is a float of seconds.
    assert vector.end_time_unix_nano - vector.start_time_unix_nano == pytest.approx(10e6, abs=1e3)
    assert whole.end_time_unix_nano - whole.start_time_unix_nano == pytest.approx(20e6, abs=1e3)
    assert before < request.start_time_unix_nano <= whole.start_time_unix_nano
    found = {attribute.key: attribute.value for attribute in vector.attributes}
    assert found["prme.stage"].string_value == "vector"
    assert found["prme.away_ms"].double_value == 4.0
    assert b"secret" not in b"".join(span.SerializeToString() for span in collector.received)


def test_an_exception_marks_the_span_and_is_not_quoted(collector):
    code = """
import json
from prme_ray.observe.spans import configure_tracing, request_span
end = configure_tracing()
try:
    with request_span("POST", []) as ended:
        ended("/v1/store", 500)
        raise ValueError("a memory's text")
except ValueError:
    pass
end()
print(json.dumps(None))
"""
    run(code, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"http://127.0.0.1:{collector.server_port}/v1/traces")
    (span,) = collector.received
    assert span.status.code == span.status.STATUS_CODE_ERROR
    assert b"a memory's text" not in span.SerializeToString()


def test_the_host_s_provider_is_used_and_kept(collector):
    code = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prme_ray.observe.spans import configure_tracing, trace_run
kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
configure_tracing()()
trace_run({"rank": 1.0}, {"rank": 0.5}, attributes={"outcome": "results"})
print(json.dumps([span.name for span in kept.get_finished_spans()]))
"""
    found = run(code, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server_port}")
    assert found == ["retrieve.rank", "retrieve"]
    assert collector.received == []


OFF = """
import json, sys
from prme_ray.observe.spans import configure_tracing, request_span, trace_run
{prepare}
configure_tracing()()
with request_span("POST", [(b"traceparent", b"x")]) as ended:
    trace_run({{"rank": 1.0}}, {{"rank": 0.5}})
    ended("/v1/retrieve", 200)
print(json.dumps([name for name in sys.modules if name.startswith("opentelemetry")]))
"""


def test_without_a_collector_nothing_is_imported():
    assert run(OFF.format(prepare="")) == []


def test_the_api_alone_records_nothing():
    assert "opentelemetry.sdk" not in run(OFF.format(prepare="import opentelemetry.trace"))


def test_a_collector_without_the_extra_is_refused(monkeypatch):
    from prme_ray.observe.spans import configure_tracing

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(InvalidSettings, match=r"OTEL_EXPORTER_OTLP_ENDPOINT.*prme-ray\[otel\]"):
        configure_tracing()
