import dataclasses

import pytest

from prme_ray.model.enums import LifecycleState, NodeType, Scope
from storage.records import Filters
from tests.storage.owner_rows import at, entity, memory, state_of

VIEW = state_of(
    memory(1, "open"),
    memory(2, "ended", valid_to=at(50)),
    memory(3, "work", scope=Scope.PROJECT),
    memory(4, "old plan", lifecycle_state=LifecycleState.SUPERSEDED),
    memory(5, "disputed", lifecycle_state=LifecycleState.CONTESTED),
    entity(6, "Ada", valid_to=at(50)),
    memory(7, "likes tea", node_type=NodeType.PREFERENCE, valid_from=at(900)),
    memory(8, "happened early", event_time=at(-100)),
    entity(9, "speaker", structural=True, scope=Scope.SYSTEM),
    entity(10, "gone speaker", structural=True, lifecycle_state=LifecycleState.ARCHIVED),
).view()
ROWS = [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ({}, [1, 2, 3, 5, 6, 7, 8]),
        ({"include_inactive": True}, ROWS),
        ({"scopes": frozenset({Scope.PROJECT})}, [3]),
        ({"scopes": frozenset()}, []),
        ({"scopes": frozenset(Scope) - {Scope.PROJECT}}, [1, 2, 5, 6, 7, 8]),
        ({"time_from": at(49)}, [1, 2, 3, 5, 6, 7, 8]),
        ({"time_from": at(50)}, [1, 3, 5, 6, 7, 8]),  # ends at 50: not later; the entity is exempt
        ({"time_to": at(1)}, [1, 6, 7]),  # the preference is exempt
        ({"knowledge_at": at(3)}, [1, 2, 3]),
        ({"event_time_from": at(5)}, [5, 6, 7]),
        ({"event_time_to": at(2)}, [1, 2, 8]),
    ],
)
def test_each_filter_keeps_what_it_should(filters, kept):
    mask = VIEW.eligible(Filters(**filters))
    assert [ROWS[row] for row in range(len(mask)) if mask[row]] == kept
    assert (mask.sum(), mask.whole) == (len(kept), len(kept) == len(ROWS))


def test_hubs_carry_in_every_scope_and_time_while_active():
    narrow = Filters(scopes=frozenset({Scope.SANDBOX}), time_to=at(-1), event_time_to=at(-1))
    assert VIEW.eligible(narrow).carriers.tolist() == [False] * 8 + [True, False]
    later = dataclasses.replace(narrow, knowledge_at=at(8))
    assert not VIEW.eligible(later).carriers.any()


def test_a_mask_is_made_once_and_cannot_be_changed():
    mask = VIEW.eligible(Filters())
    assert VIEW.eligible(Filters()) is mask
    with pytest.raises(ValueError, match="read-only"):
        mask.rows[0] = False
