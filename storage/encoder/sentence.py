"""Any sentence-transformers model as an encoder, on the CPU or an accelerator (extra ``torch``).

One text is one inference: padding and the kernels chosen for a batch change components of a vector,
so a vector would depend on its neighbours (digest b §7.5). On the CPU an inference runs on one core:
shared among cores the sums are added in another order, and a vector would depend on how many the
process was given.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prme_ray.model.errors import EncoderRejected, InvalidSettings
from storage.encoder.model_files import file_digests, file_states, model_folder

__all__ = ["SentenceTransformerEncoder", "recipe_version"]

_RECIPE = {"recipe": 1, "pooling": "of-the-model", "weights": "float32", "normalisation": "l2-float64"}
# Raise "recipe" with every change below that can change a vector by one bit.
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
_QUERY_PROMPTS = ("query",)
_SHA256 = re.compile(r"[0-9a-f]{64}")

# Both for the process: transformers sets module-wide state while it builds a model, the number of
# cores is torch's for all threads, and a tokenizer's truncation must not be set by two at once.
_load_lock = threading.Lock()
_turn = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Loaded:
    document: Callable[[list[str]], Any]
    query: Callable[[list[str]], Any]
    version: str
    dimension: int


class SentenceTransformerEncoder:
    """Embeds texts with a sentence-transformers model; an ``EmbeddingProvider`` and ``QueryEncoder``.

    Construction imports and reads nothing. The model is loaded when its version, its dimension or a
    vector is first asked for, and again after a load that failed. Texts are cut at the model's own
    maximum length. Questions and documents get the prompts that the model's files name for them.
    Safe to call from many threads, which take turns text by text: more throughput needs more
    processes. Pickles as its arguments.

    Equal text gives equal bytes on the same machine, device and libraries; between a CPU and a GPU
    the last bits differ, and the identity stays the same.

    Args:
        model: Folder of a model, or its hub name. A name is fetched once; with ``HF_HUB_OFFLINE=1``
            only the local hub cache is read. Code from a model's files is never run.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, …; ``None`` for the best that there is.
        revision: Commit, tag or branch of a hub name.
        revision_sha256: The ``model_version`` that must come out; other files are refused.
        name: Name recorded with the vectors and part of their identity; the last part of ``model``
            when ``None``, so that a hub name and a folder of that name, wherever it lies, are alike.

    Raises:
        InvalidSettings: ``model`` or ``name`` is blank, or ``revision_sha256`` no SHA-256.
    """

    def __init__(
        self,
        model: str,
        *,
        device: str | None = None,
        revision: str | None = None,
        revision_sha256: str | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise InvalidSettings(argument="model", given=model, allowed="a folder or a hub name, as text")
        if name is not None and not name.strip():
            raise InvalidSettings(argument="name", given=name, allowed="a name that is not blank, or None")
        if revision_sha256 is not None and not _SHA256.fullmatch(revision_sha256.lower()):
            raise InvalidSettings(
                argument="revision_sha256", given=revision_sha256, allowed="64 hexadecimal digits, or None"
            )
        self._model = model
        self._device = device
        self._revision = revision
        self._expected = None if revision_sha256 is None else revision_sha256.lower()
        self._name = name or PurePath(model).name or model
        self._loaded: _Loaded | None = None

    def __reduce__(self) -> tuple[Callable[[str], SentenceTransformerEncoder], tuple[str]]:
        build = partial(
            SentenceTransformerEncoder,
            device=self._device,
            revision=self._revision,
            revision_sha256=self._expected,
            name=self._name,
        )
        return (build, (self._model,))

    @property
    def model_name(self) -> str:
        """Name of the model; loads nothing."""
        return self._name

    @property
    def model_version(self) -> str:
        """SHA-256 over everything a vector depends on (decision 14). Loads the model; errors of :meth:`embed`."""
        return self._ready().version

    @property
    def gpus(self) -> float:
        """GPUs that an actor with this encoder asks Ray for; loads nothing."""
        return 1.0 if self._device is not None and self._device.startswith("cuda") else 0.0

    @property
    def dimension(self) -> int:
        """Length of a vector. Loads the model; errors of :meth:`embed`."""
        return self._ready().dimension

    def embed(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return one vector a text, in order: shape (dimension,), float32, of length 1.

        Raises:
            InvalidSettings: sentence-transformers is not installed, or there is no such model or device.
            EncoderRejected: the files are not the expected ones, or changed while they were loaded.
        """
        return [self._vector(self._ready().document, text) for text in texts]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question, like :meth:`embed` with the model's prompt for questions."""
        return self._vector(self._ready().query, text)

    def _vector(self, encode: Callable[[list[str]], Any], text: str) -> NDArray[np.float32]:
        with _turn, _one_core():
            return _unit(encode([text]))

    def _ready(self) -> _Loaded:
        if self._loaded is None:
            with _load_lock:
                if self._loaded is None:
                    self._loaded = self._load()
        return self._loaded

    def _load(self) -> _Loaded:
        kind = _sentence_transformer()
        folder = model_folder(self._model, self._revision)
        before = file_states(folder)
        digests = file_digests(folder)
        try:
            # The whole model in float32, whatever type a release of the library would choose.
            model = kind(str(folder), device=self._device, local_files_only=True).float()
        except Exception as error:
            raise InvalidSettings(
                argument="model",
                given=self._model,
                allowed=f"a model that sentence-transformers can load on device {self._device or 'default'} "
                f"({type(error).__name__}: {error})",
            ) from error
        if file_states(folder) != before:
            raise EncoderRejected(model=self._name, detail="its files changed while they were loaded")
        version = recipe_version(digests, max_tokens=model.max_seq_length)
        if self._expected not in {None, version}:
            detail = f"its files give version {version}, revision_sha256 asks for {self._expected}"
            raise EncoderRejected(model=self._name, detail=detail)
        document, query = _prompts(folder)
        options = {"batch_size": 1, "show_progress_bar": False, "convert_to_numpy": True}
        # Both exist since release 5 and differ from encode only for models that route by task.
        encode_document = partial(getattr(model, "encode_document", model.encode), prompt=document, **options)
        encode_query = partial(getattr(model, "encode_query", model.encode), prompt=query, **options)
        dimension = len(encode_document(["a"])[0])
        return _Loaded(encode_document, encode_query, version, dimension)


