"""Which entries of a batch enter the log. A pure decision, taken inside the log's transaction.

A record is known by (owner, kind, subject). A known one is never replaced: an entry marked
``if_absent`` is skipped, any other refuses its whole admission. What an earlier admission of the
same batch brings counts as known, what a refused one would have brought does not.

An admission that comes again, because its writer did not hear the first answer, is told apart from
one that takes an id twice by its bytes: all its records are known and hold the same payloads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from prme_ray.model.errors import DuplicateSubject, InvalidRequest, InvalidText, TerminalError
from storage.records import Admission, Entry, EntryKind, OwnerKey

__all__ = ["REPEATED", "Decision", "RecordKey", "Repeated", "admit", "record_keys"]

RecordKey = tuple[OwnerKey, EntryKind, str]
"""Owner, kind and subject of a record."""

_FLOAT32_BYTES = 4


class Repeated:
    """The log, or an earlier admission of the batch, has the whole admission already."""


REPEATED: Final = Repeated()

Decision = tuple[Entry, ...] | Repeated | TerminalError
"""The entries to append; that nothing is to be appended; or why the admission is refused."""


def record_keys(admission: Admission) -> list[RecordKey]:
    """Return the keys of an admission's records, in order."""
    return [(admission.owner, entry.kind, entry.subject) for entry in admission.entries]


def admit(
    admissions: Sequence[Admission], *, known: Mapping[RecordKey, str | None], dimensions: Mapping[int, int]
) -> list[Decision]:
    """Return for each admission the entries to append, or why there are none.

    Args:
        admissions: The batch, in order.
        known: Records already in the log, at least those the batch names, and their payloads;
            ``None`` where no entry without ``if_absent`` names the record.
        dimensions: Registered generations and the length of their vectors.

    Returns:
        One item an admission. Refusals: :class:`DuplicateSubject`; :class:`InvalidText` for text
        with NUL or a lone surrogate; :class:`InvalidRequest` for an unregistered generation or a
        vector of another size than 4 bytes times the generation's dimension.
    """
    present = dict(known)
    decisions: list[Decision] = []
    for admission in admissions:
        decision = _decide(admission, present, dimensions)
        if isinstance(decision, tuple):
            present.update(((admission.owner, entry.kind, entry.subject), entry.payload) for entry in decision)
        decisions.append(decision)
    return decisions


def _decide(admission: Admission, present: Mapping[RecordKey, str | None], dimensions: Mapping[int, int]) -> Decision:
    if _is_repeated(admission, present):
        return REPEATED
    taken: list[Entry] = []
    own: set[RecordKey] = set()
    for key, entry in zip(record_keys(admission), admission.entries, strict=True):
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


def _is_repeated(admission: Admission, present: Mapping[RecordKey, str | None]) -> bool:
    keys = record_keys(admission)
    brought = [(key, entry) for key, entry in zip(keys, admission.entries, strict=True) if not entry.if_absent]
    # Vectors are not compared: they follow from the text, and the log's own never change.
    return (
        bool(brought)
        and len({key for key, _ in brought}) == len(brought)
        and all(key in present for key in keys)
        and all(present[key] == entry.payload for key, entry in brought)
    )


def _unstorable(entry: Entry, generation: int, dimensions: Mapping[int, int]) -> TerminalError | None:
    problem = _unstorable_text(entry.subject) or _unstorable_text(entry.payload)
    if problem is not None:
        return InvalidText(argument=str(entry.kind), given=problem[0], allowed=problem[1])
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


def _unstorable_text(text: str) -> tuple[str, str] | None:
    """Return what is wrong with a text and what to do; both databases refuse the same."""
    nul = text.find("\0")
    if nul >= 0:
        return f"a NUL character at character {nul}", "remove it; no memory needs one"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"a lone surrogate at character {error.start}", "remove it, or decode the source with the right encoding"
    return None
