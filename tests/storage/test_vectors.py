import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.errors import InvalidRequest
from storage.vectors import Vectors, VectorStore

DIMENSION = 384


def unit_rows(count: int, dimension: int = DIMENSION) -> np.ndarray:
    rows = np.random.default_rng(5).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def stored(rows: np.ndarray, present=None) -> Vectors:
    store = VectorStore(rows.shape[1])
    store.append(rows, present=np.ones(len(rows), bool) if present is None else np.asarray(present))
    return store.freeze()


def names(count: int) -> list[str]:
    return [f"{number:04d}" for number in reversed(range(count))]  # ids fall while rows rise


def search(vectors: Vectors, query, k, allowed=None):
    count = len(vectors.matrix)
    mask = np.ones(count, bool) if allowed is None else np.asarray(allowed)
    rows, cosines = vectors.search(query, k=k, allowed=mask, ids=names(count))
    return rows.tolist(), cosines.tolist()


def test_a_score_does_not_depend_on_the_rows_beside_it():
    rows = unit_rows(300)
    query = rows[11]
    whole = stored(rows).scores(query).tobytes()
    for count in range(1, 301):
        assert stored(rows[:count]).scores(query).tobytes() == whole[: 4 * count]
    for start in (1, 2, 3, 17):  # another alignment, other neighbours
        assert Vectors(rows[start:], np.ones(300 - start, bool)).scores(query).tobytes() == whole[4 * start :]


def test_scores_do_not_depend_on_threads():
    code = (
        "import hashlib, numpy as np; from storage.vectors import Vectors;"
        "r = np.random.default_rng(5).normal(size=(5000, 384)).astype(np.float32);"
        "print(hashlib.sha256(Vectors(r, np.ones(5000, bool)).scores(r[3]).tobytes()).hexdigest())"
    )
    rows = np.random.default_rng(5).normal(size=(5000, 384)).astype(np.float32)
    here = hashlib.sha256(Vectors(rows, np.ones(5000, bool)).scores(rows[3]).tobytes()).hexdigest()
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == here


@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), max_size=25), st.integers(0, 12), st.data())
def test_equals_brute_force_with_ties_by_id(values, k, data):
    rows = np.array(values, np.float32).reshape(-1, 3) / 4
    allowed = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    present = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    query = np.array([0.5, 0.25, -0.5], np.float32)
    label = names(len(rows))
    exact = [float(row @ query) for row in rows.astype(np.float64)]  # quarters: no rounding anywhere
    wanted = [row for row in range(len(rows)) if allowed[row] and present[row]]
    wanted = sorted(wanted, key=lambda row: (-exact[row], label[row]))[:k]
    assert search(stored(rows, present), query, k, np.array(allowed, bool)) == (wanted, [exact[row] for row in wanted])


def test_a_zero_vector_scores_zero_and_no_cosine_passes_one():
    rows = np.zeros((2, 4), np.float32)
    rows[1] = np.float32(0.50000006)
    assert search(stored(rows), rows[1], 5) == ([1, 0], [1.0, 0.0])


@pytest.mark.parametrize("query", [np.zeros(3), np.zeros((1, 4)), np.array([0, np.nan, 0, 0])])
def test_a_question_of_another_shape_is_refused(query):
    with pytest.raises(InvalidRequest, match="4 finite numbers"):
        search(stored(np.zeros((1, 4), np.float32)), query, 1)
