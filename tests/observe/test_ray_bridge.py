"""The same figures through a real Ray's own exporter, in a process of its own."""

import json
import os
import subprocess
import sys

from tests.architecture import ROOT

CODE = """
import json, time, urllib.request
import ray
from prometheus_client.parser import text_string_to_metric_families
from prme_ray.observe.catalog import METRICS
from prme_ray.observe.metrics import Meters
from prme_ray.observe.ray_bridge import RayBridge
from prme_ray.observe.registry import Registry

class Gate:
    in_progress, waiting = 3, 0

meters = Meters(Registry(METRICS))
bridge = RayBridge(meters.registry)
assert not bridge.forward()  # no Ray yet
ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
leave = meters.watch_gate(Gate())
meters.observe_request("/v1/store", 200, 0.004)
for seconds in (0.002, 0.3, 99.0):
    meters.observe_request("/v1/retrieve", 200, seconds)
bridge.forward()
leave()
meters.observe_request("/v1/retrieve", 200, 0.3)
bridge.forward()  # what was handed over is not counted twice
bridge.start()
bridge.start()
bridge.close()
url = f"http://127.0.0.1:{ray.nodes()[0]['MetricsExportPort']}/metrics"
until = time.monotonic() + 60
found = {}
while found.get("requests") != 4 and time.monotonic() < until:
    time.sleep(0.3)
    found = {"buckets": {}}
    try:
        text = urllib.request.urlopen(url, timeout=10).read().decode()
    except OSError:
        continue
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            if one.labels.get("route") == "/v1/retrieve" and one.name == "ray_prme_http_requests_total":
                found["requests"] = one.value
            if one.labels.get("route") == "/v1/retrieve" and one.name == "ray_prme_http_request_seconds_bucket":
                found["buckets"][one.labels["le"]] = one.value
            if one.name == "ray_prme_requests_in_progress":
                found["in_progress"] = one.value
ray.shutdown()
print(json.dumps(found))
"""


def test_ray_exports_what_was_observed_once():
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_metrics_report_interval_ms": "300"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["requests"] == 4
    assert found["in_progress"] == 0  # its source has left
    buckets = found["buckets"]
    assert [buckets[bound] for bound in ("0.001", "0.0025", "0.25", "0.5", "30.0", "+Inf")] == [0, 1, 1, 3, 3, 4]
