"""A store as a folder: its ``store.json``, and which shard an owner belongs to.

    store.json          format, identity, number of virtual shards; where the log is, if not here
    locks/NNN.lock      single writer a shard (storage/lock.py)
    shards/NNN/         everything of one shard, created on first use

No path holds a tenant's or owner's name: owners hash to one of a fixed number of virtual shards.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args
from uuid import UUID

from filelock import FileLock, Timeout

from prme_ray.model.errors import InvalidRequest, InvalidSettings, StoreBusy, StoreCorrupt
from prme_ray.model.times import instant, iso
from storage.durable import TEMPORARY_SUFFIX, make_folders, write_atomically
from storage.migrations import FORMAT_VERSION, STEPS, FormatStep, steps_from
from storage.records import OwnerKey

__all__ = ["SHARD_LIMIT", "Catalog", "LogKind"]

LogKind = Literal["sqlite", "postgresql"]
"""Where a store has its log: in the shards' folders, or in a database (:mod:`storage.postgres_catalog`)."""

SHARD_LIMIT = 4096
"""Most virtual shards of a store."""

_NAME = "store.json"
_LOCKS = "locks"
_SHARDS = "shards"
_LOG = "log"
_LOCK_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Catalog:
    """What is known about a store before any shard is opened. Small, picklable, never a handle.

    Attributes:
        path: The store's folder, absolute.
        store_id: UUID given when the store was created.
        virtual_shards: Number of shards owners hash to; fixed for the life of the store.
        created_at: When it was created, UTC.

    Example:
        >>> from datetime import UTC, datetime
        >>> from tempfile import mkdtemp
        >>> identity = "0f3c2a52-6f0e-4f5b-9d6e-3f4a5b6c7d8e"
        >>> made = Catalog.open_or_create(mkdtemp(), virtual_shards=4, store_id=identity, created_at=datetime.now(UTC))
        >>> Catalog.open(made.path) == made
        True
    """

    path: Path
    store_id: str
    virtual_shards: int
    created_at: datetime

    @classmethod
    def open_or_create(
        cls,
        path: str | os.PathLike[str],
        *,
        virtual_shards: int,
        store_id: str,
        created_at: datetime,
        log: LogKind = "sqlite",
    ) -> Catalog:
        """Create the store at ``path``, or open the one that is there.

        Of several processes that create at once exactly one does; the others open what it made, and
        their ``virtual_shards``, ``store_id`` and ``created_at`` are not used.

        Raises:
            InvalidRequest: an argument is out of range.
            InvalidSettings: the store's log is in a database and ``log`` says here.
            StoreCorrupt: the folder has other content, or its ``store.json`` cannot be read.
            StoreFormatTooNew: a newer prme-ray made it.
            StoreBusy: another process kept the folder's lock too long.
        """
        if not 1 <= virtual_shards <= SHARD_LIMIT:
            raise InvalidRequest(argument="virtual_shards", given=virtual_shards, allowed=f"1 to {SHARD_LIMIT}")
        root = _absolute(path)
        document: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "store_id": _checked_uuid(store_id),
            "virtual_shards": virtual_shards,
            "created_at": iso(created_at),
        }
        if log != "sqlite":
            document[_LOG] = log
        if root.exists() and not root.is_dir():
            raise InvalidRequest(argument="path", given=str(root), allowed="a folder, not a file")
        if not (root / _NAME).exists():
            _check_creatable(root)
            make_folders(root / _LOCKS)
            with _exclusive(root):
                if not (root / _NAME).exists():
                    _check_creatable(root)
                    _write(root, document)
        return cls.open(root, log=log)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        log: LogKind = "sqlite",
        steps: Mapping[int, FormatStep] = STEPS,
        target: int = FORMAT_VERSION,
    ) -> Catalog:
        """Open the store at ``path``; an older format is first brought to ``target``, step by step.

        Args:
            path: The store's folder.
            read_only: Change nothing; an older format is then refused.
            log: Where the caller has the store's log.
            steps: The migration registry.
            target: Format to bring the store to.

        Raises:
            InvalidRequest: there is no store, or ``read_only`` and the format is older.
            InvalidSettings: the store's log is in a database and ``log`` says here.
            StoreCorrupt: the log is here and ``log`` says in a database; other content without
                ``store.json``, or a ``store.json`` that cannot be read.
            StoreFormatTooNew: a newer prme-ray made it.
            StoreBusy: another process kept the folder's lock too long.
        """
        root = _absolute(path)
        document = _load(root)
        if steps_from(document["format"], path=root, steps=steps, target=target):
            if read_only:
                raise InvalidRequest(
                    argument="read_only",
                    given=True,
                    allowed=f"False once, to bring store format {document['format']} to {target}",
                )
            with _exclusive(root):
                document = _load(root)
                for reached, step in steps_from(document["format"], path=root, steps=steps, target=target):
                    step(root)
                    document["format"] = reached
                    _write(root, document)
        _check_log(document, log, root)
        created_at = datetime.fromisoformat(document["created_at"]).astimezone(UTC)
        return cls(root, document["store_id"], document["virtual_shards"], created_at)

    @property
    def shards(self) -> range:
        """Numbers of all virtual shards, in use or not."""
        return range(self.virtual_shards)

    def shard_of(self, owner: OwnerKey) -> int:
        """Return the owner's shard: SHA-256 of tenant and owner, modulo the number of shards.

        The tenant's length goes first, so ``("ab", "c")`` and ``("a", "bc")`` are different owners.
        """
        tenant = owner.tenant.encode()
        digest = hashlib.sha256(len(tenant).to_bytes(8, "big") + tenant + owner.owner.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.virtual_shards

    def shard_path(self, shard: int) -> Path:
        """Return the folder of shard number ``shard``, which may not exist yet.

        Raises:
            InvalidRequest: no such shard.
        """
        if shard not in self.shards:
            raise InvalidRequest(argument="shard", given=shard, allowed=f"0 to {self.virtual_shards - 1}")
        return self.path / _SHARDS / f"{shard:03d}"


def _absolute(path: str | os.PathLike[str]) -> Path:
    return Path(path).expanduser().absolute()


def _checked_uuid(store_id: str) -> str:
    try:
        return str(UUID(store_id))
    except (ValueError, AttributeError):
        raise InvalidRequest(argument="store_id", given=store_id, allowed="a UUID") from None


def _exclusive(root: Path) -> Any:
    lock = FileLock(root / _LOCKS / "catalog.lock", timeout=_LOCK_TIMEOUT_S, thread_local=False)
    try:
        return lock.acquire()
    except Timeout:
        raise StoreBusy(what=f"the catalog of {root}", waited_s=_LOCK_TIMEOUT_S) from None


def _check_log(document: Mapping[str, Any], log: LogKind, root: Path) -> None:
    found = document.get(_LOG, "sqlite")
    if found == log:
        return
    if found == "postgresql":
        raise InvalidSettings(
            argument="storage.database_url",
            given=None,
            allowed=f"the database that holds the log of {root} (PRME_DATABASE_URL): the folder holds only what is "
            "made from it",
        )
    raise StoreCorrupt(
        path=str(root),
        detail="the store has its log in this folder, but the settings name a database; copy it there with "
        "python -m jobs.copy_log, then give an empty folder",
    )


def _check_creatable(root: Path) -> None:
    """Refuse a folder with content that is neither ours nor the rest of a creation that was killed."""
    if not root.exists():
        return
    others = sorted(
        entry.name
        for entry in root.iterdir()
        if entry.name != _LOCKS and not (entry.name.startswith(f".{_NAME}.") and entry.suffix == TEMPORARY_SUFFIX)
    )
    if _NAME in others:
        return  # another process has just created it
    if others:
        raise StoreCorrupt(path=str(root), detail=_no_catalog(others))


def _no_catalog(others: list[str]) -> str:
    if _SHARDS in others:
        return f"{_NAME} is missing although shards are there; restore it from a backup"
    return f"the folder holds {others[0]!r} but no {_NAME}, so it is not a store; give an empty or a new folder"


def _load(root: Path) -> dict[str, Any]:
    file = root / _NAME
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        _check_creatable(root)
        raise InvalidRequest(
            argument="path", given=str(root), allowed="the folder of a store, or open without read_only to create one"
        ) from None
    except NotADirectoryError:
        raise InvalidRequest(argument="path", given=str(root), allowed="a folder, not a file") from None
    except OSError as error:
        raise StoreCorrupt(path=str(file), detail=f"cannot be read: {error.strerror}") from error
    try:
        return _parsed(raw)
    except (ValueError, KeyError, TypeError, AttributeError, InvalidRequest) as error:
        raise StoreCorrupt(
            path=str(file),
            detail=f"is not a store description ({type(error).__name__}: {error}); restore it from a backup",
        ) from error


def _parsed(raw: bytes) -> dict[str, Any]:
    document = dict(json.loads(raw))
    version = document["format"]
    if type(version) is not int or version < 1:
        raise ValueError(f"format={version!r}")
    if version <= FORMAT_VERSION:  # a newer format may spell the rest differently
        UUID(document["store_id"])
        shards = document["virtual_shards"]
        if type(shards) is not int or not 1 <= shards <= SHARD_LIMIT:
            raise ValueError(f"virtual_shards={shards!r}")
        if instant(document["created_at"], "created_at") is None:
            raise ValueError("created_at=None")
        if document.get(_LOG, "sqlite") not in get_args(LogKind):
            raise ValueError(f"{_LOG}={document[_LOG]!r}")
    return document


def _write(root: Path, document: dict[str, Any]) -> None:
    write_atomically(root / _NAME, (json.dumps(document, indent=2) + "\n").encode())
