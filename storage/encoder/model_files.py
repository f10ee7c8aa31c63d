"""Which files of a sentence-transformers model decide its vectors, where they lie, and their digests.

Two copies of a model must get the same identity: a clone with its README and ONNX exports, and a hub
cache that holds only what was fetched. So the files that loading never reads are named here, and the
same list keeps them from the download and from the digest. A file that is not on the list counts:
better a mismatch too many than vectors of two models in one index.
"""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from pathlib import Path

from prme_ray.model.errors import InvalidSettings

__all__ = ["file_digests", "file_states", "model_folder"]

# Shell patterns over paths inside the folder; * also matches /.
_NEVER_READ = (
    ".*",
    "*/.*",
    "*.md",
    "*.py",
    "*.ipynb",
    "*.png",
    "*.jpg",
    "*.jpeg",
    "*.gif",
    "*.svg",
    "*.pdf",
    "LICENSE*",
    "NOTICE*",
    "data_config.json",
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.gguf",
    "*.onnx",
    "*.onnx_data",
    "onnx/*",
    "openvino/*",
    "coreml/*",
)
# Weights of the transformer that are not read where the same weights lie beside them as safetensors.
_PICKLED = "pytorch_model*.bin*"
_SAFE = "model*.safetensors"


def model_folder(model: str, revision: str | None) -> Path:
    """Return the folder of a model, fetched from the hub if it is a hub name and not in its cache.

    Args:
        model: A folder, or a hub name; one without an organisation is of ``sentence-transformers``.
        revision: Commit, tag or branch of a hub name; ``None`` for its main branch.

    Raises:
        InvalidSettings: no such model, or one whose vectors its own files do not determine.
    """
    folder = Path(model)
    if not folder.is_dir():
        folder = _hub_folder(model, revision)
    elif revision is not None:
        raise InvalidSettings(argument="revision", given=revision, allowed=f"none: {model!r} is a folder, no hub name")
    names = _names(folder)
    if "modules.json" not in names:
        raise _no_model(model, "it has no modules.json, which states the pooling")
    if any(name.endswith("adapter_config.json") for name in names):
        raise _no_model(model, "it is an adapter whose base model lies elsewhere: merge the two and save the result")
    return folder


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 in hexadecimal of each file that can change a vector, by sorted path in ``folder``."""
    found = {}
    for name in _names(folder):
        with (folder / name).open("rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def file_states(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return inode, bytes and time of change of the same files: what changes when a file is replaced."""
    stats = {name: (folder / name).stat() for name in _names(folder)}
    return {name: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def _names(folder: Path) -> list[str]:
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    names = sorted(path for path in paths if not any(fnmatchcase(path, pattern) for pattern in _NEVER_READ))
    # Only at the root: a module's own small folder may hold either kind and is read as it is.
    if any(fnmatchcase(name, _SAFE) for name in names if "/" not in name):
        names = [name for name in names if "/" in name or not fnmatchcase(name, _PICKLED)]
    return names


def _hub_folder(model: str, revision: str | None) -> Path:
    if model.startswith((".", "/", "~")) or "\\" in model or model.count("/") > 1:
        raise _no_model(model, "there is no such folder, and it is no hub name")
    from huggingface_hub import snapshot_download

    repository = model if "/" in model else f"sentence-transformers/{model}"
    try:
        folder = Path(snapshot_download(repository, revision=revision, ignore_patterns=[*_NEVER_READ, _PICKLED]))
        if not any(folder.glob(_SAFE)):
            folder = Path(snapshot_download(repository, revision=revision, ignore_patterns=list(_NEVER_READ)))
    except Exception as error:
        what = str(error).strip().split("\n", maxsplit=1)[0]
        raise _no_model(model, f"the hub gave no {repository}: {type(error).__name__}: {what}") from error
    return folder


def _no_model(model: str, why: str) -> InvalidSettings:
    return InvalidSettings(
        argument="model",
        given=model,
        allowed=f"the folder of a sentence-transformers model, or its hub name ({why})",
    )
