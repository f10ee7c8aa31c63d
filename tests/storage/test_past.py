"""States at earlier numbers: byte for byte what was there then, in every channel, however they are reached."""

import itertools
import random
import sqlite3
import uuid

import numpy as np
import pytest

from prme_ray import Memory
from prme_ray.model.enums import Scope
from prme_ray.model.errors import InvalidRequest, SnapshotExpired
from prme_ray.model.settings import StorageSettings
from prme_ray.model.times import micros
from storage.parts import ALL_PARTS, Part
from storage.records import Filters, OwnerKey
from storage.shard import EncoderIdentity
from storage.store import Store
from tests.memory.tools import Clock, Ids, WordEncoder

OWNER = OwnerKey("default", "dana")
QUESTIONS = ("Who is Oscar?", "Caroline hiking", "fact 7")
ALL = Filters()
LARGE = {
    "small": {},
    "text index on disk": {"lexical_ram_documents": 5},
    "vectors in the table": {"resident_bytes": 12 * 32 * 4},
}
COORDINATOR = frozenset({Part.RECORDS, Part.EDGES})


def asked(view, parts=ALL_PARTS):
    """What the channels of a process with these parts answer, as bytes and numbers."""
    mask = view.eligible(ALL)
    scoped = view.eligible(Filters(scopes=frozenset({Scope.PERSONAL}), include_inactive=True))
    found = {"mask": mask.rows.tobytes(), "graph digest": view.graph_digest, "lexical digest": view.lexical_digest}
    for question, seen in itertools.product(QUESTIONS, (mask, scoped)):
        name = (question, seen is mask)
        if Part.VECTORS in parts:
            vector = WordEncoder().embed([question])[0].astype(np.float32)
            found["vector", name] = listed(view.vector(vector, k=7, eligible=seen))
        if Part.TEXT in parts:
            found["lexical", name] = listed(view.lexical(question, k=7, eligible=seen))
        if Part.EDGES in parts:
            names = [word.strip("?") for word in question.split()]
            hits = view.graph(names, hops=3, k=7, min_confidence=0.0, eligible=seen)
            found["graph", name] = listed(hits)
    found["pinned"] = listed(view.pinned(limit=5, eligible=mask))
    if Part.RECORDS in parts:
        triggers = view.nodes.select(["node_id"]).rename_columns(["trigger_id"])
        windows = view.session_windows(triggers, window=1, eligible=mask)
        found["windows"] = windows.select(["trigger_id", "offset"]).to_pydict()
        found["neighbours"] = windows["node"].combine_chunks().indices.to_pylist()
        found["nodes"] = view.nodes.to_pydict()
    return found


def listed(table):
    return [str(name) for name in table["node_id"].to_pylist()], table["signal"].to_numpy().tobytes()


def open_memory(folder, storage, ids):
    settings = {"storage": {"virtual_shards": 1, "projection_batch_rows": 6, **storage}}
    return Memory.open(folder, settings=settings, encoder=WordEncoder(), clock=Clock(), new_id=Ids(ids))


def open_store(folder, storage, *, parts=ALL_PARTS):
    return Store(
        folder,
        settings=StorageSettings(virtual_shards=1, **storage),
        encoder=EncoderIdentity("unused", "words", 32),
        clock=Clock(),
        new_id=lambda: str(uuid.uuid4()),
        read_only=True,
        parts=parts,
    )


def grow(memory):
    """Store in small steps and in batches, between another owner's; yield after each."""
    one = {"owner": OWNER.owner}
    for number in range(6):
        memory.store(f"Caroline: I went hiking with Oscar, fact {number}", session_id=f"s{number % 2}", **one)
        memory.store(f"Erik: nothing of this is Dana's, fact {number}", owner="erik")
        yield
    memory.store_many([f"fact {number} about Oscar the cat" for number in range(9)], session_id="s1", **one)
    yield
    memory.store_node("Oscar sleeps a lot", node_type="preference", pinned=True, **one)
    yield
    memory.store_many(["fact 7 again, at work", " . "], scope="project", **one)
    yield
    memory.store("Caroline: hiking was nice", session_id="s0", **one)
    yield


@pytest.mark.parametrize("storage", LARGE.values(), ids=LARGE)
def test_past_states_answer_as_they_did(tmp_path, storage):
    then = {}
    with open_memory(tmp_path, storage, "first") as memory:
        store = memory._store
        for _ in grow(memory):
            view = store.view(OWNER)
            then[view.owner_seq] = asked(view)
        newest = max(then)
        assert len(then) == 10
        orders = [sorted(then), sorted(then, reverse=True), random.Random(3).sample(sorted(then), len(then))]
        for number in itertools.chain(*orders):
            view = store.view_at(OWNER, number, past=True)
            assert (view.owner_seq, view.past) == (number, True)
            assert asked(view) == then[number]
        present = store.view(OWNER)
        assert (present.owner_seq, present.past, asked(present)) == (newest, False, then[newest])
        assert memory.health().healthy
    with open_memory(tmp_path, storage, "second") as memory:
        memory.store("Caroline: one more on Oscar", owner=OWNER.owner)
        for number, expected in then.items():
            assert asked(memory._store.view_at(OWNER, number, past=True)) == expected