def recipe_version(digests: Mapping[str, str], *, max_tokens: float | None) -> str:
    """Return the identity of vectors made from model files by the recipe of this file (decision 14).

    Args:
        digests: SHA-256 by file; see :func:`storage.encoder.model_files.file_digests`.
        max_tokens: Tokens read of a text.
    """
    parts = {**_RECIPE, "files": dict(digests), "max_tokens": max_tokens}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _sentence_transformer() -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise InvalidSettings(
            argument="encoder",
            given=SentenceTransformerEncoder.__name__,
            allowed=f"an encoder whose packages are installed ({error}): run `pip install prme-ray[torch]`",
        ) from error
    return SentenceTransformer


@contextmanager
def _one_core() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _prompts(folder: Path) -> tuple[str | None, str | None]:
    # Read here: which prompt the library falls back to has changed between its releases.
    path = folder / "config_sentence_transformers.json"
    config = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    prompts: dict[str, str | None] = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name") or "")

    def first(keys: Sequence[str]) -> str | None:
        return next((prompts[key] for key in keys if prompts.get(key) is not None), default)

    return first(_DOCUMENT_PROMPTS), first(_QUERY_PROMPTS)


def _unit(rows: Any) -> NDArray[np.float32]:
    wide: NDArray[np.float64] = rows[0].astype(np.float64)
    norm = np.sqrt((wide * wide).sum())
    unit: NDArray[np.float32] = (wide / norm if norm > 0 else wide).astype(np.float32)
    return unit
