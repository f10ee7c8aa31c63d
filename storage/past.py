"""Owners as they were: states at earlier numbers, folded when somebody asks and kept for a while.

They have a memory budget of their own, so that looking back never makes a present owner leave.
"""

from __future__ import annotations

import threading

from storage.owner_loader import OwnerLoader
from storage.owner_state import OwnerState
from storage.residents import Residents
from storage.view import OwnerView

__all__ = ["PastKey", "PastReader", "PastStates"]

PastKey = tuple[int, int, int]
"""Shard number, owner number, encoder generation."""

_GROWTH = 1024
"""A kept state grows to a later number by so many entries at most; beyond, the tables are read: faster."""


class PastStates(Residents[PastKey]):
    """The states that are kept, one an owner and generation; each has the last numbers asked for.

    Args:
        budget_bytes: Bytes all of them together may take; one that is larger stays until the next comes.
    """


class PastReader:
    """Past states of one shard's owners. Any thread may ask; one at a time folds.

    Args:
        number: Shard number.
        loader: Reads owners from the shard.
        kept: Memory shared by all shards of the process.
    """

    def __init__(self, number: int, loader: OwnerLoader, *, kept: PastStates) -> None:
        self._number = number
        self._loader = loader
        self._kept = kept
        self._lock = threading.Lock()

    def view(self, owner_no: int, owner_seq: int, *, generation: int) -> OwnerView:
        """Return the owner's state at a number that the log has, with the vectors of a generation it has.

        Raises:
            StoreBusy, StoreCorrupt: the tables or the log cannot be read.
        """
        key = (self._number, owner_no, generation)
        view = _view_of(self._kept.get(key), owner_seq)
        if view is not None:
            return view
        with self._lock:
            state = self._kept.get(key)
            missing = 0 if state is None else owner_seq - state.owner_seq
            if state is not None and 0 < missing <= _GROWTH:
                self._loader.follow(state, generation=generation, limit=missing)
            view = _view_of(state, owner_seq)  # none too where the state left memory meanwhile
            if view is None:
                budget = self._kept.budget_bytes
                state = self._loader.at(owner_no, owner_seq, generation=generation, vector_bytes=budget)
                view = state.view()
            if state is not None:
                state.release()  # nothing may ever be added again
                self._kept.put(key, state)
            return view


def _view_of(state: OwnerState | None, owner_seq: int) -> OwnerView | None:
    return None if state is None else state.view_at(owner_seq)
