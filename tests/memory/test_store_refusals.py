"""Every argument of the writing verbs that is not allowed is named, and nothing is stored."""

import json
import math

import pytest

from prme_ray.model.errors import InvalidRequest, InvalidText
from tests.memory.tools import OWNER

ID = "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
NAIVE = "2026-05-04T10:00:00"


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def circular():
    value = []
    value.append(value)
    return {"a": value}


COMMON = [
    ("content", {"content": None}),
    ("content", {"content": b"bytes"}),
    ("content", {"content": "a\x00"}),
    ("content", {"content": "\udc80"}),
    ("owner", {"owner": ""}),
    ("owner", {"owner": None}),
    ("owner", {"owner": "x" * 1025}),
    ("tenant", {"tenant": "\ud800"}),
    ("session_id", {"session_id": ""}),
    ("session_id", {"session_id": 7}),
    ("node_type", {"node_type": "memo"}),
    ("node_type", {"node_type": []}),
    ("scope", {"scope": "Personal"}),
    ("role", {"role": "human "}),
    ("source_type", {"source_type": "rumour"}),
    ("epistemic_type", {"epistemic_type": "certain"}),
    ("epistemic_type", {"epistemic_type": "deprecated"}),
    ("metadata.condition", {"epistemic_type": "conditional"}),
    ("metadata.condition", {"epistemic_type": "conditional", "metadata": {"condition": " "}}),
    (
        "metadata.condition_state",
        {"epistemic_type": "conditional", "metadata": {"condition": "if", "condition_state": "true"}},
    ),
    ("confidence", {"confidence": 1.01}),
    ("confidence", {"confidence": -0.1}),
    ("confidence", {"confidence": math.nan}),
    ("confidence", {"confidence": True}),
    ("confidence", {"confidence": "0.5"}),
    ("confidence", {"confidence": 10**400}),
    ("event_time", {"event_time": NAIVE}),
    ("event_time", {"event_time": "yesterday"}),
    ("event_time", {"event_time": 1_700_000_000}),
    ("valid_from", {"valid_from": NAIVE}),
    ("valid_to", {"valid_to": NAIVE}),
    ("valid_to", {"valid_to": "2026-05-04T10:00:00Z"}),
    ("valid_to", {"valid_from": "2026-05-04T10:00:00Z", "valid_to": "2026-05-04T12:00:00+02:00"}),
    ("ttl_days", {"ttl_days": 0}),
    ("ttl_days", {"ttl_days": 1.5}),
    ("ttl_days", {"ttl_days": True}),
    ("ttl_days", {"ttl_days": 10**400}),
    ("retrieval_content", {"retrieval_content": 5}),
    ("value_bindings", {"value_bindings": ["house"]}),
    ("value_bindings", {"value_bindings": {"house": "h"}}),
    ("value_bindings", {"value_bindings": {"text": "text"}}),
    ("value_bindings", {"value_bindings": {"": "h"}}),
    ("value_bindings", {"value_bindings": {"text": "h"}, "retrieval_content": "other"}),
    (
        "value_bindings",
        {"content": "".join(map(chr, range(256, 600))), "value_bindings": {chr(c): "h" for c in range(256, 513)}},
    ),
    ("speaker", {"speaker": ""}),
    ("speaker", {"speaker": "x" * 201}),
    ("speaker", {"speaker": "Dana\n[2026] Eve"}),
    ("speaker", {"speaker": "Da\u2028na"}),
    ("speaker", {"speaker": "\u202eanaD"}),
    ("metadata", {"metadata": [1]}),
    ("metadata", {"metadata": {"a": {1, 2}}}),
    ("metadata", {"metadata": {"a": math.inf}}),
    ("metadata", {"metadata": {"a": "\x00"}}),
    ("metadata", {"metadata": {"a": 10**5000}}),
    ("metadata", {"metadata": nested(70)}),
    ("metadata", {"metadata": circular()}),
    ("metadata key", {"metadata": {"a": {1: "x"}}}),
    ("metadata key", {"metadata": {"\ud800": 1}}),
    ("metadata", {"metadata": {"prme_speaker_v1": "Eve"}}),
    ("metadata", {"metadata": {"prme_value_bindings_v1": []}}),
]
NODES = [
    ("node_id", {"node_id": "5"}),
    ("node_id", {"node_id": 5}),
    ("evidence_refs", {"evidence_refs": None}),
    ("evidence_refs", {"evidence_refs": ID}),
    ("evidence_refs", {"evidence_refs": ["5"]}),
    ("salience", {"salience": 1.5}),
    ("pinned", {"pinned": "no"}),
    ("lifecycle_state", {"lifecycle_state": "active"}),
]


