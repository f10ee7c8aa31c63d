"""Who asks, and for whom: bearer keys, their bindings and their rates."""

from __future__ import annotations

import ipaddress
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from prme_ray.defaults import DEFAULT_TENANT, utc_now
from prme_ray.keys import KeyRecord, Permission, read_keys, secret_matches, split_key
from prme_ray.model.enums import Scope
from prme_ray.model.errors import InvalidRequest, InvalidSettings
from prme_ray.model.service_errors import Forbidden, KeyFileUnreadable, RateLimited, Unauthenticated, WrongHost
from prme_ray.model.text import name_of

__all__ = ["Access", "Identity", "check_bind"]

_HOST = re.compile(r"^(?:\[(.*)\]|([^:]*))(?::\d*)?$")
"""An address or name and a port; an IPv6 address stands in brackets."""
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Identity:
    """What the key of a request allows.

    Attributes:
        permissions: What may be done.
        tenant: The only tenant; any when ``None``.
        owner: The only owner; any of the tenant when ``None``.
        scope: The only scope; all when ``None``.
    """

    permissions: frozenset[Permission]
    tenant: str | None = None
    owner: str | None = None
    scope: Scope | None = None

    def require(self, permission: Permission) -> None:
        """Refuse what the key does not allow.

        Raises:
            Forbidden: naming the permission that is missing.
        """
        if permission not in self.permissions:
            raise Forbidden(detail=f"it lacks {permission}")

    def whose(self, tenant: str | None, owner: str | None) -> tuple[str, str]:
        """Return tenant and owner of a request that names them or leaves them to the key.

        Nothing is looked up, so the answer says nothing about what exists.

        Raises:
            Forbidden: the key is bound to another tenant or owner.
            InvalidRequest: no owner, and the key is bound to none.
        """
        wanted = None if tenant is None else name_of(tenant, "tenant")
        if self.tenant is not None and wanted not in {None, self.tenant}:
            raise Forbidden(detail="it is bound to another tenant")
        who = None if owner is None else name_of(owner, "owner")
        if self.owner is not None and who not in {None, self.owner}:
            raise Forbidden(detail="it is bound to another owner")
        found = who or self.owner
        if found is None:
            raise InvalidRequest(argument="owner", given="nothing", allowed="an owner: the key is bound to none")
        return wanted or self.tenant or DEFAULT_TENANT, found


_ANYONE = Identity(frozenset(Permission))


class Access:
    """Lets requests in.

    The file of keys is looked at before every request and read again when it changed; while it cannot be
    read nobody is let in. Rates are counted in this process: with several replicas each counts its own.

    Args:
        keys: File of ``prme-ray keys``; without it everybody may do everything.
        clock: Returns the current UTC time.
        ticks: Returns seconds that only grow.
    """

    def __init__(
        self,
        keys: str | Path | None = None,
        *,
        clock: Callable[[], datetime] = utc_now,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = None if keys is None else Path(keys)
        self._clock = clock
        self._ticks = ticks
        self._stamp: tuple[int, int, int] | None = None
        self._records: dict[str, KeyRecord] = {}
        self._buckets: dict[str, tuple[float, float]] = {}

    @property
    def open(self) -> bool:
        """Whether no keys are asked for."""
        return self._path is None

    def identify(self, key: str | None) -> Identity:
        """Return what the key of a request allows.

        Raises:
            Unauthenticated: no key, an unknown or an expired one; which of them is not told.
            RateLimited: the key's rate is used up.
            KeyFileUnreadable: the file of keys is missing or broken.
        """
        if self._path is None:
            return _ANYONE
        self.refresh()
        key_id, secret = (None if key is None else split_key(key)) or ("", "")
        record = self._records.get(key_id)
        if not secret_matches(record, key_id, secret) or record is None or not record.valid_at(self._clock()):
            raise Unauthenticated(detail="no key" if key is None else "the key is not valid")
        self._take(record)
        return Identity(
            permissions=frozenset(record.permissions),
            tenant=record.tenant,
            owner=record.agent or record.owner,
            scope=None if record.agent is None else Scope.AGENT,
        )

    def check_host(self, header: str | None) -> None:
        """Refuse a name that is not this machine's own where no keys are asked for.

        A page of any site can have its own name resolved to 127.0.0.1 and then ask as if it came from
        there; only the name tells (DNS rebinding). Browsers always send one.

        Args:
            header: The ``Host`` header, ``None`` where there is none.

        Raises:
            WrongHost: the name is neither loopback nor localhost.
        """
        if self._path is None and header is not None and not _is_loopback(_HOST.sub(r"\1\2", header)):
            raise WrongHost(given=header[:_SHOWN])

    def refresh(self) -> None:
        """Read the file of keys where it changed.

        Raises:
            KeyFileUnreadable: it is missing or broken.
        """
        if self._path is None:
            return
        try:
            state = os.stat(self._path)
        except OSError as error:
            self._stamp = None
            raise KeyFileUnreadable(path=str(self._path), detail=type(error).__name__) from error
        stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
        if stamp != self._stamp:
            self._stamp = None
            self._records = {record.id: record for record in read_keys(self._path)}
            self._buckets = {key_id: bucket for key_id, bucket in self._buckets.items() if key_id in self._records}
            self._stamp = stamp

    def _take(self, record: KeyRecord) -> None:
        if record.per_second is None:
            return
        now = self._ticks()
        tokens, last = self._buckets.get(record.id, (float(record.burst), now))
        tokens = min(float(record.burst), tokens + (now - last) * record.per_second)
        if tokens < 1:
            self._buckets[record.id] = (tokens, now)
            raise RateLimited(retry_after_s=(1 - tokens) / record.per_second)
        self._buckets[record.id] = (tokens - 1, now)


def check_bind(host: str, access: Access) -> None:
    """Refuse to listen where others could come in without a key.

    Raises:
        InvalidSettings: ``host`` is not a loopback address and there are no keys.
    """
    if access.open and not _is_loopback(host):
        raise InvalidSettings(
            argument="host",
            given=host,
            allowed="127.0.0.1, ::1 or localhost, or a file of keys (`prme-ray keys create`)",
        )


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may mean any address, now or later
