"""Starts a store's actors, or finds them, and makes this process a coordinator."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray

from actors.handles import Handles, end_actors
from actors.pool import pool_of
from actors.remote_store import COORDINATOR_PARTS, RemoteStore
from actors.results import result_of
from actors.spec import NAMESPACE, Deployment, StoreSpec
from prme_ray import __version__
from prme_ray.connected import encode_answer
from prme_ray.executors.compiled import CompiledExecutor
from prme_ray.executors.engine import Executor
from prme_ray.executors.on_ray import RayAway, RayExecutor
from prme_ray.executors.question import graph_answer, lexical_answer, question_text, vector_answer
from prme_ray.executors.stage_call import compute_stage
from prme_ray.model.errors import EncoderMismatch, InvalidSettings
from prme_ray.model.protocols import EmbeddingProvider
from prme_ray.model.settings import ClusterSettings, Settings
from prme_ray.pipeline import Place, tail_steps
from storage.encoder.admission import identity as encoder_identity
from storage.encoder.cache import CachedEncoder
from storage.parts import Part
from storage.shard import EncoderIdentity

__all__ = ["Deployed", "deploy", "pool_shape", "start_ray", "stop_ray", "store_name"]

_CHANNELS = {
    Place.VECTOR.value: (frozenset({Part.VECTORS}), vector_answer),
    Place.LEXICAL.value: (frozenset({Part.TEXT}), lexical_answer),
    Place.GRAPH.value: (frozenset({Part.EDGES}), graph_answer),
}
_OBJECT_STORE = 256 << 20
"""Bytes of Ray's object store where we start Ray: what we send is small and travels inside the calls."""


@dataclasses.dataclass(frozen=True, slots=True)
class Deployed:
    """A coordinator's parts."""

    store: RemoteStore
    encoder: CachedEncoder
    executor: Executor


def start_ray(address: str | None) -> bool:
    """Join a Ray cluster, or start one on this machine; return whether it was started and so is ours to stop.

    Args:
        address: Of a cluster, ``"auto"`` for the one this machine belongs to; ``None`` uses the one this
            process has joined already, or starts one.
    """
    if ray.is_initialized():
        return False
    if address is None:
        with warnings.catch_warnings():
            # LanceDB warns whenever its process starts another one; Ray's daemons share nothing with it.
            warnings.filterwarnings("ignore", message="lancedb fork support")
            ray.init(
                address="local",
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=_OBJECT_STORE,
                # Ray makes workers yield to everything else on the machine; ours answer questions.
                _system_config={"worker_niceness": 0},
            )
        return True
    ray.init(address=address, log_to_driver=False)
    return False


def stop_ray() -> None:
    """Stop the Ray that :func:`start_ray` started."""
    ray.shutdown()


def store_name(path: str | Path) -> str:
    """Return the name a store's actors have in a cluster: readable, and different for different folders."""
    full = Path(path).absolute()
    word = re.sub(r"[^A-Za-z0-9_-]+", "-", full.name)[:40]
    return f"{word}-{hashlib.sha256(str(full).encode()).hexdigest()[:8]}"


def deploy(
    path: str | Path,
    *,
    settings: Settings,
    provider: EmbeddingProvider,
    memory: Callable[[], Any],
    compiled: bool,
    keep: bool,
) -> Deployed:
    """Start what is missing of a store's actors and return this process's parts.

    Args:
        path: Folder of the store, the same on every node that has its actors.
        settings: Settings in force.
        provider: The encoder; it must pickle.
        memory: Opens a memory like the caller's, in another process, for those who connect.
        compiled: Use Ray's compiled graphs for the channels.
        keep: Leave the actors running when this process closes, even if it started them.

    Raises:
        InvalidSettings: ``cluster.stages`` names what is no pure step.
        StoreLocked: another writer has the store.
        ServiceUnavailable: actors did not start in time.
    """
    for step in settings.cluster.stages:
        if step not in tail_steps():
            raise InvalidSettings(
                argument=f"cluster.stages.{step}", given=step, allowed=f"one of {', '.join(sorted(tail_steps()))}"
            )
    cluster = pool_shape(settings.cluster, provider, compiled=compiled)
    identity = _identity(provider, cluster)
    name = store_name(path)
    found = _running(name)
    spec = StoreSpec(str(Path(path).absolute()), settings.storage, identity)
    deployment = Deployment(
        name=name,
        store=spec,
        cluster=cluster,
        provider=provider,
        query=question_text,
        channels=dict(_CHANNELS),
        stage=compute_stage,
        memory=memory,
        encode=encode_answer,
        code=__version__,
    )
    try:
        return _coordinator(deployment, settings, compiled=compiled, ends=not (keep or found))
    except BaseException:
        if not found:
            # What was started for this store alone must not stay behind and hold its locks.
            end_actors(name, cluster.start_timeout_s)
        raise


def _coordinator(deployment: Deployment, settings: Settings, *, compiled: bool, ends: bool) -> Deployed:
    """Return this process's parts, the actors started."""
    identity = deployment.store.encoder.identity
    handles = Handles(deployment)
    pool = pool_of(handles)
    encoder = CachedEncoder(pool, entries=settings.encoder.cache_entries)
    if encoder.identity != identity:
        raise EncoderMismatch(stored=identity, configured=encoder.identity)
    reader = deployment.store.reader(COORDINATOR_PARTS)
    handles.shard_of = reader.catalog.shard_of
    away = RayAway(handles, encoder, pool)
    executor = CompiledExecutor(handles, away) if compiled else RayExecutor(away)
    return Deployed(RemoteStore(reader, handles, executor=executor, ends=ends), encoder, executor)


def pool_shape(cluster: ClusterSettings, provider: EmbeddingProvider, *, compiled: bool) -> ClusterSettings:
    """Return the settings with an embedding pool as the provider and the executor need it.

    A provider whose attribute ``gpus`` is above 0 gets that many for each actor, unless the settings say how many.
    """
    gpus = float(getattr(provider, "gpus", 0))
    if gpus and not cluster.embedder_gpus:
        cluster = cluster.model_copy(update={"embedder_gpus": gpus})
    if compiled:
        # Every group's graph has an embedding actor to itself: an actor takes part in one graph only.
        least = max(cluster.embedders_min, cluster.groups)
        most = max(cluster.embedders_max, least)
        cluster = cluster.model_copy(update={"embedders_min": least, "embedders_max": most})
    return cluster


def _identity(provider: EmbeddingProvider, cluster: ClusterSettings) -> EncoderIdentity:
    """Return who makes the vectors; a provider that needs a GPU is asked where there is one."""
    if not cluster.embedder_gpus:
        return _facts(provider)
    task = ray.remote(_facts).options(num_gpus=cluster.embedder_gpus, num_cpus=cluster.embedder_cpus)
    found: EncoderIdentity = result_of(task.remote(provider), "embedder", cluster.start_timeout_s)
    return found


def _facts(provider: EmbeddingProvider) -> EncoderIdentity:
    return EncoderIdentity(encoder_identity(provider), provider.model_name, provider.dimension)


def _running(name: str) -> bool:
    names = ray.util.list_named_actors(all_namespaces=True)
    return any(item["namespace"] == NAMESPACE and item["name"] == f"{name}/directory" for item in names)