@pytest.mark.parametrize("parts", [*map(frozenset, ([Part.VECTORS], [Part.TEXT], [Part.EDGES])), COORDINATOR], ids=str)
def test_every_process_of_a_cluster_sees_the_same_past(tmp_path, parts):
    with open_memory(tmp_path, {}, "first") as memory:
        reader = open_store(tmp_path, {}, parts=parts)
        for number, _ in enumerate(grow(memory)):
            if number == 4:
                reader.view(OWNER)  # follows from here on
        store = memory._store
        for number in range(1, store.newest(OWNER) + 1):
            expected, view = (one.view_at(OWNER, number, past=True) for one in (store, reader))
            shown = asked(expected, parts)
            shown["lexical digest"] = shown["lexical digest"] if parts & {Part.TEXT, Part.RECORDS} else None
            shown["graph digest"] = shown["graph digest"] if Part.EDGES in parts else None
            assert asked(view, parts) == shown
        assert reader.view(OWNER).owner_seq == store.newest(OWNER)
        reader.close()


def test_digests_tell_states_apart_and_nothing_else(tmp_path):
    with open_memory(tmp_path, {}, "first") as memory:
        digests = []
        for _ in grow(memory):
            view = memory._store.view(OWNER)
            digests += [view.lexical_digest, view.graph_digest]
        assert len(set(digests)) == len(digests)
        assert all(len(digest) == 64 for digest in digests)
        edges = memory._store.view(OWNER).graph_digest
        memory.retrieve("Oscar", owner=OWNER.owner)
        assert memory._store.view(OWNER).graph_digest == edges


def test_numbers_have_bounds_and_times(tmp_path):
    clock = Clock()
    times = []
    with Memory.open(tmp_path, encoder=WordEncoder(), clock=clock, new_id=Ids()) as memory:
        store = memory._store
        assert store.newest(OWNER) == store.number_at(OWNER, micros(clock.now)) == 0
        nothing = store.view_at(OWNER, 0, past=True)
        assert (len(nothing), nothing.past, asked(nothing)["pinned"][0]) == (0, True, [])
        for text in ("Oscar is a cat", "Oscar is old"):
            memory.store(text, owner=OWNER.owner)
            times.append((micros(clock.now), store.newest(OWNER)))
        (first, one), (second, two) = times
        found = [store.number_at(OWNER, time) for time in (0, first, second - 1, second, 2**62)]
        assert found[:2] == [0, one]
        assert found[3:] == [two, two]
        assert len(store.view_at(OWNER, 0, past=True)) == 0
        for number in (-1, two + 1):
            with pytest.raises(InvalidRequest, match=rf"owner_seq={number} is not allowed: give 0 to {two}"):
                store.view_at(OWNER, number, past=True)
        with pytest.raises(InvalidRequest, match="nothing was ever stored"):
            store.view_at(OwnerKey("default", "nobody"), 1, past=True)


def test_vectors_of_a_generation_that_was_dropped_have_expired(tmp_path):
    with open_memory(tmp_path, {}, "first") as memory:
        memory.store("Oscar is a cat", owner=OWNER.owner)
        store = memory._store
        assert store.reading_generation(OWNER) == 1
        assert store.view_at(OWNER, 1, past=True, generation=1).generation == 1
        with pytest.raises(SnapshotExpired, match="encoder generation 7"):
            store.view_at(OWNER, 1, past=True, generation=7)


def test_vectors_of_another_generation_are_read_from_the_log(tmp_path):
    with open_memory(tmp_path, {}, "first") as memory:
        memory.store_many(["Oscar is a cat", "Oscar is old", "a dog"], owner=OWNER.owner)
        memory.flush()
        store = memory._store
        shard = store.shard_of(OWNER)
        second = shard.log.register_generation("another encoder", "m", 4, created_at=0, epoch=shard.log.current_epoch())
        rows = [row for row in shard.log.read(owner_no=1) if row.kind == "node" and '"entity"' not in row.payload]
        vectors = np.eye(4, dtype="<f4")[: len(rows)]
        with sqlite3.connect(shard.log.path) as raw:
            given = [(row.seq, second, vector.tobytes()) for row, vector in zip(rows, vectors, strict=True)]
            raw.executemany("INSERT INTO vectors (seq, generation, vector) VALUES (?, ?, ?)", given)
        newest = store.newest(OWNER)
        for number, count in ((newest, len(rows)), (rows[0].owner_seq, 1)):
            view = store.view_at(OWNER, number, past=True, generation=second)
            assert (view.generation, view.counts()["vectors"]) == (second, count)
            nearest = view.vector(vectors[count - 1], k=1, eligible=view.eligible(ALL))
            assert nearest["node_id"].to_pylist() == [rows[count - 1].subject]
        assert store.view_at(OWNER, newest, past=True).generation == 1
        assert store.view(OWNER).generation is None


def test_looking_back_stays_inside_its_own_budget(tmp_path):
    storage = {"resident_bytes": 400_000}
    with open_memory(tmp_path, storage, "first") as memory:
        for owner in ("dana", "erik", "fay"):
            memory.store_many([f"fact {number} " + "x" * 500 for number in range(60)], owner=owner)
        store = memory._store
        kept = [OwnerKey("default", owner) for owner in ("dana", "erik", "fay")]
        present = [store.view(owner) for owner in kept[1:]]
        resident = dict(store.residents._states)
        for owner in kept * 2:
            store.view_at(owner, 30, past=True)
        assert len(store.past._states) < len(kept)
        assert store.past.nbytes() <= store.past.budget_bytes
        assert dict(store.residents._states) == resident
        assert [store.view(owner) for owner in kept[1:]] == present
