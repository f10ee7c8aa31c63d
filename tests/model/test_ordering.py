import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.ordering import ordered, ordered_by_place

ENTRY = st.tuples(st.sampled_from([-0.5, -0.0, 0.0, 1.0]), st.integers(0, 2), st.uuids().map(str))


@given(st.lists(ENTRY, max_size=30, unique_by=lambda entry: entry[2]), st.none() | st.integers(-1, 32))
def test_ids_and_their_places_give_the_same_order(entries, limit):
    keys = [np.array([entry[0] for entry in entries]), np.array([entry[1] for entry in entries], np.int64)]
    names = [name for _, _, name in entries]
    places = np.array([sorted(names).index(name) for name in names], np.int64)
    expected = ordered(keys, ids_at=lambda rows: [names[row] for row in rows], limit=limit)
    assert ordered_by_place(keys, places=places, limit=limit).tolist() == expected.tolist()
