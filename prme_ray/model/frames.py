"""Where an exception was raised, for logs: a foreign message may quote the memory that it is about."""

from __future__ import annotations

import traceback

__all__ = ["frames_of", "where"]

_FRAMES = 8


def frames_of(error: BaseException) -> list[str]:
    """Return the last places that an exception passed, innermost first: file, line, function."""
    found = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(found)]


def where(error: BaseException) -> str:
    """Return type and places of an exception in one line, and nothing of what it says."""
    return f"{type(error).__name__} at {' < '.join(frames_of(error))}"
