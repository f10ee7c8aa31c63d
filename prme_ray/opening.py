"""Puts the parts of an open memory together: store, retriever, writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from prme_ray.defaults import settings_of
from prme_ray.helpers import helpers_of
from prme_ray.model.protocols import CrossEncoder, EmbeddingProvider, Reformulator
from prme_ray.model.settings import Settings
from prme_ray.retrieval import Retriever
from prme_ray.writing import MonotonicClock, Writer
from storage.encoder.cache import CachedEncoder
from storage.encoder.onnx_minilm import OnnxMiniLM
from storage.shard import EncoderIdentity
from storage.store import Store

__all__ = ["Parts", "open_parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """What an open memory is made of."""

    store: Store
    retriever: Retriever
    writer: Writer


def open_parts(
    path: str | Path,
    *,
    settings: Settings | Mapping[str, Any] | None,
    encoder: EmbeddingProvider | None,
    cross_encoder: CrossEncoder | None,
    reformulate: Reformulator | None,
    read_only: bool,
    clock: Callable[[], datetime],
    new_id: Callable[[], str],
) -> Parts:
    """Open a store and what reads and writes it; arguments and errors are those of ``Memory.open``."""
    chosen = settings_of(settings)
    helpers = helpers_of(chosen, cross_encoder=cross_encoder, reformulate=reformulate)
    provider = OnnxMiniLM(chosen.encoder) if encoder is None else encoder
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
