"""The turns around a memory in its session (RFC-0005 §4.5, digest a §3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.ordering import ordered

__all__ = ["SessionOrder"]


class SessionOrder:
    """An owner's memories of all sessions, arranged once for any number of requests.

    Args:
        partition: Number of each memory's exact (session, scope) pair, -1 without a session,
            shape (memories,).
        created: Creation times in microseconds, shape (memories,).
        ids: Id of every memory.
    """

    def __init__(self, partition: npt.NDArray[Any], created: npt.NDArray[np.int64], *, ids: Sequence[str]) -> None:
        self._partition = partition
        rows = np.flatnonzero(partition >= 0)
        self._arranged = rows[ordered(rows, [partition[rows], created[rows]], ids=ids)]

    def windows(
        self, triggers: npt.NDArray[np.int64], *, window: int, allowed: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return the neighbours of each trigger, at most ``window`` places to either side.

        Places are counted among the allowed memories of the trigger's session and scope, ordered by
        (creation, id). A trigger without a session or not allowed itself has no neighbours.

        Args:
            triggers: Rows of the triggers.
            window: Places to each side; 0 or less gives nothing.
            allowed: Memories that may be returned, shape (memories,).

        Returns:
            Position in ``triggers``, row and signed offset of each neighbour, trigger by trigger and
            from the earliest to the latest; the trigger itself is not among them.
        """
        arranged = self._arranged[allowed[self._arranged]]
        if window <= 0 or not len(triggers) or not len(arranged):
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
        place = np.full(len(self._partition), -1, dtype=np.int64)
        place[arranged] = np.arange(len(arranged))
        reach = min(window, len(arranged))
        offsets = np.concatenate((np.arange(-reach, 0), np.arange(1, reach + 1)))
        wanted = place[triggers][:, None] + offsets
        inside = (place[triggers] >= 0)[:, None] & (wanted >= 0) & (wanted < len(arranged))
        rows = arranged[np.clip(wanted, 0, len(arranged) - 1)]
        inside &= self._partition[rows] == self._partition[triggers][:, None]
        which, column = np.nonzero(inside)
        return which, rows[inside], offsets[column].astype(np.int32)
