"""A handler of logs whose lines are made and written by a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TextIO

__all__ = ["LineWriter"]

_PATIENCE_S = 0.25


class LineWriter(logging.Handler):
    """Writes lines a quarter of a second late at most, those of warnings and worse at once.

    A line a request is made on the event loop, where every other request waits for it; this keeps only the record
    there. What a killed process loses is the lines of its last quarter of a second, none of them a warning.

    Args:
        stream: Where lines go; it stays the caller's.
        urgent: Least level that is written at once, by whoever logged it.
    """

    def __init__(self, stream: TextIO, *, urgent: int = logging.WARNING) -> None:
        super().__init__()
        self._stream = stream
        self._urgent = urgent
        self._waiting: deque[logging.LogRecord] = deque()
        self._writing = threading.Lock()
        self._some = threading.Event()  # something waits
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def handle(self, record: logging.LogRecord) -> bool:
        """Take a record that passes the filters; return whether it did."""
        # Without the lock that Handler holds here: the thread would wait for it with the other in its hands.
        passes = self.filter(record)
        if passes:
            self.emit(passes if isinstance(passes, logging.LogRecord) else record)  # from Python 3.12 on
        return bool(passes)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, or write it with all before it."""
        self._waiting.append(record)
        if record.levelno >= self._urgent or self._end.is_set():
            self.flush()
        elif not self._some.is_set():
            self._start()
            self._some.set()

    def flush(self) -> None:
        """Write what waits."""
        with self._writing:
            self._some.clear()
            lines: list[str] = []
            while self._waiting:
                record = self._waiting.popleft()
                try:
                    lines.append(self.format(record) + "\n")
                except Exception:
                    self.handleError(record)
            if not lines:
                return
            try:
                self._stream.write("".join(lines))
                self._stream.flush()
            except Exception:  # a log that cannot be written stops nobody
                self.handleError(record)

    def close(self) -> None:
        """Write what waits and stop the thread. Repeatable; what is logged afterwards is written at once."""
        self._end.set()
        self._some.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self.flush()
        super().close()

    def _start(self) -> None:
        if self._thread is None:
            with self._writing:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="prme-ray-log", daemon=True)
                    self._thread.start()

    def _work(self) -> None:
        while not self._end.is_set():
            self._some.wait()
            self._end.wait(_PATIENCE_S)  # woken once for all lines of that time
            self.flush()
