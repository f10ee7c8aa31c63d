"""Stores and questions from several threads, and what became of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prme_ray.model.errors import TransientError
from tests.cluster.corpus import NOW

_PAUSE_S = 0.05


class Load:
    """What was acknowledged and answered, and what failed. ``wrong`` must stay empty: it is never retryable."""

    def __init__(self, memory: Any, writers: int) -> None:
        self.memory = memory
        self.acknowledged: list[tuple[str, str]] = []
        self.answered = 0
        self.refused: list[str] = []
        self.wrong: list[str] = []
        self.longest_s = 0.0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(writers)]
        self._threads.append(threading.Thread(target=self._read))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def progress(self, timeout_s: float = 120) -> None:
        """Wait until something more was acknowledged and answered."""
        written, read = len(self.acknowledged), self.answered
        deadline = time.monotonic() + timeout_s
        while len(self.acknowledged) < written + 3 or self.answered < read + 3:
            assert time.monotonic() < deadline, (self.refused[-3:], self.wrong[-3:])
            time.sleep(0.02)

    def missing(self) -> list[str]:
        """Return the acknowledged memories that a question for their only rare word does not find."""
        lost = []
        for owner, node_id in self.acknowledged:
            node = self.memory.get(node_id, owner=owner)
            found = self.memory.retrieve(node.content.split()[0], owner=owner, reference_time=NOW)
            mine = found.results.find(node_id)
            if mine is None or not {"VECTOR", "LEXICAL"} <= set(mine.paths):
                lost.append(node_id)
        return lost

    def _write(self, number: int) -> None:
        for count in range(10**6):
            if self._stop.is_set():
                return
            owner = f"load-{number}-{count % 4}"
            with self._watched():
                stored = self.memory.store(f"Marker{number}x{count} was written under load.", owner=owner)
                self.acknowledged.append((owner, stored.node_id))
            time.sleep(_PAUSE_S)  # every one of them is looked for in the end

    def _read(self) -> None:
        while not self._stop.is_set():
            with self._watched():
                answer = self.memory.retrieve("Does Caroline have a cat called Oscar?", owner="owner-1")
                if len(answer.results) < 40 or answer.metadata.backend_failures:
                    self.wrong.append(f"{len(answer.results)} results, {answer.metadata.backend_failures}")
                self.answered += 1

    @contextmanager
    def _watched(self) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        except TransientError as error:
            self.refused.append(str(error))
            time.sleep(0.05)
        except Exception as error:
            self.wrong.append(repr(error))
        self.longest_s = max(self.longest_s, time.monotonic() - started)


@contextmanager
def under_load(memory: Any, *, writers: int = 2) -> Iterator[Load]:
    """Run a load beside the body, which starts once both kinds of calls succeed."""
    load = Load(memory, writers)
    load.start()
    try:
        load.progress()
        yield load
        load.progress()
    finally:
        load.stop()
