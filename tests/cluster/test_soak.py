"""More work than the service can do: it says so, and does not grow."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import httpx
import psutil
import pytest

from prme_ray import Client
from tests.cluster.serving import Serving, serving

_MINUTES = float(os.environ.get("PRME_TEST_SOAK_MINUTES", "10"))
_SETTLE = 0.2
"""Share of the run after which every cache, pool and thread is there."""
_GROWTH = 1.10
_CLIENTS = 96
"""The service works on 8 requests and lets 64 wait: the rest is refused, at every moment."""


@pytest.mark.slow
def test_memory_stays_flat_beyond_capacity(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as running:
        with Client(running.address) as client:
            client.store_many([f"Caroline: note {number} about the garden." for number in range(600)], owner="soak")
        load = _Overload(running, _CLIENTS)
        sizes: list[int] = []
        started = time.monotonic()
        while (passed := time.monotonic() - started) < _MINUTES * 60:
            time.sleep(min(5.0, _MINUTES))
            if passed > _SETTLE * _MINUTES * 60:
                sizes.append(_resident(running))
        load.stop()
        first, last = (sorted(part)[len(part) // 2] for part in (sizes[: len(sizes) // 4], sizes[-len(sizes) // 4 :]))
        print(
            f"{load.count(200)} answered, {load.count(503)} refused in {_MINUTES:g} minutes; "
            f"resident {first >> 20} MiB after the start, {last >> 20} MiB at the end"
        )
        assert load.statuses.keys() <= {200, 503}
        assert load.count(503) > 0
        assert load.count(200) > 0
        assert load.without_retry_after == 0
        assert last < first * _GROWTH


class _Overload:
    """Clients that ask without a pause."""

    def __init__(self, service: Serving, clients: int) -> None:
        self._address = service.address
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.statuses: dict[int, int] = {}
        self.without_retry_after = 0
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def count(self, status: int) -> int:
        return self.statuses.get(status, 0)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        with httpx.Client(base_url=self._address, timeout=120) as client:
            while not self._stop.is_set():
                answer = client.post("/v1/retrieve", json={"query": "What about the garden?", "owner": "soak"})
                with self._lock:
                    self.statuses[answer.status_code] = self.count(answer.status_code) + 1
                    refused = answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
                    self.without_retry_after += refused and "retry-after" not in answer.headers
                if refused:
                    time.sleep(0.05)


def _resident(service: Serving) -> int:
    """Return the bytes that the service's own processes hold: replica, actors, controller."""
    total = 0
    for child in psutil.Process(service.process.pid).children(recursive=True):
        try:
            if "ray::" in " ".join(child.cmdline()):
                total += child.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
