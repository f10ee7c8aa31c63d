"""Counts records that could not be written, and says so once an outage."""

from __future__ import annotations

import logging
import threading

__all__ = ["Losses"]

_report = logging.getLogger(__name__)


class Losses:
    """Records are evidence, not data: losing one is counted and said, never raised into an answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._losing = False

    @property
    def count(self) -> int:
        """Records lost so far."""
        return self._count

    def add(self, count: int, why: str) -> None:
        """Count lost records; ``why`` holds no memory and no question."""
        with self._lock:
            self._count += count
            first, self._losing = not self._losing, True
        if first:  # an outage must not fill the process's log
            _report.warning("operation records are being lost: %s", why)

    def end(self) -> None:
        """Say that records are written again: the next loss is reported."""
        self._losing = False
