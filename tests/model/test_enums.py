"""Codes and bits are part of the store format: their values are written out here."""

import pytest

from prme_ray.model import enums
from prme_ray.model.enums import (
    ACTIVE_STATES,
    PINNABLE_STATES,
    EpistemicType,
    LifecycleState,
    NodeType,
    Path,
    code,
    member,
    path_names,
)

CODED = {
    "NodeType": "entity event fact decision preference task summary note instruction intent",
    "EdgeType": "relates_to supersedes derived_from mentions part_of caused_by supports contradicts has_fact",
    "Scope": "personal project organisation agent system sandbox",
    "LifecycleState": "tentative stable contested superseded deprecated archived",
    "EpistemicType": "observed asserted inferred hypothetical conditional deprecated unverified",
    "SourceType": "user_stated user_demonstrated system_inferred external_document tool_output",
    "DecayProfile": "permanent slow medium fast rapid",
    "Role": "user participant assistant tool system",
    "Adjustment": "neural_blend neural_rank_assignment current_update session_decay episode_decay "
    "evidence_projection evidence_augmentation",
}


@pytest.mark.parametrize("name", CODED)
def test_a_code_is_the_position_in_the_stored_order(name):
    kind = getattr(enums, name)
    values = CODED[name].split()
    assert [str(item) for item in kind] == values
    for position, value in enumerate(values):
        assert code(kind(value)) == position
        assert member(kind, position) is kind(value)


def test_equal_strings_of_different_enums_have_their_own_codes():
    assert LifecycleState.DEPRECATED == EpistemicType.DEPRECATED
    assert (code(LifecycleState.DEPRECATED), code(EpistemicType.DEPRECATED)) == (4, 5)


def test_a_code_without_a_member_is_refused():
    with pytest.raises(IndexError):
        member(NodeType, len(NodeType))


def test_paths_are_bits_in_order():
    assert [path.bit for path in Path] == [1, 2, 4, 8, 16, 32, 64]
    assert path_names(0) == ()
    assert path_names(Path.LEXICAL.bit | Path.GRAPH.bit) == ("GRAPH", "LEXICAL")
    assert path_names(127) == tuple(str(path) for path in Path)


def test_contested_memories_are_active_but_not_looked_up_by_pin():
    assert set(ACTIVE_STATES) - set(PINNABLE_STATES) == {LifecycleState.CONTESTED}
