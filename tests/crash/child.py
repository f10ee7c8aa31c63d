"""The process that is killed, and the one that makes such processes quickly.

``python -m tests.crash.child`` imports everything once and then forks a writer for every line of
JSON on its standard input, answering with the writer's process id and, once it has ended, with the
signal that ended it. It never opens a store itself, so there is nothing a fork could break.

A writer stores for ever, in two threads, for two owners. Its book gets a line ``try TAG OWNER NAME``
before each memory is given to the store and ``ack TAG NODE_ID EVENT_ID`` once it is acknowledged.
"""

import itertools
import json
import os
import random
import sys
import threading
import traceback
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime

from prme_ray.memory import Memory
from prme_ray.tokens import counter
from stages.analyze import analyze
from tests.crash.hash_encoder import HashEncoder, append

OWNERS = ("anna", "ben")
_SHARED = ("Caroline", "Oscar", "Lisbon")


@dataclass(frozen=True)
class Item:
    """A memory of a run: everything about it follows from its tag."""

    tag: str
    owner: str
    name: str | None

    @property
    def text(self):
        number = int(self.tag.rpartition("x")[2])
        middle = f" with {self.name} and {_SHARED[number % 3]}" if self.name else ""
        return f"today we talked{middle} about {self.tag}"

    @property
    def arguments(self):
        return {"content": self.text, "session_id": f"s{self.tag.rpartition('x')[0]}"}


def item(run, thread, number, owner):
    """Return an item; two of three have a name of their own, for the graph."""
    letters = "".join(chr(ord("a") + int(digit)) for digit in f"{run:03d}{thread}{number:06d}")
    return Item(f"r{run}t{thread}x{number}", owner, f"Zo{letters}" if number % 3 else None)


def write(memory, book, run, thread):
    """Store for ever: one by one and several at once, asking in between so that owners are in memory."""
    chance = random.Random(f"{run} {thread}")
    numbers = itertools.count()
    for turn in itertools.count():
        owner = OWNERS[(thread + turn // 5) % 2]
        count = 1 if chance.random() < 0.6 else chance.randint(2, 20)
        items = [item(run, thread, next(numbers), owner) for _ in range(count)]
        append(book, "".join(f"try {i.tag} {owner} {i.name or '-'}\n" for i in items))
        if count == 1:
            stored = [memory.store(**items[0].arguments, owner=owner)]
        else:
            stored = memory.store_many([i.arguments for i in items], owner=owner)
        # Before the acknowledgement goes out, a question must already find it in this process.
        if turn % 6 == 3:
            found = memory.retrieve(items[-1].tag, owner=owner).results
            assert stored[-1].node_id in [candidate.node_id for candidate in found], items[-1]
        append(
            book,
            "".join(f"ack {i.tag} {s.node_id} {s.event_id}\n" for i, s in zip(items, stored, strict=True)),
        )


def run_writer(order):
    with Memory.open(order["store"], settings=order["settings"], encoder=HashEncoder(order["embedded"])) as memory:
        append(order["book"], f"open {order['run']}\n")
        threads = []
        for thread in range(2):
            threads.append(threading.Thread(target=_work, args=(memory, order["book"], order["run"], thread)))
            threads[-1].start()
        for thread in threads:
            thread.join()


def _work(*arguments):
    try:
        write(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(70)  # the whole writer: the parent sees that it was not the kill that ended it


def serve():
    """Fork a writer for every order."""
    warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
    import lancedb.query  # noqa: F401  (imported before the forks, used after them)

    # Pure parts that are slow to load; a first question would otherwise spend a second on them.
    counter("cl100k_base").count("warm")
    analyze("what did we say last week?", reference_time=datetime.now(UTC))

    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if not pid:
            status = 71
            try:
                run_writer(json.loads(line))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
