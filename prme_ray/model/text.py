"""What text and names are accepted. Accepted text is stored unchanged, byte for byte."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from prme_ray.model.errors import InvalidRequest, InvalidText

__all__ = ["check_text", "name_of", "uuid_of"]

_REFUSED = re.compile("[\x00\ud800-\udfff]")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NAME_LIMIT = 1024
"""Longest tenant, owner or session name, in characters."""


def check_text(value: Any, argument: str, item: int | None = None) -> str:
    """Return ``value`` unchanged.

    Raises:
        InvalidText: not a string, or with NUL (no index can hold it) or a lone surrogate
            (it has no UTF-8 form).
    """
    if not isinstance(value, str):
        raise InvalidText(argument=argument, given=f"type {type(value).__name__}", allowed="give a string", item=item)
    found = _REFUSED.search(value)
    if found is not None:
        what = "a NUL character" if found.group() == "\x00" else "a lone surrogate"
        raise InvalidText(
            argument=argument,
            given=f"{what} at character {found.start()}",
            allowed="remove it, or decode the source with the right encoding",
            item=item,
        )
    return value


def name_of(value: Any, argument: str) -> str:
    """Return a tenant, owner or session name in NFC, so that equal-looking spellings are one name.

    Raises:
        InvalidRequest: empty or longer than :data:`NAME_LIMIT`.
        InvalidText: not a string, or with NUL or a lone surrogate.
    """
    name = unicodedata.normalize("NFC", check_text(value, argument))
    if not name or len(name) > NAME_LIMIT:
        raise InvalidRequest(argument=argument, given=name[:40], allowed=f"1 to {NAME_LIMIT} characters")
    return name


def uuid_of(value: Any, argument: str) -> str:
    """Return a UUID in lower case, with hyphens.

    Raises:
        InvalidRequest: text of another form.
        InvalidText: not a string, or with NUL or a lone surrogate.
    """
    text = check_text(value, argument).lower()
    if not _UUID.fullmatch(text):
        raise InvalidRequest(
            argument=argument, given=value, allowed="a UUID such as 6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
        )
    return text
