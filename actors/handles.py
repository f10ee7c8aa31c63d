"""A coordinator's handles of the actors that serve its store, renewed when the layout changes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import PendingCallsLimitExceeded

from actors.directory import DirectoryActor
from actors.results import result_of
from actors.spec import NAMESPACE, Deployment, Layout
from prme_ray.model.errors import NotFound, ServiceUnavailable, StoreBusy, StoreClosed
from storage.records import OwnerKey

__all__ = ["Handles", "directory_of", "end_actors"]

_LOG = logging.getLogger("prme_ray.actors")
_PAUSE_S = 0.1


def directory_of(name: str) -> Any:
    """Return the handle of a store's directory, started where there is none."""
    return (
        ray.remote(DirectoryActor)
        .options(
            name=f"{name}/directory",
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=-1,
            max_task_retries=-1,
            num_cpus=0,
        )
        .remote(name)
    )


def end_actors(name: str, timeout_s: float) -> None:
    """End every actor of a store, the directory last; writers commit what they took first."""
    directory = directory_of(name)
    result_of(directory.end.remote(), "directory", timeout_s)
    ray.kill(directory, no_restart=True)


def _compute(compute: Callable[[bytes], bytes], asked: bytes) -> bytes:
    return compute(asked)


class Handles:
    """Calls actors by what they do. Safe to use from many threads.

    An actor that dies is restarted by Ray and the call repeated there. One that was replaced, because the
    number of groups changed, is looked up anew. Only what takes longer than the deployment's
    ``timeout_s`` reaches the caller, as an error that may be retried.

    Args:
        deployment: The actors as they should be; they are started where they are missing.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.timeout_s = deployment.cluster.timeout_s
        self.shard_of: Callable[[OwnerKey], int] | None = None
        """Returns the shard of an owner; known once the first writer has made the store."""
        self._directory = directory_of(deployment.name)
        self._task = ray.remote(_compute).options(num_cpus=0, max_retries=-1)
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}
        self.recoveries = 0
        """How often a lost actor or a changed layout made this coordinator look again."""
        self._start_s = deployment.cluster.start_timeout_s
        self._layout = self._started()

    def _started(self) -> Layout:
        """Have the directory start the actors and return the layout."""
        ready, _ = ray.wait([starting := self._directory.ensure.remote(self.deployment)], timeout=self._start_s)
        if not ready:
            raise ServiceUnavailable(
                what="the store's actors",
                detail=f"they did not start in {self._start_s:g} s: the cluster may lack the CPUs, GPUs or custom "
                "resources that the settings cluster.* ask for",
            )
        layout: Layout = self.wait(starting, "directory")
        return layout

    @property
    def layout(self) -> Layout:
        """The layout in force as far as this coordinator knows."""
        return self._layout

    def group_of(self, owner: OwnerKey) -> int:
        """Return the shard group of an owner."""
        if self.shard_of is None:
            raise ServiceUnavailable(what="the store", detail="it is being opened")
        return self.group_of_shard(self.shard_of(owner))

    def group_of_shard(self, shard: int) -> int:
        """Return the group of a shard."""
        return shard % self._layout.groups

    def get(self, kind: str, number: Callable[[], int]) -> Any:
        """Return the handle of an actor.

        Args:
            kind: ``writer``, a channel's place or ``stage.<step>``.
            number: Returns its group; asked again when the layout has changed.

        Raises:
            ServiceUnavailable: there is none, and the directory could not start one.
        """
        try:
            return self._find(self._layout.actor(kind, number()))
        except ValueError:
            self.renew()
        name = self._layout.actor(kind, number())
        try:
            return self._find(name)
        except ValueError as error:
            raise ServiceUnavailable(what=f"actor {name}", detail="it has not started") from error

    def _find(self, name: str) -> Any:
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = ray.get_actor(name, NAMESPACE)
        return found

    def renew(self) -> None:
        """Ask the directory for the layout in force; actors that are gone are started again."""
        with self._lock:
            self.recoveries += 1
            self._known = {}
            self._directory = directory_of(self.deployment.name)
            try:
                self._layout = self.wait(self._directory.current.remote(), "directory")
            except NotFound:
                self._layout = self.deployment.layout
            if self._layout == self.deployment.layout:
                # A directory that was restarted knows what there is, not what there should be.
                self._layout = self._started()

    def embedder(self, number: int) -> Any:
        """Return the handle of an embedding actor, started if need be."""
        name = self.wait(self._directory.embedder.remote(number), "directory")
        return ray.get_actor(name, NAMESPACE)

    def call(self, kind: str, number: Callable[[], int], method: str, *arguments: Any) -> Any:
        """Return what an actor answers, whichever process that is by then.

        Args:
            kind: ``writer`` or a place.
            number: Returns its group; asked again when the layout has changed.
            method: Its method.
            arguments: Arguments of the method.

        Raises:
            ServiceUnavailable: no answer within the deployment's ``timeout_s``.
            StoreBusy: too many calls wait for it.
            Exception: what the method raised.
        """
        return self.answer(self.ask(kind, number, method, *arguments), kind, number, method, *arguments)

    def ask(self, kind: str, number: Callable[[], int], method: str, *arguments: Any) -> Any:
        """Return a reference to an actor's answer.

        Raises:
            StoreBusy: too many calls wait for it.
        """
        actor = self.get(kind, number)
        try:
            return getattr(actor, method).remote(*arguments)
        except PendingCallsLimitExceeded as error:
            raise StoreBusy(what=f"actor {kind}/{number()}", waited_s=0.0) from error

    def answer(self, asked: Any, kind: str, number: Callable[[], int], method: str, *arguments: Any) -> Any:
        """Return what :meth:`ask` asked for; asks again where the actor was replaced meanwhile. As :meth:`call`."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                return self.wait(asked, kind)
            except (ServiceUnavailable, StoreClosed) as error:
                if time.monotonic() >= deadline:
                    raise
                _LOG.warning("%s of %s did not answer (%s); asking again", method, kind, type(error).__name__)
                time.sleep(_PAUSE_S)
                self.renew()
                asked = self.ask(kind, number, method, *arguments)

    def task(self, asked: bytes) -> Any:
        """Return what the deployment's ``stage`` makes of a packed step, in a Ray task.

        Raises:
            ServiceUnavailable: no answer within ``timeout_s``.
            Exception: what the step raised.
        """
        return self.wait(self._task.remote(self.deployment.stage, asked), "stage")

    def wait(self, asked: Any, what: str, timeout_s: float | None = None) -> Any:
        """Return an answer.

        Raises:
            ServiceUnavailable: the actor is gone for good, or no answer came within ``timeout_s``
                (the deployment's, when ``None``).
            Exception: what the method raised.
        """
        return result_of(asked, what, self.timeout_s if timeout_s is None else timeout_s)

    def end(self) -> None:
        """End every actor of the store, the directory last."""
        end_actors(self.deployment.name, self._start_s)
