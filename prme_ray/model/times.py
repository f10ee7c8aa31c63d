"""Instants: exact to the microsecond, always with an offset, never the process time zone.

In Arrow an instant is ``timestamp('us', 'UTC')``; inside NumPy it is an ``int64`` count of
microseconds since 1970-01-01T00:00Z, with :data:`NO_TIME` for "none".
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prme_ray.model.errors import InvalidRequest

__all__ = ["DAY_US", "NO_TIME", "Instant", "from_micros", "instant", "iso", "micros"]

Instant = datetime | str
"""What callers may give: an aware datetime, or ISO 8601 text with an offset or ``Z``."""

NO_TIME = -(2**63)
"""Stands for "no time" in ``int64`` arrays; smaller than every real instant."""

DAY_US = 86_400_000_000
"""Microseconds in a day."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant(value: Instant | None, argument: str) -> datetime | None:
    """Return ``value`` as an aware UTC datetime, or ``None`` for ``None``.

    Raises:
        InvalidRequest: not a datetime or ISO 8601 text, or without an offset.
    """
    if value is None:
        return None
    parsed = value
    if isinstance(parsed, str):
        try:
            parsed = datetime.fromisoformat(parsed)
        except ValueError:
            raise InvalidRequest(argument=argument, given=value, allowed=_ALLOWED) from None
    if not isinstance(parsed, datetime) or parsed.utcoffset() is None:
        raise InvalidRequest(argument=argument, given=value, allowed=_ALLOWED)
    try:
        return parsed.astimezone(UTC)
    except OverflowError:
        raise InvalidRequest(argument=argument, given=value, allowed="a year from 1 to 9999 in UTC") from None


_ALLOWED = "a datetime with a time zone, or ISO 8601 text with an offset such as 2026-05-04T10:00:00Z"


def micros(value: datetime) -> int:
    """Return microseconds since the epoch; exact, since no float is involved."""
    return (value - _EPOCH) // _MICROSECOND


def from_micros(value: int) -> datetime:
    """Return the UTC datetime of ``value`` microseconds since the epoch."""
    return _EPOCH + timedelta(microseconds=value)


def iso(value: datetime) -> str:
    """Return ISO 8601 in UTC with ``Z``, microseconds only when nonzero."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
