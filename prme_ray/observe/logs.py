"""Structured logs: one JSON object a line, and nothing in it that anybody stored or asked.

Our own messages are written with that in mind. Exceptions are not: a database quotes the row it could
not take. So a log line has an exception's type and the places it passed through, never what it says,
unless it is one of our own errors that only hold paths, numbers and identities.
"""

from __future__ import annotations

import json as json_lib
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from prme_ray.model import errors
from prme_ray.model.errors import InvalidRequest, PrmeRayError
from prme_ray.model.frames import frames_of
from prme_ray.observe.line_writer import LineWriter

__all__ = ["FIELDS", "LineFormatter", "configure_logging"]

FIELDS = ("request_id", "route", "status", "duration_ms", "code", "channel", "stage", "actor", "shard", "attempt")
"""Keys of ``extra=`` that reach a line; any other is dropped, because it may hold anything."""

_LOGGERS = ("prme_ray", "storage", "actors", "stages", "jobs")
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_SAYS_NO_TEXT = (
    errors.EncoderFileMismatch,
    errors.EncoderMismatch,
    errors.ReadOnlyStore,
    errors.StoreBusy,
    errors.StoreClosed,
    errors.StoreFormatTooNew,
    errors.StoreLocked,
    errors.TokenizerUnavailable,
    errors.WriterFenced,
)


class LineFormatter(logging.Formatter):
    """Formats a record as one line.

    Args:
        json: A JSON object; else plain text with ``key=value`` behind the message.
    """

    def __init__(self, *, json: bool = True) -> None:
        super().__init__()
        self._json = json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line break."""
        head = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        given = record.__dict__
        fields: dict[str, Any] = {key: given[key] for key in FIELDS if given.get(key) is not None}
        if record.exc_info is not None and record.exc_info[1] is not None:
            fields["exception"] = _described(record.exc_info[1])
        if self._json:
            return json_lib.dumps({**head, **fields}, ensure_ascii=False, default=str)
        pairs = "".join(f" {key}={json_lib.dumps(value, default=str)}" for key, value in fields.items())
        message = head["message"].replace("\n", "\\n")
        return f"{head['ts']} {head['level']:<8} {head['logger']}: {message}{pairs}"


def configure_logging(*, json: bool = True, level: str = "INFO", stream: TextIO | None = None) -> logging.Handler:
    """Send the package's logs to a stream; calling it again replaces what the last call set.

    Returns what writes them: a thread, which is a quarter of a second late unless something is wrong (``flush``).

    Other libraries' loggers are left as they are. Importing the package configures nothing.

    Args:
        json: One JSON object a line; else plain text.
        level: Lowest level: DEBUG, INFO, WARNING, ERROR or CRITICAL, in any case.
        stream: Where to; standard error when left out.

    Raises:
        InvalidRequest: an unknown level.
    """
    if level.upper() not in _LEVELS:
        raise InvalidRequest(argument="level", given=level, allowed=f"one of {', '.join(_LEVELS)}")
    handler = LineWriter(sys.stderr if stream is None else stream)
    handler.setFormatter(LineFormatter(json=json))
    replaced: set[logging.Handler] = set()
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for old in [one for one in logger.handlers if isinstance(one.formatter, LineFormatter)]:
            logger.removeHandler(old)
            replaced.add(old)
        logger.addHandler(handler)
        logger.setLevel(level.upper())
        logger.propagate = False  # a handler of the root logger would print exceptions in full
    for old in replaced:
        old.close()
    return handler


def _described(error: BaseException) -> dict[str, Any]:
    found: dict[str, Any] = {"type": type(error).__name__, "at": frames_of(error)}
    if isinstance(error, PrmeRayError):
        found["code"] = error.code
    if isinstance(error, _SAYS_NO_TEXT):
        found["message"] = str(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        found["cause"] = type(cause).__name__
    return found
