"""Suite ``ingress``: what Ray Serve's ways in cost, around an application that does nothing.

Every way is a process of its own, because Ray Serve reads its environment variables when it is
imported. The client is a bare socket with keep-alive: a client library would cost more than the fastest way.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

import numpy as np
from fastapi import FastAPI, Request, Response

from prme_ray.ingress import FASTEST

__all__ = ["WAYS", "print_ingress", "run_ingress"]

_CONNECTIONS = 8
_WARM_UP = 100
_CLOSED = 3
_LARGE = 300_000
_QUESTION = b'{"query": "What is the name of the cat that Caroline adopted?", "owner": "dana", "token_budget": 1024}'
_TIMEOUT_S = 300
_SPAN = 50

_HAPROXY = {"RAY_SERVE_ENABLE_HA_PROXY": "1"}
_ONE_LOOP = {"RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0"}
_BUFFERED_LOG = {name: value for name, value in FASTEST.items() if "LOG" in name}

WAYS: dict[str, dict[str, str]] = {
    "uvicorn alone": {},
    "proxy": {},
    "proxy, gRPC to replicas": {"RAY_SERVE_USE_GRPC_BY_DEFAULT": "1"},
    "proxy, throughput": {"RAY_SERVE_THROUGHPUT_OPTIMIZED": "1"},
    "haproxy": _HAPROXY,
    "haproxy, one loop": {**_HAPROXY, **_ONE_LOOP},
    "haproxy, buffered log": {**_HAPROXY, **_BUFFERED_LOG},
    "haproxy, one loop, buffered log": FASTEST,
    "haproxy, throughput": {**_HAPROXY, "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1"},
    "replica's own port": {**_HAPROXY, "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1"},
}
"""Environment of each way; ``FASTEST`` is the service's. The last goes past HAProxy, to the replica's own port."""


def run_ingress(*, requests: int, ways: list[str] | None = None) -> dict[str, Any]:
    """Return p50, p95 and requests/s of a small and a large answer, for every way in.

    Args:
        requests: Requests measured a way and answer, one after the other and again over 8 connections.
        ways: Keys of :data:`WAYS`; all when left out.

    Raises:
        ValueError: an unknown way.
        OSError: the process of a way failed; the message has the end of its output.
    """
    chosen = list(WAYS) if ways is None else ways
    unknown = sorted(set(chosen) - set(WAYS))
    if unknown:
        raise ValueError(f"ways={unknown} are not known: choose from {', '.join(WAYS)}")
    return {
        "requests": requests,
        "connections": _CONNECTIONS,
        "ways": {way: _measured(way, requests) for way in chosen},
    }


def print_ingress(report: dict[str, Any]) -> None:
    """Print the report as a table; times in milliseconds."""
    row = "{:32} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}"
    print(row.format("way", "small p50", "p95", "per s", "large p50", "p95", "per s"))
    for way, found in report["ways"].items():
        figures = [found[size][name] for size in ("small", "large") for name in ("p50_ms", "p95_ms", "per_second")]
        print(row.format(way, *(f"{figure:.2f}" for figure in figures)))


def _measured(way: str, requests: int) -> dict[str, Any]:
    # Ports that several users of one machine would otherwise share.
    first = _free_ports()
    ports = {
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(first + 1),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(first + 2),
        "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(first + 3),
        "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(first + _SPAN),
    }
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", **ports, **WAYS[way]}
    command = [sys.executable, "-m", __name__, way, str(requests), str(first)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        raise OSError(f"way {way!r} failed with status {done.returncode}: {done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def application() -> FastAPI:
    """Return the FastAPI application that is served: it reads the body and sends ready bytes."""
    app = FastAPI()
    answers = {"small": b'{"ok": true}', "large": json.dumps({"text": "x" * _LARGE}).encode()}

    @app.post("/{size}")
    async def answer(size: str, request: Request) -> Response:
        await request.body()
        return Response(answers[size], media_type="application/json")

    return app


def _serve_uvicorn(port: int) -> tuple[int, Callable[[], None]]:
    factory = "jobs.benchmark.ingress:application"
    command = [sys.executable, "-m", "uvicorn", "--factory", factory, "--port", str(port), "--log-level", "error"]
    child = subprocess.Popen(command)

    def stop() -> None:
        child.terminate()
        child.wait()

    return port, stop


def _serve_ray(port: int, way: str) -> tuple[int, Callable[[], None]]:
    import ray
    from ray import serve

    from jobs.benchmark.ingress import application

    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})

    class Ingress:
        pass

    deployment = serve.deployment(max_ongoing_requests=64)(serve.ingress(application)(Ingress))
    serve.run(deployment.bind())
    if way == "replica's own port":
        port = int(os.environ["RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT"])
    # Ending the cluster is enough; `serve.shutdown` would first drain the replica for 30 seconds.
    return port, ray.shutdown


def _main(way: str, requests: int, port: int) -> None:
    port, stop = _serve_uvicorn(port) if way == "uvicorn alone" else _serve_ray(port, way)
    try:
        _await(port)
        report = {size: _load(port, size, requests) for size in ("small", "large")}
    finally:
        stop()
    print(json.dumps(report))


def _load(port: int, size: str, requests: int) -> dict[str, float]:
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        _ask(port, size, _WARM_UP)
        alone = np.array(_ask(port, size, requests)) * 1e3
        share = max(1, requests // _CONNECTIONS)
        started = time.perf_counter()
        list(pool.map(lambda _: _ask(port, size, share), range(_CONNECTIONS)))
        rate = share * _CONNECTIONS / (time.perf_counter() - started)
    return {
        "p50_ms": float(np.percentile(alone, 50)),
        "p95_ms": float(np.percentile(alone, 95)),
        "per_second": rate,
    }


def _ask(port: int, size: str, count: int) -> list[float]:
    """Return the seconds of ``count`` requests, one after the other over one connection."""
    head = f"POST /{size} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    message = f"{head}Content-Length: {len(_QUESTION)}\r\n\r\n".encode() + _QUESTION
    taken: list[float] = []
    closed = 0
    while len(taken) < count:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=30) as connection,
            connection.makefile("rb") as reader,
        ):
            while len(taken) < count:
                started = time.perf_counter()
                connection.sendall(message)
                if not (status := reader.readline()):
                    break  # HAProxy closes idle connections when it reloads its configuration
                _read_answer(reader, status)
                taken.append(time.perf_counter() - started)
            else:
                return taken
        closed += 1
        if closed > _CLOSED:
            raise OSError(f"port {port} closed {closed} connections without an answer")
    return taken


def _read_answer(reader: BinaryIO, status: bytes) -> None:
    length = 0
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if b" 200 " not in status or not length or len(reader.read(length)) != length:
        raise OSError(f"the service answered {status!r}, {length} bytes")


def _await(port: int) -> None:
    """Wait until the application answers ten times in a row: HAProxy opens its port before it has a replica."""
    deadline = time.monotonic() + 60
    while True:
        try:
            _ask(port, "small", 10)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _free_ports() -> int:
    """Return the first of :data:`_SPAN` free ports, below those that the system gives to clients."""
    for first in random.sample(range(20_000, 30_000, _SPAN), 100):
        try:
            for port in range(first, first + _SPAN):
                with socket.socket() as probe:
                    probe.bind(("", port))
        except OSError:
            continue
        return first
    raise OSError(f"found no {_SPAN} free ports in a row between 20000 and 30000; stop what listens there")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
