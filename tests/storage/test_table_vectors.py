"""Vectors on disk answer exactly like vectors in memory."""

import numpy as np
import pytest

from prme_ray.model.enums import Scope
from prme_ray.model.tables import floats, texts
from storage.owner_state import OwnerState
from storage.records import Filters
from storage.tables import EdgeTable, NodeTable
from tests.storage.owner_rows import DIMENSION, memory

ALL = Filters()


def point(rng):
    vector = rng.standard_normal(DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


@pytest.fixture
def pair(tmp_path):
    """Return the same 60 memories twice, in memory and on disk, 15 of them younger than the table."""
    rng = np.random.default_rng(3)
    repeated = point(rng)
    rows = []
    for n in range(1, 61):
        vector = repeated if n % 7 == 0 else point(rng)
        rows.append(memory(n, f"text {n}", vector=vector.tobytes(), scope="project" if n % 3 == 0 else "personal"))
    table = NodeTable.open(tmp_path / "nodes", dimension=DIMENSION)
    edges = EdgeTable.open(tmp_path / "edges")
    table.append(rows[:45])
    owner_no, upto = rows[0].owner_no, rows[44].seq
    there = OwnerState(owner_no, dimension=DIMENSION, table=table, upto=upto)
    there.load(table.load(owner_no, upto=upto, without=["vector"]), edges.load(owner_no), owner_seq=upto)
    there.apply(rows[45:])
    table.append(rows[45:])  # the projection goes on; the state still reads up to where it was loaded
    here = OwnerState(owner_no, dimension=DIMENSION)
    here.apply(rows)
    return here.view(), there.view(), rng, repeated


@pytest.mark.parametrize("k", [0, 1, 5, 30, 60, 500])
@pytest.mark.parametrize("scopes", [None, {Scope.PROJECT}])
def test_ids_order_and_bytes_are_the_same(pair, k, scopes):
    here, there, rng, repeated = pair
    filters = ALL if scopes is None else Filters(scopes=frozenset(scopes))
    for query in (point(rng), repeated):
        mine, theirs = (view.vector(query, k=k, eligible=view.eligible(filters)) for view in (here, there))
        assert texts(mine, "node_id") == texts(theirs, "node_id")
        assert floats(mine, "signal").tobytes() == floats(theirs, "signal").tobytes()


def test_counts_agree(pair):
    here, there, _, _ = pair
    assert here.counts() == there.counts()
