"""One writer, any number of readers: a second writer is refused at once, readers follow the writer."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from prme_ray import Memory
from prme_ray.model.errors import InvalidRequest, ReadOnlyStore, StoreFormatTooNew, StoreLocked
from tests.memory.tools import OWNER, WordEncoder

RIVAL = """
import sys, time
from prme_ray import Memory
from prme_ray.model.errors import StoreLocked
from tests.memory.tools import WordEncoder
encoder = WordEncoder()
started = time.monotonic()
try:
    Memory.open(sys.argv[1], encoder=encoder)
except StoreLocked as error:
    print(error.pid, error.host, time.monotonic() - started)
"""
WRITER = """
import sys
from prme_ray import Memory
from tests.memory.tools import OWNER, WordEncoder
with Memory.open(sys.argv[1], encoder=WordEncoder()) as memory:
    for line in sys.stdin:
        print(memory.store(line.strip(), owner=OWNER).node_id, flush=True)
"""


def python(code, folder, **options):
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
    )


def test_a_second_writer_is_told_at_once_who_the_first_is(memory, folder):
    output, _ = python(RIVAL, folder).communicate(timeout=60)
    pid, host, waited = output.split()
    assert (int(pid), host) == (os.getpid(), socket.gethostname())
    assert float(waited) < 20  # nothing waits; the bound only leaves room for a machine that stands still
    memory.store("still ours", owner=OWNER)


def test_a_reader_in_another_process_sees_each_acknowledged_write(folder):
    writer = python(WRITER, folder)
    try:

        def tell(text):
            writer.stdin.write(text + "\n")
            writer.stdin.flush()
            return writer.stdout.readline().strip()

        first = tell("cat number 0")
        with pytest.raises(StoreLocked) as caught:
            Memory.open(folder, encoder=WordEncoder())
        assert caught.value.pid == writer.pid
        with Memory.open(folder, encoder=WordEncoder(), read_only=True) as reader:
            assert reader.get(first, owner=OWNER).content == "cat number 0"
            for number in range(1, 15):
                node_id = tell(f"cat number {number}")
                answer = reader.retrieve(f"cat number {number}", owner=OWNER)
                assert answer.results.find(node_id).paths == ["VECTOR", "LEXICAL"]
                assert len(answer.results) == number + 1
                assert not answer.metadata.receipt_persisted
            assert reader.health().healthy
    finally:
        writer.stdin.close()
        assert writer.wait(timeout=60) == 0
        writer.stdout.close()


def test_a_lock_ends_with_its_process_however_it_ends(folder, opened):
    writer = python(WRITER, folder)
    writer.stdin.write("before the end\n")
    writer.stdin.flush()
    node_id = writer.stdout.readline().strip()
    writer.kill()
    writer.communicate(timeout=60)
    assert opened().get(node_id, owner=OWNER).content == "before the end"


def test_a_reader_beside_the_writer_of_its_own_process(memory, opened):
    memory.store("one cat", owner=OWNER)
    reader = opened(read_only=True)
    assert len(reader.retrieve("cat", owner=OWNER).results) == 1
    memory.store_many([f"cat {number}" for number in range(20)], owner=OWNER)
    memory.flush()
    assert len(reader.retrieve("cat", owner=OWNER).results) == 21
    memory.store("a dog", owner="somebody new")
    assert len(reader.retrieve("dog", owner="somebody new").results) == 1
    assert (reader.health().healthy, reader.health().read_only) == (True, True)


def test_a_reader_writes_nothing(memory, opened, folder):
    node_id = memory.store("one cat", owner=OWNER).node_id
    memory.close()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    reader = opened(read_only=True)
    asked = [reader.retrieve("cat", owner=OWNER), reader.retrieve("cat", owner="nobody")]
    assert [answer.metadata.receipt_persisted for answer in asked] == [False, False]
    for call in (
        lambda: reader.store("text", owner=OWNER),
        lambda: reader.store_many(["text"], owner=OWNER),
        lambda: reader.store_node("text", owner=OWNER, node_type="fact"),
        lambda: reader.store_edge(node_id, node_id, "supports", owner=OWNER),
    ):
        with pytest.raises(ReadOnlyStore):
            call()
    reader.close()
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    changed = {path.name for path, stamp in after.items() if before.get(path) != stamp}
    assert {name for name in changed if not name.startswith("log.sqlite-")} == set()


def test_there_is_nothing_to_read_where_no_store_is(folder, opened):
    with pytest.raises(InvalidRequest, match="read_only"):
        opened(read_only=True)
    assert not folder.exists()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_store_is_refused(memory, folder, opened, read_only):
    memory.close()
    catalog = folder / "store.json"
    catalog.write_text(catalog.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(StoreFormatTooNew, match="99"):
        opened(read_only=read_only)


def test_writers_of_many_threads_share_one_store(memory):
    def work(number):
        stored = memory.store(f"cat number {number}", owner=f"owner {number % 3}")
        answer = memory.retrieve(f"cat number {number}", owner=f"owner {number % 3}")
        return answer.results.find(stored.node_id) is not None

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(60)))
    assert memory.health().healthy
