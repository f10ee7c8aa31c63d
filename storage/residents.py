"""Owners kept in memory, within a byte budget; the least recently used leave first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

from storage.owner_state import OwnerState

__all__ = ["ResidentKey", "Residents"]

ResidentKey = tuple[int, int]
"""Shard number and owner number."""

Key = TypeVar("Key", bound=tuple[int, ...])


class Residents(Generic[Key]):
    """An LRU of owner states, by a key whose first numbers are those of a :data:`ResidentKey`.

    An owner that is larger than the whole budget is still served: it is the last to leave, and
    leaves as soon as another owner is used. Views handed out stay valid after their owner left.

    Args:
        budget_bytes: Bytes all resident owners together may take.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._states: OrderedDict[Key, OwnerState] = OrderedDict()
        self._lock = threading.Lock()
        self.evictions = 0

    def get(self, key: Key) -> OwnerState | None:
        """Return the owner's state and count it as used now, or ``None``."""
        with self._lock:
            state = self._states.get(key)
            if state is not None:
                self._states.move_to_end(key)
            return state

    def peek(self, key: Key) -> OwnerState | None:
        """Return the owner's state without counting it as used."""
        with self._lock:
            return self._states.get(key)

    def put(self, key: Key, state: OwnerState) -> None:
        """Add an owner, in the place of the same one, and let the least recently used leave until the budget holds."""
        with self._lock:
            replaced = self._states.pop(key, state)
            self._states[key] = state
            left = self._shrink()
        _close(left if replaced is state else [replaced, *left])

    def trim(self) -> None:
        """Let owners leave that writes have pushed over the budget."""
        with self._lock:
            left = self._shrink()
        _close(left)

    def of_shard(self, shard: int) -> dict[int, OwnerState]:
        """Return the resident owners of a shard by owner number."""
        with self._lock:
            return {key[1]: state for key, state in self._states.items() if key[0] == shard}

    def nbytes(self) -> int:
        """Return the estimated bytes of all resident owners."""
        with self._lock:
            return sum(state.nbytes for state in self._states.values())

    def clear(self) -> None:
        """Let every owner leave."""
        with self._lock:
            left = list(self._states.values())
            self._states.clear()
        _close(left)

    def _shrink(self) -> list[OwnerState]:
        left: list[OwnerState] = []
        total = sum(state.nbytes for state in self._states.values())
        while total > self.budget_bytes and len(self._states) > 1:
            _, state = self._states.popitem(last=False)
            total -= state.nbytes
            left.append(state)
            self.evictions += 1
        return left


def _close(states: list[OwnerState]) -> None:
    for state in states:
        state.close()
