"""Who serves a store: starts its actors, and replaces them when the layout changes."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import RayActorError

from actors.channel import ChannelActor
from actors.embedder import EmbedderActor
from actors.spec import NAMESPACE, Deployment, Layout
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
        """Start what is missing of a deployment, end what does not belong to it, and return the layout.

        A writer of another layout first commits what it took; then its locks pass to the new one. Data
        stays where it is: a group only says who opens which shards.
        """
        layout = _layout(deployment)
        if self._deployment is None or self._deployment.version != deployment.version:
            self._end(lambda name: not name.startswith(f"{self._name}/{layout.version}/"))
        self._start(deployment, layout)
        self._deployment = deployment
        return layout

    def current(self) -> Layout:
        """Return the layout in force, its actors started again where they are gone.

        Raises:
            NotFound: there is none.
        """
        if self._deployment is not None:
            return self.ensure(self._deployment)
        # This directory was restarted: the writers' names say what the last one had made.
        writers = [name.split("/") for name in self._names() if "/writer/" in name]
        versions = {version for _, version, _, _ in writers}
        if len(versions) != 1:
            raise NotFound(kind="deployment", id=self._name)
        return Layout(self._name, versions.pop(), 1 + max(int(number) for *_, number in writers))

    def embedder(self, number: int) -> str:
        """Start an embedding actor by number and return its name."""
        deployment = self._deployment
        if deployment is None:
            raise NotFound(kind="deployment", id=self._name)
        name = _layout(deployment).actor("embedder", number)
        _embedder(deployment, name)
        return name

    def end(self) -> None:
        """End every actor of the store; writers commit what they took first."""
        self._deployment = None
        self._end(lambda name: True)

    def _start(self, deployment: Deployment, layout: Layout) -> None:
        cluster = deployment.cluster
        writers = [
            _remote(
                WriterActor,
                layout.actor("writer", group),
                cluster.group_resources.get(str(group)),
                num_cpus=cluster.writer_cpus,
                max_concurrency=_CONCURRENCY,
                max_pending_calls=cluster.queue,
            ).remote(deployment.store, group, layout.groups, cluster.timeout_s)
            for group in range(layout.groups)
        ]
        # The first writer makes the store where there is none; readers need one.
        for writer in writers:
            ray.get(writer.ready.remote())
        for kind, (parts, answer) in deployment.channels.items():
            for group in range(layout.groups):
                _remote(
                    ChannelActor,
                    layout.actor(kind, group),
                    cluster.group_resources.get(str(group)),
                    num_cpus=cluster.channel_cpus,
                    max_concurrency=_CHANNEL_THREADS,
                    max_pending_calls=cluster.queue,
                ).remote(deployment.store, parts, answer)
        for number in range(cluster.embedders_min):
            _embedder(deployment, layout.actor("embedder", number))
        for step, how in cluster.stages.items():
            if how == "actor":
                _remote(StageActor, layout.actor(f"stage.{step}", 0), None, max_pending_calls=cluster.queue).remote(
                    deployment.stage
                )

    def _names(self) -> list[str]:
        """Return the names of the store's serving actors, sorted."""
        own = f"{self._name}/"
        named = ray.util.list_named_actors(all_namespaces=True)
        names = [item["name"] for item in named if item["namespace"] == NAMESPACE and item["name"].startswith(own)]
        return sorted(name for name in names if name.count("/") == _PARTS)

    def _end(self, which: Callable[[str], bool]) -> None:
        retiring: list[Any] = []
        for name in filter(which, self._names()):
            with contextlib.suppress(ValueError):  # it ended by itself meanwhile
                actor = ray.get_actor(name, NAMESPACE)
                retiring.append((name, actor, actor.retire.remote() if "/writer/" in name else None))
        for name, actor, retired in retiring:
            if retired is not None:
                try:
                    ray.get(retired, timeout=_RETIRE_S)
                except (RayActorError, ray.exceptions.GetTimeoutError) as error:
                    # What it had acknowledged is in the log; its locks go with its process.
                    _LOG.warning("writer %s did not retire (%s); it is ended", name, type(error).__name__)
            ray.kill(actor, no_restart=True)


def _layout(deployment: Deployment) -> Layout:
    return Layout(deployment.name, deployment.version, deployment.cluster.groups)


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


def _embedder(deployment: Deployment, name: str) -> None:
    cluster = deployment.cluster
    _remote(
        EmbedderActor,
        name,
        None,
        num_cpus=cluster.embedder_cpus,
        num_gpus=cluster.embedder_gpus,
        max_concurrency=_CHANNEL_THREADS,
        max_pending_calls=cluster.queue,
    ).remote(deployment.provider, deployment.query)
