import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from storage.sessions import SessionOrder


def brute(partition, created, ids, allowed, triggers, window):
    found = []
    for which, trigger in enumerate(triggers):
        if partition[trigger] < 0 or not allowed[trigger]:
            continue
        members = [row for row in range(len(ids)) if partition[row] == partition[trigger] and allowed[row]]
        members.sort(key=lambda row: (created[row], ids[row]))
        here = members.index(trigger)
        found += [(which, row, place - here) for place, row in enumerate(members) if 0 < abs(place - here) <= window]
    return found


@given(
    st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=25),
    st.integers(0, 30),
    st.data(),
)
def test_equals_brute_force(entries, window, data):
    partition, created, allowed = (np.array(column) for column in zip(*entries, strict=True))
    ids = data.draw(st.permutations([f"{number:02d}" for number in range(len(entries))]))
    triggers = np.array(data.draw(st.lists(st.integers(0, len(entries) - 1), max_size=6)), np.int64)
    order = SessionOrder(partition, created, ids=ids)
    which, rows, offsets = order.windows(triggers, window=window, allowed=allowed)
    found = list(zip(which.tolist(), rows.tolist(), offsets.tolist(), strict=True))
    assert found == brute(partition, created, ids, allowed, triggers.tolist(), window)


def test_places_are_counted_among_the_allowed():
    order = SessionOrder(np.zeros(5, np.int64), np.arange(5), ids=list("abcde"))
    allowed = np.array([True, False, True, True, True])
    _, rows, offsets = order.windows(np.array([2]), window=1, allowed=allowed)
    assert (rows.tolist(), offsets.tolist()) == ([0, 3], [-1, 1])
