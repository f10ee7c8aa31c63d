"""Who serves a store: starts its actors, and replaces them when the layout changes."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError

from actors.channel import ChannelActor
from actors.coordinator import CoordinatorActor
from actors.embedder import EmbedderActor
from actors.spec import EMBEDDER, NAMESPACE, STAGE, WRITER, Deployment, Layout
from actors.stage import StageActor
from actors.writer import WriterActor
from prme_ray.model.errors import NotFound

__all__ = ["DirectoryActor"]

_LOG = logging.getLogger("prme_ray.actors")
_RETIRE_S = 30.0
_CONCURRENCY = 64
"""Calls a writer works on at once: what waits together is committed together."""
_CHANNEL_THREADS = 8
_PARTS = 3
"""Slashes in the name of a serving actor: store, version, kind, number."""


class DirectoryActor:
    """Serialises every change of a store's actors. All of them have names and outlive it.

    Restarted, it knows nothing and learns from the names in the cluster; nothing depends on its memory.

    Args:
        name: Name of the store in the cluster.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._deployment: Deployment | None = None

    def ensure(self, deployment: Deployment) -> Layout:
        """Bring a store's actors into the shape of a deployment and return the layout.

        Where the layout changes, the new actors are there before the old ones go: nobody writes for the
        length of a commit, and reading never stops. Data stays where it is, as a group only says who
        opens which shards.
        """
        layout = deployment.layout
        old = [name for name in self._names() if not _belongs(name, layout)]
        old_writers = [name for name in old if f"/{WRITER}/" in name]
        writers, readers = _start_writers(deployment, layout), _start_readers(deployment, layout)
        if old_writers:
            ray.get([reader.ready.remote() for reader in readers] + [writer.loaded.remote() for writer in writers])
            self._retire(old_writers)
        # The first writer makes the store where there is none; readers need one.
        for writer in writers:
            ray.get(writer.ready.remote())
        ray.get([reader.ready.remote() for reader in readers])
        _end(name for name in old if name not in old_writers)
        self._deployment = deployment
        return layout

    def current(self) -> Layout:
        """Return the layout in force, its actors started again where they are gone.

        Raises:
            NotFound: there is none.
        """
        if self._deployment is not None:
            return self.ensure(self._deployment)
        # This directory was restarted: the names say what the last one had made.
        names = [name.split("/") for name in self._names()]
        versions = {version for _, version, kind, _ in names if kind == WRITER}
        pools = {version for _, version, kind, _ in names if kind == EMBEDDER}
        if len(versions) != 1 or len(pools) != 1:
            raise NotFound(kind="deployment", id=self._name)
        groups = 1 + max(int(number) for _, _, kind, number in names if kind == WRITER)
        return Layout(self._name, versions.pop(), pools.pop(), groups)

    def embedder(self, number: int) -> str:
        """Start an embedding actor by number and return its name.

        Raises:
            NotFound: nothing was deployed since this directory started, and there is no such actor.
        """
        if self._deployment is not None:
            _start_embedder(self._deployment, number)
            return self._deployment.layout.actor(EMBEDDER, number)
        return self.current().actor(EMBEDDER, number)

    def coordinator(self) -> str:
        """Start the store's coordinator and return its name.

        Raises:
            NotFound: nothing was deployed since this directory started, and there is no coordinator.
        """
        name = f"{self._name}/coordinator"
        deployment = self._deployment
        if deployment is not None:
            # Not waited for: its memory asks this directory for the layout first.
            _remote(
                CoordinatorActor,
                name,
                None,
                max_concurrency=_CHANNEL_THREADS,
                max_pending_calls=deployment.cluster.queue,
            ).remote(deployment.memory, deployment.encode)
        return name

    def end(self) -> None:
        """End every actor of the store; writers commit what they took first."""
        self._deployment = None
        _end([f"{self._name}/coordinator"])
        names = self._names()
        self._retire([name for name in names if f"/{WRITER}/" in name])
        _end(name for name in names if f"/{WRITER}/" not in name)

    def _names(self) -> list[str]:
        """Return the names of the store's serving actors, sorted."""
        own = f"{self._name}/"
        named = ray.util.list_named_actors(all_namespaces=True)
        names = [item["name"] for item in named if item["namespace"] == NAMESPACE and item["name"].startswith(own)]
        return sorted(name for name in names if name.count("/") == _PARTS)

    def _retire(self, names: list[str]) -> None:
        retiring: list[tuple[str, Any]] = []
        for name in names:
            with contextlib.suppress(ValueError):  # it ended by itself meanwhile
                retiring.append((name, ray.get_actor(name, NAMESPACE).retire.remote()))
        for name, retired in retiring:
            try:
                ray.get(retired, timeout=_RETIRE_S)
            except (RayActorError, GetTimeoutError) as error:
                # What it had acknowledged is in the log; its locks go with its process.
                _LOG.warning("writer %s did not retire (%s); it is ended", name, type(error).__name__)
        _end(name for name, _ in retiring)


def _belongs(name: str, layout: Layout) -> bool:
    return name.split("/")[1] in (layout.version, layout.pool)


def _start_writers(deployment: Deployment, layout: Layout) -> list[Any]:
    cluster = deployment.cluster
    return [
        _remote(
            WriterActor,
            layout.actor(WRITER, group),
            cluster.group_resources.get(str(group)),
            num_cpus=cluster.writer_cpus,
            max_concurrency=_CONCURRENCY,
            max_pending_calls=cluster.queue,
        ).remote(deployment.store, group, layout.groups, cluster.timeout_s)
        for group in range(layout.groups)
    ]


def _start_readers(deployment: Deployment, layout: Layout) -> list[Any]:
    """Start channels, embedders and stages; return their handles."""
    cluster = deployment.cluster
    actors = [
        _remote(
            ChannelActor,
            layout.actor(kind, group),
            cluster.group_resources.get(str(group)),
            num_cpus=cluster.channel_cpus,
            max_concurrency=_CHANNEL_THREADS,
            max_pending_calls=cluster.queue,
        ).remote(deployment.store, parts, answer, deployment.embedder_of(kind))
        for kind, (parts, answer) in deployment.channels.items()
        for group in range(layout.groups)
    ]
    actors += [_start_embedder(deployment, number) for number in range(cluster.embedders_min)]
    actors += [
        _remote(StageActor, layout.actor(f"{STAGE}{step}", 0), None, max_pending_calls=cluster.queue).remote(
            deployment.stage
        )
        for step, how in cluster.stages.items()
        if how == "actor"
    ]
    return actors


def _start_embedder(deployment: Deployment, number: int) -> Any:
    cluster = deployment.cluster
    return _remote(
        EmbedderActor,
        deployment.layout.actor(EMBEDDER, number),
        None,
        num_cpus=cluster.embedder_cpus,
        num_gpus=cluster.embedder_gpus,
        max_concurrency=_CHANNEL_THREADS,
        max_pending_calls=cluster.queue,
    ).remote(deployment.provider, deployment.query)


def _end(names: Any) -> None:
    for name in names:
        with contextlib.suppress(ValueError):  # it ended by itself meanwhile
            ray.kill(ray.get_actor(name, NAMESPACE), no_restart=True)


def _remote(kind: type, name: str, resources: dict[str, float] | None, *, num_cpus: float = 0.0, **options: Any) -> Any:
    """Return what starts a named actor, or finds the one there is.

    Every call of these actors may be repeated: reads change nothing, and an admission that was
    committed before is answered with what was committed.
    """
    return ray.remote(kind).options(
        name=name,
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        max_task_retries=-1,
        num_cpus=num_cpus,
        resources=resources,
        **options,
    )
