"""The chain over an owner's operations: each record seals the one before it (decision 21).

A record's chain value is the SHA-256 over the value before it and everything the record says. The
owner's row counts the records and keeps the newest value. So whoever removes, changes or reorders
records behind the log's back has to write every later one of that owner again, and then no longer
agrees with a value that somebody noted: snapshot records hand one out with every retrieval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.records import OperationRow, OwnerKey

__all__ = ["CHAIN_START", "MOST_BREAKS", "BreakKind", "ChainBreak", "ChainChecker", "ChainReport", "chain_of"]

CHAIN_START = bytes(32)
"""What comes before an owner's first record."""

MOST_BREAKS = 1000
"""A check ends after so many: the rest of a chain in that state says nothing new."""


def chain_of(owner: OwnerKey, row: OperationRow, *, number: int | None = None) -> bytes:
    """Return the chain value of a record.

    Args:
        owner: The owner.
        row: The record; ``op_seq``, ``owner_no`` and ``chain`` do not count.
        number: The owner's number of the record; its own when ``None``.
    """
    said = (
        owner.tenant.encode(),
        owner.owner.encode(),
        str(row.owner_op_seq if number is None else number).encode(),
        row.op_type.encode(),
        row.target.encode(),
        str(row.recorded_at).encode(),
        row.payload,
    )
    sealed = hashlib.sha256(row.previous)
    for part in said:
        # Lengths frame the parts, so that no two records are spelled the same.
        sealed.update(len(part).to_bytes(8, "big"))
        sealed.update(part)
    return sealed.digest()


class BreakKind(StrEnum):
    """What is wrong at a number."""

    MISSING = "missing"
    ALTERED = "altered"
    OUT_OF_ORDER = "out of order"
    TAIL_REMOVED = "tail removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """One place where the chain does not hold.

    Attributes:
        owner_op_seq: The owner's number of the record; the first where several are missing.
        kind: What is wrong.
        detail: The same in words, without anything that the record holds.
    """

    owner_op_seq: int
    kind: BreakKind
    detail: str


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The outcome of a check.

    Attributes:
        checked: Records looked at.
        head: Newest chain value as the owner's row has it, in hexadecimal; compare it with one that was
            noted elsewhere.
        breaks: What is wrong, by number; at most :data:`MOST_BREAKS`, and where there are as many, the
            rest was not looked at.
    """

    checked: int
    head: str
    breaks: tuple[ChainBreak, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.breaks


class ChainChecker:
    """Checks one owner's records, handed over by their number.

    Args:
        owner: The owner.
        before: Returns the owner's numbers of the records written just before an ``op_seq``, the last one
            first: they tell a record that was moved from one that was changed.
    """

    def __init__(self, owner: OwnerKey, before: Callable[[int], Sequence[int]]) -> None:
        self._owner = owner
        self._before = before
        self._checked = 0
        self._last = 0
        self._op_seq = 0
        self._ends = {CHAIN_START}  # chain value of the last record: as it is stored, and as it should be
        self._gaps: list[tuple[int, int]] = []
        self._breaks: dict[int, ChainBreak] = {}

    @property
    def last(self) -> int:
        """Number of the last record handed over."""
        return self._last

    @property
    def full(self) -> bool:
        """Whether there are so many breaks that the check may end."""
        return len(self._breaks) + len(self._gaps) >= MOST_BREAKS

    def add(self, row: OperationRow) -> None:
        """Look at the next record."""
        number, front = row.owner_op_seq, self._last
        if number != front + 1:
            self._gaps.append((front + 1, number - 1))
        sealed = chain_of(self._owner, row)
        if sealed != row.chain:
            self._explain(row)
        elif number == front + 1 and row.previous not in self._ends:
            # A record that was moved or changed is reported itself, and this one seals what was there before.
            self._broken(max(front, 1), BreakKind.ALTERED, "the record behind it was made when another one was here")
        elif row.op_seq <= self._op_seq:
            self._broken(number, BreakKind.OUT_OF_ORDER, "it was written before the record in front of it")
        self._last, self._op_seq = number, row.op_seq
        self._ends = {row.chain, sealed}
        self._checked += 1

    def finish(self, *, count: int, head: bytes) -> ChainReport:
        """Return the outcome.

        Args:
            count: How many records the owner's row counts.
            head: The newest chain value that it has.
        """
        for first, end in self._gaps:
            if first <= count:
                last = min(end, count)
                what = "it is" if first == last else f"records {first} to {last} are"
                self._broken(first, BreakKind.MISSING, f"{what} not there")
        if self._last < count and not self.full:
            what = "it was" if self._last + 1 == count else f"records {self._last + 1} to {count} were"
            self._broken(self._last + 1, BreakKind.TAIL_REMOVED, f"{what} the newest")
        elif self._last > count:
            self._broken(self._last, BreakKind.ADDED, f"the owner's row counts {count} records")
        elif self._last == count and head not in self._ends:
            self._broken(max(count, 1), BreakKind.ALTERED, "the owner's row has another newest chain value")
        breaks = tuple(self._breaks[number] for number in sorted(self._breaks))
        return ChainReport(self._checked, head.hex(), breaks)

    def _explain(self, row: OperationRow) -> None:
        """Report a record that is not what its own chain value seals."""
        # Those before it may have been moved themselves; 0 stands for the place before the first.
        near = [*self._before(row.op_seq), 0]
        for place in sorted({number + steps for steps, number in enumerate(near, start=1)}):
            if chain_of(self._owner, row, number=place) == row.chain:
                self._broken(row.owner_op_seq, BreakKind.OUT_OF_ORDER, f"it was written as record {place}")
                return
        self._broken(row.owner_op_seq, BreakKind.ALTERED, "it is not what its chain value seals")

    def _broken(self, number: int, kind: BreakKind, detail: str) -> None:
        self._breaks.setdefault(number, ChainBreak(number, kind, detail))
