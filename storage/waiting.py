"""What waits for a commit, and how each is told what became of it."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from prme_ray.model.errors import PrmeRayError, StoreClosed, TransientError, WriteFailed, WriterFenced
from storage.records import Admission, Appended, LateOperation, Operation, OperationRow, Recorded

__all__ = ["LateRecords", "Record", "Write", "as_write_failure", "made_of", "reason_of", "twin_of"]


@dataclass(slots=True)
class Write:
    """An admission that waits; ``due`` is when it has waited long enough for company."""

    admission: Admission
    due: float
    future: Future[Appended] = field(default_factory=Future)

    def settle(self, result: Appended) -> None:
        """Tell what became of it."""
        if result.error is not None:
            self.future.set_exception(result.error)
        else:
            self.future.set_result(result)


@dataclass(slots=True)
class Record:
    """An operation that waits; ``early`` is when the bytes of a late one may be made."""

    operation: Operation | LateOperation
    due: float
    early: float = 0.0
    future: Future[OperationRow] = field(default_factory=Future)

    def settle(self, outcome: Recorded) -> None:
        """Tell what became of it."""
        if isinstance(outcome, OperationRow):
            self.future.set_result(outcome)
        else:
            self.future.set_exception(outcome)


class LateRecords:
    """Records whose bytes have to be made, in the order they came; used under the committer's lock."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque()

    def __len__(self) -> int:
        return len(self._records)

    @property
    def early(self) -> float:
        """When the bytes of the first may be made; never where there is none."""
        return self._records[0].early if self._records else math.inf

    def add(self, record: Record) -> bool:
        """Add a record if its bytes have to be made; return whether it is then the only one."""
        if isinstance(record.operation, LateOperation):
            self._records.append(record)
        return len(self._records) == 1

    def take(self, now: float) -> Record | None:
        """Return the first one if its time has come, taken out."""
        return self._records.popleft() if self.early <= now else None

    def leave(self, records: Sequence[Record]) -> None:
        """Take out the records of a commit, which makes their bytes itself."""
        gone = {id(record) for record in records}
        while self._records and id(self._records[0]) in gone:
            self._records.popleft()


def made_of(operation: Operation | LateOperation) -> Operation:
    """Return an operation with its bytes.

    Raises:
        Exception: what making them raised.
    """
    return operation.made() if isinstance(operation, LateOperation) else operation


def reason_of(error: BaseException) -> str:
    """Return what may be said of a failure in a log: a foreign message could quote a memory."""
    return str(error) if isinstance(error, TransientError | WriterFenced | StoreClosed) else type(error).__name__


def as_write_failure(error: BaseException, *, durable: bool) -> PrmeRayError:
    """Return an error of our tree for anything that a commit raised."""
    if isinstance(error, PrmeRayError):
        return error
    failure = WriteFailed(detail=repr(error), durable=durable)
    failure.__cause__ = error
    return failure


def twin_of(error: PrmeRayError) -> PrmeRayError:
    """Return a copy: one exception raised in several threads would mix their tracebacks."""
    twin = copy.copy(error)
    twin.__cause__ = error
    return twin
