"""``kill -9`` of a writing Memory at random instants, again and again on the same files.

After every kill: what was acknowledged is found by each channel alone, what was not is in every
channel or in none, the counts agree, and recovery embeds nothing.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from prme_ray.memory import Memory
from prme_ray.model.errors import StoreLocked
from storage.records import Filters, OwnerKey
from tests.crash.child import OWNERS, Item
from tests.crash.hash_encoder import HashEncoder, texts_in, vector_of

CHECKOUT = Path(__file__).resolve().parents[2]
# Batches and compactions all the time; in the second case the text index is on disk as well.
SMALL = {"projection_batch_rows": 32, "projection_idle_s": 0.05, "compact_after_fragments": 2}
CASES = {
    "one_shard": {"storage": {**SMALL, "virtual_shards": 1}},
    "text_index_on_disk": {"storage": {**SMALL, "virtual_shards": 4, "lexical_ram_documents": 20}},
}
RECHECKED = 40
PATIENCE_S = 60


class Server:
    """The process that forks writers."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )

    def start(self, order):
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        assert int(self._process.stdout.readline()) == -signal.SIGKILL, "the writer ended before it was killed"

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def server():
    process = Server()
    yield process
    process.close()


class Chain:
    """One store that is killed many times, and what its writers wrote in the book."""

    def __init__(self, server, folder, settings):
        self.server = server
        self.store = folder / "store"
        self.settings = settings
        self.book = folder / "book"
        self.embedded = folder / "embedded"
        self.run = 0
        self.tried: dict[str, Item] = {}
        self.acknowledged: dict[str, tuple[str, str]] = {}
        self.opened: set[int] = set()
        self._read_to = 0

    def start(self):
        self.run += 1
        self.book.touch()
        order = {name: str(getattr(self, name)) for name in ("store", "book", "embedded")}
        return self.server.start({**order, "settings": self.settings, "run": self.run})

    def wait_for_acknowledgement(self):
        before, deadline = len(self.acknowledged), time.monotonic() + PATIENCE_S
        while len(self.acknowledged) == before:
            assert time.monotonic() < deadline, "the writer acknowledged nothing"
            time.sleep(0.002)
            self.read_book()

    def read_book(self):
        """Take in the new lines."""
        with self.book.open() as file:
            file.seek(self._read_to)
            whole, _, _ = file.read().rpartition("\n")
        self._read_to += len(whole) + bool(whole)
        for line in whole.splitlines():
            kind, tag, *rest = line.split(" ")
            if kind == "try":
                self.tried[tag] = Item(tag, rest[0], None if rest[1] == "-" else rest[1])
            elif kind == "ack":
                self.acknowledged[tag] = (rest[0], rest[1])
            else:
                self.opened.add(int(tag))

    def memory(self, **options):
        return Memory.open(self.store, settings=self.settings, encoder=HashEncoder(self.embedded), **options)

    def check(self, tags):
        """Recover the store, as the next start of an application would, and look for these memories."""
        embedded = texts_in(self.embedded)
        with self.memory() as memory:
            health = memory.health()
            assert health.healthy, health.to_dict()
            found = {owner: channels_of(memory, owner, self.items(tags, owner)) for owner in OWNERS}
            health = memory.health()  # once more, now that both owners are in memory
            assert health.healthy, health.to_dict()
            for tag in tags:
                channels = found[self.tried[tag].owner][tag]
                if tag in self.acknowledged:
                    node_id, event_id = self.acknowledged[tag]
                    assert channels == dict.fromkeys(channels, node_id), (tag, channels)
                    event = memory.get_event(event_id, owner=self.tried[tag].owner)
                    assert event.content == self.tried[tag].text
                else:
                    assert len(set(channels.values())) == 1, (tag, channels)
        assert texts_in(self.embedded) == embedded, "recovery embedded something"

    def items(self, tags, owner):
        return [self.tried[tag] for tag in tags if self.tried[tag].owner == owner]


def channels_of(memory, owner, items):
    """Return, for each item, the id of its memory in the node table and in each channel, or ``None``."""
    view = memory._store.view(OwnerKey("default", owner))
    if view is None:
        return {item.tag: {"nodes": None} for item in items}
    eligible = view.eligible(Filters())
    contents, ids = (view.nodes.column(name).to_pylist() for name in ("content", "node_id"))
    by_content = dict(zip(contents, ids, strict=True))
    assert len(by_content) == len(ids), "a memory is there twice"

    def only(channel):
        names = channel.column("node_id").to_pylist()
        assert len(names) <= 1, names
        return names[0] if names else None

    found = {}
    for item in items:
        nearest = view.vector(vector_of(item.text), k=1, eligible=eligible)
        itself = bool(nearest.num_rows) and nearest.column("signal")[0].as_py() > 0.999
        found[item.tag] = {
            "nodes": by_content.get(item.text),
            "vector": only(nearest) if itself else None,
            "lexical": only(view.lexical(item.tag, k=2, eligible=eligible)),
        }
        if item.name is not None:
            near = view.graph([item.name], hops=1, k=2, min_confidence=0.4, eligible=eligible)
            found[item.tag]["graph"] = only(near)
    return found


def kill_many_times(server, folder, case, times, *, seed=0):
    chain = Chain(server, folder, CASES[case])
    chance = random.Random(f"{case} {seed}")
    for number in range(times):
        pid = chain.start()
        if number % 3 == 0:
            time.sleep(chance.uniform(0, 0.15))  # while it opens: the very first time, or in recovery
        else:
            chain.wait_for_acknowledgement()
            time.sleep(chance.uniform(0, 0.5))
        server.kill(pid)
        chain.read_book()
        fresh = [tag for tag in chain.tried if tag.startswith(f"r{chain.run}t")]
        older = sorted(chain.tried.keys() - set(fresh))
        chain.check([*fresh, *chance.sample(older, min(RECHECKED, len(older)))])
    chain.check(list(chain.tried))
    counts = Counter(texts_in(chain.embedded))
    assert {tag: counts[item.text] for tag, item in chain.tried.items() if counts[item.text] > 1} == {}
    assert chain.acknowledged.keys() <= {tag for tag, item in chain.tried.items() if counts[item.text] == 1}
    return chain


@pytest.mark.parametrize("case", CASES)
def test_five_kills(server, tmp_path, case):
    kill_many_times(server, tmp_path, case, 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("case", CASES)
def test_twenty_kills(server, tmp_path, case, seed):
    chain = kill_many_times(server, tmp_path, case, 20, seed=seed)
    assert 5 < len(chain.opened) < 20, "kills while opening and kills while writing"


def test_the_lock_of_a_killed_writer_is_free_at_once(server, tmp_path):
    chain = Chain(server, tmp_path, CASES["one_shard"])
    pid = chain.start()
    chain.wait_for_acknowledgement()
    with pytest.raises(StoreLocked, match=str(pid)):
        chain.memory()
    server.kill(pid)
    [tag, (node_id, _)] = next(iter(chain.acknowledged.items()))
    with chain.memory(read_only=True) as reader:
        assert reader.get(node_id, owner=chain.tried[tag].owner).content == chain.tried[tag].text
    with chain.memory() as memory:
        memory.store("and on it goes", owner="anna")
        answer = memory.retrieve(tag, owner=chain.tried[tag].owner)
        assert node_id in [candidate.node_id for candidate in answer.results]
