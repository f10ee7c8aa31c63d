"""The service on Ray Serve: ``serve run serve.yaml``, or :func:`build` with your own arguments.

One deployment. A replica is a coordinator: it holds the handles of the store's actors, runs the pure
steps of the flow itself and answers HTTP without a further hop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from ray import serve
from ray.serve import Application

from prme_ray.defaults import settings_of
from prme_ray.http.access import Access, check_bind
from prme_ray.http.app import create_app
from prme_ray.http.limits import Limits
from prme_ray.memory import Memory
from prme_ray.model.errors import ServiceUnavailable
from prme_ray.observe import (
    configure_logging,
    configure_tracing,
    forward_to_ray,
    metrics_text,
    observe_answer,
    observe_request,
    watch_encoder,
    watch_gate,
    watch_health,
)

__all__ = ["ServeArgs", "build", "service_app"]


_ONGOING = 128


class ServeArgs(BaseModel):
    """Arguments of the application, as they stand under ``args`` of serve.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(description="Folder of the store; the same on every node that has its actors.")
    executor: Literal["inline", "ray", "compiled"] = Field(
        default="ray", description="Where the flow runs; inline allows one replica, as it writes by itself."
    )
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings by name; see docs/settings.md.")
    keys_file: str | None = Field(default=None, description="Keys of `prme-ray keys`; none opens the service to all.")
    limits: Limits = Field(default_factory=Limits, description="What one request may bring.")
    replicas: int = Field(default=1, ge=1, le=1000, description="Processes that answer HTTP.")
    replica_cpus: float = Field(default=0.25, ge=0, le=1024, description="CPUs that a replica asks Ray for.")
    log_level: str = Field(default="INFO", description="Least level of the JSON log lines.")


class _Observed:
    """A memory whose state is read when metrics are."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._ends = [watch_health(memory.health), watch_encoder(memory.encoder), configure_tracing()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def close(self) -> None:
        try:
            self._memory.close()
        finally:
            for end in self._ends:
                end()


class _Places:
    """The gate of an application, which makes a new one at every start."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    @property
    def in_progress(self) -> int:
        return int(self._app.state.service.gate.in_progress)

    @property
    def waiting(self) -> int:
        return int(self._app.state.service.gate.waiting)


def service_app(args: ServeArgs, *, host: str) -> FastAPI:
    """Return the application over a store that is opened when it starts and closed when it ends.

    Args:
        args: What to serve.
        host: Address it will be reached at.

    Raises:
        InvalidSettings: a setting is wrong, or there are no keys and ``host`` is not this machine alone.
    """
    settings = settings_of(args.settings)
    access = Access(None if args.keys_file is None else Path(args.keys_file))
    check_bind(host, access)

    def open_memory() -> Any:
        return _Observed(Memory.open(args.path, settings=settings, executor=args.executor, keep=True))

    app = create_app(
        open_memory,
        access=access,
        limits=args.limits,
        metrics=metrics_text,
        observe=observe_request,
        observe_answer=observe_answer,
        tells_request_id=False,  # Serve makes up an id where there is none, and sends every id back
    )
    watch_gate(_Places(app))
    return app


def build(args: ServeArgs) -> Application:
    """Return the Serve application (the builder of ``import_path: prme_ray.serve:build``).

    Raises:
        InvalidSettings: a setting is wrong.
    """
    settings_of(args.settings)
    # The service itself bounds what it works on and lets wait; these two bound what it has not taken yet.
    deployment = serve.deployment(
        name="Service",
        num_replicas=args.replicas,
        ray_actor_options={"num_cpus": args.replica_cpus},
        max_ongoing_requests=_ONGOING,
        max_queued_requests=_ONGOING,
        backpressure_config={"status_code": 503, "retry_after_s": 1},
    )
    return deployment(serve.ingress(_replica(args))()).bind()


def _replica(args: ServeArgs) -> Callable[[], FastAPI]:
    def replica_app() -> FastAPI:
        # Not sys.stderr: Serve puts a logger in its place, which reads the source of the whole stack for every line and
        # then asks Serve's own level whether to keep it.
        configure_logging(json=True, level=args.log_level, stream=sys.__stderr__)
        forward_to_ray()
        return service_app(args, host=_host())

    return replica_app


def _host() -> str:
    """Return the address that Serve listens on."""
    from ray.serve.context import _get_global_client

    # Serve has no public way to ask; a replica always has a client.
    client = _get_global_client()
    if client is None:
        raise ServiceUnavailable(what="Ray Serve", detail="this process is no replica")
    return str(client.http_config.host)
