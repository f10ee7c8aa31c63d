"""Wording that says something about time: computed once per memory when it is admitted.

The two flags are columns of the node table (:mod:`prme_ray.model.tables`), so that scoring 1,000
candidates runs no regular expression. They are derived data: :data:`WORDING_VERSION` is part of
the projections' identity, and a change of it rebuilds them from the log.
"""

from __future__ import annotations

import re

__all__ = ["WORDING_VERSION", "has_date", "has_update_wording"]

WORDING_VERSION = 1

_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)"
)
_DATE = re.compile(
    rf"\b(?:{_MONTH}(?:\s+\d{{1,2}})?(?:,?\s+\d{{4}})?"
    rf"|\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}"
    rf"|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}"
    rf"|\d{{1,2}}\s+{_MONTH}(?:\s+\d{{4}})?"
    rf"|(?:19|20)\d{{2}})\b",
    re.IGNORECASE,
)
_UPDATE = re.compile(
    r"changed to|switched to|migrated from|migrated to|moved to|replaced|updated to|now uses|no longer"
    r"|rewritten|upgraded to|new\s+\S+\s+is|effective immediately"
    r"|(?:changed|moved)[^.!?\n]{0,80}?\bnow\b|\bupdated\b",
    re.IGNORECASE,
)


def has_date(content: str) -> bool:
    """Return whether ``content`` holds a date-like token (digest a §6.2, ``D``)."""
    return _DATE.search(content) is not None


def has_update_wording(content: str) -> bool:
    """Return whether ``content`` presents itself as an update (digest a §2.5)."""
    return _UPDATE.search(content) is not None
