"""What was read of an Arrow object, kept as long as the object lives.

Arrow objects never change, and a retrieval reads the same columns of them in one stage after the
other. Each reading makes Python objects of what Arrow holds, a few microseconds a column, which adds
up to more than the arithmetic done with the values.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Known", "known_of"]


class Known(weakref.ref[Any]):
    """What was read of one object. It may hold parts of the object, never the object itself.

    Attributes:
        arrays: Columns or fields as Arrow arrays, by name.
        numbers: The same as NumPy arrays, none of which can be written to, by name and filling of nulls.
        ids: Ids of memories as Python strings, once asked for.
        ranks: Places of those ids in order, once asked for.
        place: Where it stands in memory, once asked for.
    """

    __slots__ = ("arrays", "ids", "key", "numbers", "place", "ranks")

    arrays: dict[str, Any]
    numbers: dict[tuple[str, Any], npt.NDArray[Any]]
    ids: list[str] | None
    ranks: npt.NDArray[np.int64] | None
    place: tuple[int | None, ...] | None
    key: int


_KNOWN: dict[int, Known] = {}


def known_of(thing: Any) -> Known:
    """Return what is known of an Arrow object. Two threads may make it twice; either may stay."""
    key = id(thing)
    known = _KNOWN.get(key)
    if known is None:
        known = Known(thing, _forget)
        known.key, known.arrays, known.numbers = key, {}, {}
        known.ids = known.ranks = known.place = None
        _KNOWN[key] = known
    return known


def _forget(known: Known, kept: dict[int, Known] = _KNOWN) -> None:
    # Called before the object's number can be given to another one; at the interpreter's end, when the
    # module's own names are gone, too.
    kept.pop(known.key, None)
