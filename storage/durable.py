"""Files and folders that survive a power loss once the call returns."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["TEMPORARY_SUFFIX", "make_folders", "sync_folder", "write_atomically"]

TEMPORARY_SUFFIX = ".tmp"
"""Ending of files that a killed process may leave behind; they carry nothing and may be removed."""


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace ``path`` by ``data``: a reader sees the old bytes or the new ones, never a mixture.

    Args:
        path: File to write; its folder exists.
        data: The whole content.
        durable: Also wait until content and name are on the disk.

    Raises:
        OSError: the disk refused; ``path`` is unchanged.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=TEMPORARY_SUFFIX, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def make_folders(path: Path) -> None:
    """Create ``path`` and its missing parents, each name durable in its own parent.

    Raises:
        OSError: a part of the path is a file, or the disk refused.
    """
    if path.is_dir():
        return
    if path.parent != path:
        make_folders(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Wait until the names in folder ``path`` are on the disk.

    Raises:
        OSError: not a folder, or the disk refused.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
