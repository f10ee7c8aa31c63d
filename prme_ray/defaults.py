"""What an open store uses where a caller gives nothing."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings import Settings
from prme_ray.model.text import name_of
from storage.records import OwnerKey

__all__ = ["DEFAULT_TENANT", "new_uuid", "owner_key", "settings_of", "utc_now"]

DEFAULT_TENANT = "default"
"""Tenant of callers that have only one."""


def utc_now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


def new_uuid() -> str:
    """Return a random UUID as text."""
    return str(uuid.uuid4())


def owner_key(tenant: str, owner: str) -> OwnerKey:
    """Return the key of an owner, names in NFC.

    Raises:
        InvalidRequest: a name is empty or too long.
        InvalidText: a name is no string, or has NUL or a lone surrogate.
    """
    return OwnerKey(name_of(tenant, "tenant"), name_of(owner, "owner"))


def settings_of(given: Any) -> Settings:
    """Return the settings a caller gave; the product defaults for ``None``.

    Raises:
        InvalidSettings: not settings and no mapping of them, or a key in it is wrong.
    """
    if given is None:
        return Settings()
    if isinstance(given, Settings):
        return given.checked()
    if not isinstance(given, Mapping):
        raise InvalidSettings(argument="settings", given=given, allowed="Settings or a mapping of its fields")
    return Settings.parse(dict(given))
