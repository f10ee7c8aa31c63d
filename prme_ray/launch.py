"""Runs the service on this machine: Ray, Serve with the fastest ingress it has, the store's actors."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prme_ray.http.access import Access, check_bind
from prme_ray.ingress import ingress_environment

__all__ = ["local_service", "serve_until_stopped"]


@contextlib.contextmanager
def local_service(arguments: Mapping[str, Any], *, host: str, port: int, interruptible: bool = False) -> Iterator[str]:
    """Start the service in a Ray of its own, give its address, and stop all of it at the end.

    Args:
        arguments: Fields of :class:`prme_ray.serve.ServeArgs`.
        host: Address to listen on.
        port: Port to listen on.
        interruptible: SIGTERM raises KeyboardInterrupt, as SIGINT does; only in the main thread.

    Raises:
        InvalidSettings: an argument is wrong, or there are no keys and ``host`` is not this machine alone.
        RuntimeError: this process has joined a Ray cluster already, or Serve could not start the service.
    """
    keys = arguments.get("keys_file")
    check_bind(host, Access(None if keys is None else Path(str(keys))))
    with tempfile.TemporaryDirectory(prefix="prme-ray-ingress-") as folder:
        # Serve reads these when its modules are imported, here and in its processes.
        os.environ.update({**ingress_environment(Path(folder)), **_own_ports(port)})
        import ray

        from actors.handles import directory_of
        from prme_ray.deploying import start_ray, stop_ray, store_name

        if not start_ray(None):
            raise RuntimeError("this process has joined a Ray cluster; use `serve deploy` with serve.yaml there")
        if interruptible:
            # Ray has set a handler of its own by now, which would leave without stopping anything.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        from ray import serve

        from prme_ray.serve import ServeArgs, build

        args = ServeArgs.model_validate(arguments)
        try:
            serve.start(
                proxy_location="HeadOnly",
                http_options={"host": host, "port": port, "request_timeout_s": 60},
                logging_config={"encoding": "JSON", "log_level": "WARNING", "enable_access_log": False},
            )
            serve.run(build(args), name="prme-ray", route_prefix="/")
            yield f"http://{host}:{port}"
        finally:
            serve.shutdown()  # type: ignore[no-untyped-call]
            if args.executor != "inline":
                ray.get(directory_of(store_name(args.path)).end.remote())
            stop_ray()


def _own_ports(port: int) -> dict[str, str]:
    """Return ports of HAProxy and the replicas that no second service on this machine has."""
    blocks = (20_000 + (port + step) % 120 * 100 for step in range(120))
    first = next(block for block in blocks if all(_is_free(block + place) for place in range(10)))
    return {
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(first),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(first + 1),
        # Where HAProxy sends requests while there is no replica. Two services with one port would share it silently,
        # and one would answer requests meant for the other.
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(first + 2),
        "RAY_SERVE_FALLBACK_PROXY_GRPC_PORT": str(first + 3),
        "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(first + 4),
        "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(first + 99),
        # A replica of a service that ends need not wait for a load balancer to notice.
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0",
    }


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Serve's own sockets may be shared; this one may not, so it also sees those.
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def serve_until_stopped(arguments: Mapping[str, Any], *, host: str, port: int) -> None:
    """Run the service until SIGINT or SIGTERM; errors as :func:`local_service`."""
    try:
        with local_service(arguments, host=host, port=port, interruptible=True) as address:
            print(
                f"prme-ray serves {arguments['path']} at {address} (documentation at {address}/docs)", file=sys.stderr
            )
            threading.Event().wait()
    except KeyboardInterrupt:
        print("prme-ray stopped", file=sys.stderr)
