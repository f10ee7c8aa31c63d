"""What the tests of the committer share: readers that can be made slow, and writes that wait behind one."""

import threading
from datetime import UTC, datetime

from tests.storage.log_cases import admission, event

NOW = datetime(2026, 5, 4, 10, 0, 0, 250_000, tzinfo=UTC)
WAIT_S = 30


class Readers:
    """Stands where the resident owners stand: told of each commit, and can be made slow or to fail."""

    def __init__(self):
        self.batches: list[list[str]] = []
        self.open = threading.Event()
        self.open.set()
        self.reached = threading.Event()
        self.failure: BaseException | None = None
        self.look = lambda: None

    def __call__(self, appended):
        self.reached.set()
        self.look()
        assert self.open.wait(WAIT_S)
        if self.failure is not None:
            raise self.failure
        self.batches.append([row.subject for result in appended for row in result.rows])


def blocked(committer, readers, *subjects):
    """Keep the committer busy with a first write and let ``subjects`` wait behind it."""
    readers.open.clear()
    readers.reached.clear()
    first = committer.submit(admission(event("first")))
    assert readers.reached.wait(WAIT_S)
    return first, [committer.submit(admission(event(subject))) for subject in subjects]
