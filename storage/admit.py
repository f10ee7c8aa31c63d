"""Which entries of a batch enter the log. A pure decision, taken inside the log's transaction.

A record is known by (owner, kind, subject). A known one is never replaced: an entry marked
``if_absent`` is skipped, any other refuses its whole admission. What an earlier admission of the
same batch brings counts as known, what a refused one would have brought does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prme_ray.model.errors import DuplicateSubject, InvalidRequest, InvalidText, TerminalError
from storage.records import Admission, Entry, EntryKind, OwnerKey

__all__ = ["RecordKey", "admit"]

RecordKey = tuple[OwnerKey, EntryKind, str]
"""Owner, kind and subject of a record."""

_FLOAT32_BYTES = 4


def admit(
    admissions: Sequence[Admission], *, known: set[RecordKey], dimensions: Mapping[int, int]
) -> list[tuple[Entry, ...] | TerminalError]:
    """Return for each admission the entries to append, or why it is refused.

    Args:
        admissions: The batch, in order.
        known: Records already in the log; at least those the batch names.
        dimensions: Registered generations and the length of their vectors.

    Returns:
        One item an admission. Refusals: :class:`DuplicateSubject`; :class:`InvalidText` for text
        with a lone surrogate; :class:`InvalidRequest` for an unregistered generation or a vector
        of another size than 4 bytes times the generation's dimension.
    """
    present = set(known)
    decisions: list[tuple[Entry, ...] | TerminalError] = []
    for admission in admissions:
        decision = _decide(admission, present, dimensions)
        if not isinstance(decision, TerminalError):
            present.update((admission.owner, entry.kind, entry.subject) for entry in decision)
        decisions.append(decision)
    return decisions


def _decide(
    admission: Admission, present: set[RecordKey], dimensions: Mapping[int, int]
) -> tuple[Entry, ...] | TerminalError:
    taken: list[Entry] = []
    own: set[RecordKey] = set()
    for entry in admission.entries:
        key = (admission.owner, entry.kind, entry.subject)
        if key in present or key in own:
            if entry.if_absent:
                continue
            return DuplicateSubject(kind=str(entry.kind), subject=entry.subject)
        problem = _unstorable(entry, admission.generation, dimensions)
        if problem is not None:
            return problem
        own.add(key)
        taken.append(entry)
    return tuple(taken)


def _unstorable(entry: Entry, generation: int, dimensions: Mapping[int, int]) -> TerminalError | None:
    try:
        entry.subject.encode()
        entry.payload.encode()
    except UnicodeEncodeError as error:
        return InvalidText(
            argument=str(entry.kind),
            given=f"a lone surrogate at character {error.start}",
            allowed="remove it, or decode the source with the right encoding",
        )
    if entry.vector is None:
        return None
    dimension = dimensions.get(generation)
    if dimension is None:
        return InvalidRequest(argument="generation", given=generation, allowed=f"one of {sorted(dimensions)}")
    if len(entry.vector) != dimension * _FLOAT32_BYTES:
        return InvalidRequest(
            argument="vector",
            given=f"{len(entry.vector)} bytes",
            allowed=f"{dimension * _FLOAT32_BYTES} bytes: {dimension} little-endian float32 of generation {generation}",
        )
    return None
