"""What the code and its surroundings were when a request was answered (digest b §3.1, ``execution.features``)."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from functools import cache
from pathlib import Path
from typing import Any

from prme_ray.model.protocols import EmbeddingProvider
from storage.encoder.admission import identity

__all__ = ["features_of"]

_PACKAGES = ("prme-ray", "numpy", "pyarrow", "lancedb", "tantivy", "igraph", "onnxruntime", "tokenizers", "tiktoken")
_FOLDERS = ("stages", "prme_ray/steps", "prme_ray/executors", "prme_ray/model", "storage")
"""Folders whose code decides what is answered."""


def features_of(provider: EmbeddingProvider, *, reranker: str | None) -> dict[str, Any]:
    """Return the features of this process and its helpers as JSON values.

    Args:
        provider: The encoder.
        reranker: Identity of the cross-encoder, where one is on.
    """
    return _code() | {
        # Not the class of the provider: on Ray it is a pool of them, and the receipt has to be the same.
        "embedding": {
            "model": provider.model_name,
            "version": provider.model_version,
            "dimension": provider.dimension,
            "identity": identity(provider),
        },
        "reranker": {"enabled": reranker is not None, "model": reranker},
        "vector_backend": "exact cosine in memory, LanceDB beyond it",
        "vector_search": {"exact": True},
        "lexical_backend": "tantivy",
    }


@cache
def _code() -> dict[str, Any]:
    """Return versions and hashes; they are those of the process, so they are looked up once."""
    root = Path(__file__).resolve().parents[2]
    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "source_files_sha256": {folder: _hash(root / folder) for folder in _FOLDERS},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _hash(folder: Path) -> str:
    """Return one SHA-256 over every module below a folder: names and bytes, by name."""
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        found.update(f"{file.relative_to(folder).as_posix()}\0".encode())
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()
