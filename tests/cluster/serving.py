"""The real service, as its users start it: ``prme-ray serve`` in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

_START_S = 300
_STOP_S = 120


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Serving:
    """A service under way."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, path: Path) -> None:
        self.process = process
        self.address = address
        self.path = path

    def stop(self) -> None:
        """End the service as its users do, with SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise

    def find(self, word: str) -> psutil.Process:
        """Return the service's process with that word in its command line."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if word in " ".join(child.cmdline()):
                    return child
            except psutil.NoSuchProcess:
                continue
        raise AssertionError(f"the service has no process {word!r}")


@contextmanager
def serving(path: Path, *options: str) -> Iterator[Serving]:
    """Start the service, wait until it is ready, stop it with SIGTERM."""
    port = free_port()
    log = path.parent / f"{path.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "prme_ray.cli", "serve", "--path", str(path), "--port", str(port), *options],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            start_new_session=True,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            _wait(process, address, log)
            yield Serving(process, address, path)
        finally:
            Serving(process, address, path).stop()


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        assert process.poll() is None, log.read_text("utf-8", "replace")[-3000:]
        assert time.monotonic() < deadline, log.read_text("utf-8", "replace")[-3000:]
        try:
            if httpx.get(f"{address}/readyz", timeout=5).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
