"""Bearer keys of the HTTP service: a file that holds what they allow, and never the keys themselves.

A key is ``prk_<id>_<secret>``; the secret is 256 random bits. The file keeps the SHA-256 of id and
secret: the id is its salt, and a slow hash such as scrypt would protect nothing here, since there is
no dictionary of such secrets, while every request would pay for it and a flood of wrong keys would cost
the service its CPU.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from prme_ray.model.errors import InvalidRequest, NotFound
from prme_ray.model.service_errors import KeyFileUnreadable
from prme_ray.model.text import name_of

__all__ = [
    "KeyRecord",
    "NewKey",
    "Permission",
    "create_key",
    "read_keys",
    "revoke_key",
    "rotate_key",
    "secret_matches",
    "split_key",
]

_KEY = re.compile(r"prk_([0-9a-f]{16})_([0-9a-f]{64})")
_VERSION = 1


class Permission(StrEnum):
    """What a key may do."""

    READ = "memory:read"
    WRITE = "memory:write"
    ADMIN = "memory:admin"


class KeyRecord(BaseModel):
    """What the service knows of a key.

    Attributes:
        id: Public part of the key.
        digest: SHA-256 of id and secret, in hex.
        tenant: The only tenant it may act in.
        owner: The only owner it may act for; any of the tenant when ``None``.
        agent: The agent it belongs to: it acts for the owner of that name, in scope ``agent`` only.
        permissions: What it may do.
        created_at: When it was made.
        expires_at: Until when it is valid, exclusive.
        per_second: Requests a second, in the long run, of each replica; ``None`` for no limit.
        burst: Requests at once.
        label: Note of whoever made it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern="^[0-9a-f]{16}$")
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    tenant: str
    owner: str | None = None
    agent: str | None = None
    permissions: tuple[Permission, ...]
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None
    per_second: float | None = Field(default=None, gt=0, le=1e6)
    burst: int = Field(default=1, ge=1, le=1_000_000)
    label: str = ""

    @model_validator(mode="after")
    def _one_binding(self) -> KeyRecord:
        if self.owner is not None and self.agent is not None:
            raise ValueError("a key is bound to an owner or to an agent, not to both")
        return self

    def valid_at(self, now: datetime) -> bool:
        """Return whether it has not expired."""
        return self.expires_at is None or now < self.expires_at


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int = Field(default=_VERSION, ge=1, le=_VERSION)
    keys: tuple[KeyRecord, ...] = ()


class NewKey(NamedTuple):
    """A record and the key itself, which is shown once and kept nowhere."""

    record: KeyRecord
    key: str


def _new_secret() -> str:
    """Return 256 random bits in hex."""
    return secrets.token_hex(32)


def create_key(
    path: Path,
    *,
    tenant: str,
    permissions: Collection[str],
    now: datetime,
    owner: str | None = None,
    agent: str | None = None,
    expires_at: datetime | None = None,
    per_second: float | None = None,
    burst: int = 1,
    label: str = "",
    random_hex: Callable[[], str] = _new_secret,
) -> NewKey:
    """Add a key to the file, creating the file when missing; see :class:`KeyRecord` for the arguments.

    Raises:
        InvalidRequest: an argument is not allowed.
        KeyFileUnreadable: the file is broken.
    """
    wanted = [permission for permission in Permission if permission in set(permissions)]
    if not wanted or len(wanted) < len(set(permissions)):
        given = ", ".join(sorted(set(permissions))) or "nothing"
        raise InvalidRequest(argument="permissions", given=given, allowed=f"some of {', '.join(Permission)}")
    key_id, secret = random_hex()[:16], random_hex()
    fields = {
        "id": key_id,
        "digest": _digest(key_id, secret),
        "tenant": name_of(tenant, "tenant"),
        "owner": None if owner is None else name_of(owner, "owner"),
        "agent": None if agent is None else name_of(agent, "agent"),
        "permissions": wanted,
        "created_at": now,
        "expires_at": expires_at,
        "per_second": per_second,
        "burst": burst,
        "label": label,
    }
    try:
        record = KeyRecord.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "key"
        raise InvalidRequest(argument=name, given=str(fields.get(name, "these")), allowed=first["msg"]) from None
    with _changing(path) as keys:
        keys.append(record)
    return NewKey(record, f"prk_{key_id}_{secret}")


def rotate_key(
    path: Path, key_id: str, *, now: datetime, grace: timedelta, random_hex: Callable[[], str] = _new_secret
) -> NewKey:
    """Add a key that allows the same; the old one stays valid for ``grace``, at most until it expires anyway.

    Raises:
        NotFound: no such key.
        KeyFileUnreadable: the file is missing or broken.
    """
    new_id, secret = random_hex()[:16], random_hex()
    with _changing(path) as keys:
        place = _place(keys, key_id)
        old = keys[place]
        end = now + grace
        keys[place] = old.model_copy(update={"expires_at": min(end, old.expires_at or end)})
        record = old.model_copy(update={"id": new_id, "digest": _digest(new_id, secret), "created_at": now})
        keys.append(record)
    return NewKey(record, f"prk_{new_id}_{secret}")


def revoke_key(path: Path, key_id: str) -> None:
    """Take a key out of the file.

    Raises:
        NotFound: no such key.
        KeyFileUnreadable: the file is missing or broken.
    """
    with _changing(path) as keys:
        del keys[_place(keys, key_id)]


def read_keys(path: Path) -> tuple[KeyRecord, ...]:
    """Return the keys of a file.

    Raises:
        KeyFileUnreadable: it is missing or broken.
    """
    try:
        return _File.model_validate_json(path.read_bytes()).keys
    except (OSError, ValidationError) as error:
        detail = f"{error.error_count()} errors" if isinstance(error, ValidationError) else type(error).__name__
        raise KeyFileUnreadable(path=str(path), detail=detail) from error


def split_key(key: str) -> tuple[str, str] | None:
    """Return id and secret of a key, or ``None`` for text of another form."""
    found = _KEY.fullmatch(key)
    return None if found is None else (found[1], found[2])


def secret_matches(record: KeyRecord | None, key_id: str, secret: str) -> bool:
    """Return whether it is the record's secret, in a time that says nothing, be there a record or not."""
    expected = _digest("", "") if record is None else record.digest
    return hmac.compare_digest(expected, _digest(key_id, secret)) and record is not None


def _digest(key_id: str, secret: str) -> str:
    return hashlib.sha256(f"prme-ray key {key_id} {secret}".encode()).hexdigest()


def _place(keys: list[KeyRecord], key_id: str) -> int:
    for place, record in enumerate(keys):
        if record.id == key_id:
            return place
    raise NotFound(kind="key", id=key_id)


@contextmanager
def _changing(path: Path) -> Iterator[list[KeyRecord]]:
    """Give the keys for changing, and put a whole new file in place; a service never reads half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        keys = list(read_keys(path)) if path.exists() else []
        yield keys
        fresh = path.with_name(f"{path.name}.new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_File(keys=tuple(keys)).model_dump_json(indent=1).encode())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
