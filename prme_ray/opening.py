"""Puts the parts of an open memory together: store, retriever, writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prme_ray.defaults import settings_of
from prme_ray.helpers import Helpers, helpers_of
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.protocols import CrossEncoder, EmbeddingProvider, Reformulator
from prme_ray.model.settings import Settings
from prme_ray.retrieval import Retriever
from prme_ray.writing import MonotonicClock, Writer
from storage.encoder.cache import CachedEncoder
from storage.encoder.onnx_minilm import OnnxMiniLM
from storage.shard import EncoderIdentity
from storage.store import Store

if TYPE_CHECKING:  # Ray is only loaded where the flow runs on it
    from actors.remote_store import RemoteStore

__all__ = ["EXECUTORS", "Parts", "open_parts"]

EXECUTORS = ("inline", "ray", "compiled")
"""Where the one declared flow runs."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What an open memory is made of."""

    store: Store | RemoteStore
    retriever: Retriever
    writer: Writer
    after: Callable[[], None] | None = None
    """Called once the store is closed."""


def open_parts(
    path: str | Path,
    *,
    settings: Settings | Mapping[str, Any] | None,
    encoder: EmbeddingProvider | None,
    cross_encoder: CrossEncoder | None,
    reformulate: Reformulator | None,
    read_only: bool,
    executor: str,
    address: str | None,
    keep: bool,
    clock: Callable[[], datetime],
    new_id: Callable[[], str],
    again: Callable[[], Any],
) -> Parts:
    """Open a store and what reads and writes it; arguments and errors are those of ``Memory.open``.

    ``again`` opens the same memory in a process of the cluster, for those who connect to it.
    """
    chosen = settings_of(settings)
    helpers = helpers_of(chosen, cross_encoder=cross_encoder, reformulate=reformulate)
    provider = OnnxMiniLM(chosen.encoder) if encoder is None else encoder
    _check_executor(executor, address=address, read_only=read_only)
    if executor != "inline":
        return _open_on_ray(
            path,
            settings=chosen,
            provider=provider,
            helpers=helpers,
            again=again,
            compiled=executor == "compiled",
            address=address,
            keep=keep,
            clock=clock,
            new_id=new_id,
        )
    cached = CachedEncoder(provider, entries=chosen.encoder.cache_entries)
    store = Store(
        Path(path),
        settings=chosen.storage,
        encoder=EncoderIdentity(cached.identity, provider.model_name, provider.dimension),
        clock=clock,
        new_id=new_id,
        read_only=read_only,
    )
    try:
        retriever = Retriever(store, encoder=cached, settings=chosen, clock=clock, new_id=new_id, helpers=helpers)
    except BaseException:
        store.close()
        raise
    writer = Writer(store, encoder=cached, settings=chosen, clock=MonotonicClock(clock), new_id=new_id)
    return Parts(store, retriever, writer)


def _check_executor(executor: str, *, address: str | None, read_only: bool) -> None:
    if executor not in EXECUTORS:
        raise InvalidRequest(argument="executor", given=executor, allowed=f"one of {', '.join(EXECUTORS)}")
    if executor == "inline" and address is not None:
        raise InvalidRequest(argument="address", given=address, allowed="only with executor='ray' or 'compiled'")
    if executor != "inline" and read_only:
        raise InvalidRequest(argument="read_only", given=True, allowed="executor='inline', which reads beside a writer")


def _open_on_ray(
    path: str | Path,
    *,
    settings: Settings,
    provider: EmbeddingProvider,
    helpers: Helpers,
    again: Callable[[], Any],
    compiled: bool,
    address: str | None,
    keep: bool,
    clock: Callable[[], datetime],
    new_id: Callable[[], str],
) -> Parts:
    # Ray takes a second to import and is only needed here.
    from prme_ray.deploying import deploy, start_ray, stop_ray

    ours = start_ray(address)
    try:
        deployed = deploy(path, settings=settings, provider=provider, memory=again, compiled=compiled, keep=keep)
        retriever = Retriever(
            deployed.store,
            encoder=deployed.encoder,
            settings=settings,
            clock=clock,
            new_id=new_id,
            helpers=helpers,
            executor=deployed.executor,
        )
    except BaseException:
        if ours:
            stop_ray()
        raise
    writer = Writer(
        deployed.store, encoder=deployed.encoder, settings=settings, clock=MonotonicClock(clock), new_id=new_id
    )
    return Parts(deployed.store, retriever, writer, stop_ray if ours else None)