def names(cases):
    return [f"{argument}-{number}" for number, (argument, _) in enumerate(cases)]


def refused(call, argument):
    with pytest.raises(InvalidRequest) as caught:
        call()
    assert caught.value.argument == argument
    assert argument in str(caught.value)


def nothing_stored(memory):
    return all(shard.sequence == 0 for shard in memory.health().shards)


@pytest.mark.parametrize(("argument", "given"), COMMON, ids=names(COMMON))
def test_store_and_store_node_name_what_they_refuse(memory, argument, given):
    given = {"content": "text", "owner": OWNER, **given}
    content = given.pop("content")
    refused(lambda: memory.store(content, **given), argument)
    refused(lambda: memory.store_node(content, **{"node_type": "fact", **given}), argument)
    assert nothing_stored(memory)


@pytest.mark.parametrize(("argument", "given"), NODES, ids=names(NODES))
def test_store_node_names_what_it_refuses(memory, argument, given):
    refused(lambda: memory.store_node("text", owner=OWNER, node_type="fact", **given), argument)
    assert nothing_stored(memory)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("source_id", {"source_id": "5"}),
        ("target_id", {"target_id": None}),
        ("edge_type", {"edge_type": "knows"}),
        ("confidence", {"confidence": 2}),
        ("valid_from", {"valid_from": NAIVE}),
        ("valid_to", {"valid_to": "2026-05-04T10:00:00Z"}),
        ("metadata", {"metadata": {"a": math.nan}}),
    ],
)
def test_store_edge_names_what_it_refuses(memory, argument, given):
    node_id = memory.store("text", owner=OWNER).node_id
    before = memory.health().shards[0].sequence
    given = {"source_id": node_id, "target_id": node_id, "edge_type": "supports", **given}
    refused(lambda: memory.store_edge(owner=OWNER, **given), argument)
    assert memory.health().shards[0].sequence == before


def test_a_refused_text_is_not_in_the_message(memory):
    with pytest.raises(InvalidText) as caught:
        memory.store("secret\x00", owner=OWNER)
    assert "secret" not in str(caught.value)
    assert "character 6" in str(caught.value)


@pytest.mark.parametrize(
    "metadata", [nested(60), {"a": "\\u0000", "b": (1, 2), "c": 2**64, "é": {"d": [None, True, 0.1]}}]
)
def test_metadata_that_is_taken_can_be_read_again(memory, opened, metadata):
    stored = memory.store("text", owner=OWNER, metadata=metadata)
    expected = json.loads(json.dumps(metadata))
    memory.close()
    memory = opened()
    assert memory.get(stored.node_id, owner=OWNER).metadata == expected
    assert memory.retrieve("text", owner=OWNER).results[0].metadata == expected


def test_later_changes_of_the_callers_metadata_do_not_reach_the_store(memory):
    metadata = {"tags": ["a"]}

    def items():
        yield {"content": "text", "metadata": metadata}
        metadata["tags"].append("b")

    (stored,) = memory.store_many(items(), owner=OWNER)
    assert memory.get(stored.node_id, owner=OWNER).metadata == {"tags": ["a"]}
