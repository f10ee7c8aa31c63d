"""The format of a store's folder, and the door through which later formats come.

A format step is a function that changes the files of one store from format ``n`` to ``n + 1``. It
must be repeatable: a process killed between the step and the new ``store.json`` runs it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from prme_ray.model.errors import StoreCorrupt, StoreFormatTooNew

__all__ = ["FORMAT_VERSION", "STEPS", "FormatStep", "steps_from"]

FORMAT_VERSION = 1
"""Format this version writes."""

FormatStep = Callable[[Path], None]
"""Takes the store's folder; raises when it cannot change it."""

STEPS: dict[int, FormatStep] = {}
"""Format a step starts from, to the step. Format 1 is the first, so nothing is older yet."""


def steps_from(
    found: int, *, path: Path, steps: Mapping[int, FormatStep] = STEPS, target: int = FORMAT_VERSION
) -> list[tuple[int, FormatStep]]:
    """Return ``(format reached, step)`` for every step from format ``found`` to ``target``, in order.

    Raises:
        StoreFormatTooNew: ``found`` is newer than ``target``.
        StoreCorrupt: a step is missing on the way.
    """
    if found > target:
        raise StoreFormatTooNew(path=str(path), found=found, supported=target)
    missing = [number for number in range(found, target) if number not in steps]
    if missing:
        raise StoreCorrupt(
            path=str(path),
            detail=f"store format {found} cannot be brought to {target}: no step from format {missing[0]}; "
            "open it with an older prme-ray and export it",
        )
    return [(number + 1, steps[number]) for number in range(found, target)]
