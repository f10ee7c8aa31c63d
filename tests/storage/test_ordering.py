import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from storage.ordering import ordered

ENTRY = st.tuples(st.integers(0, 2), st.integers(0, 1), st.text(max_size=3))


@given(st.lists(ENTRY, max_size=30, unique_by=lambda entry: entry[2]), st.none() | st.integers(-1, 32))
def test_equals_a_plain_sort_with_the_id_last(entries, limit):
    names = [name for _, _, name in entries if "\x00" not in name]
    entries = [entry for entry in entries if "\x00" not in entry[2]]
    keys = [np.array([entry[place] for entry in entries], dtype=np.int64) for place in (0, 1)]
    expected = sorted(entries)[: len(entries) if limit is None else max(limit, 0)]
    places = np.array([sorted(names).index(name) for name in names], np.int64)
    for ids in (names, places):
        found = ordered(np.arange(len(entries)), keys, ids=ids, limit=limit)
        assert [entries[place] for place in found] == expected
