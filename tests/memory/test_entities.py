"""Names of a question get the types that the owner's entities say (decision 10)."""

import pytest

from tests.memory.tools import OWNER, START

QUESTION = "Where does Oscar sleep?"


def store_entity(memory, name, kind, *, owner=OWNER, **fields):
    return memory.store_node(name, owner=owner, node_type="entity", metadata={"entity_type": kind}, **fields)


def types(memory, query=QUESTION, **options):
    entities = memory.retrieve(query, owner=OWNER, **options).metadata.entities
    return {entity["name"]: entity["type"] for entity in entities}


def test_a_type_is_what_the_owner_s_entity_says_letter_case_aside(memory, opened):
    store_entity(memory, "OSCAR", "cat")
    assert memory.retrieve(QUESTION, owner=OWNER).metadata.entities == [
        {"name": "Oscar", "type": "cat", "confidence": 0.7}
    ]
    assert types(memory, "Does Oscar know 'Ben'?") == {"Oscar": "cat", "Ben": "unknown"}
    memory.close()
    assert types(opened()) == {"Oscar": "cat"}


@pytest.mark.parametrize("kind", [5, None, ["cat"], "", "  "])
def test_what_is_no_text_is_no_type(memory, kind):
    store_entity(memory, "Oscar", kind)
    assert types(memory) == {"Oscar": "unknown"}


def test_names_in_plain_memories_have_no_type(memory):
    memory.store("Yesterday Oscar slept.", owner=OWNER, metadata={"entity_type": "cat"})
    store_entity(memory, "Oscar Wilde", "person")
    store_entity(memory, "Oscar", "robot", owner="somebody else")
    assert types(memory) == {"Oscar": "unknown"}


def test_only_entities_the_request_may_see_say_a_type(memory):
    store_entity(memory, "Oscar", "cat", scope="project")
    assert types(memory, scope="personal") == {"Oscar": "unknown"}
    assert types(memory, scope=["personal", "project"]) == {"Oscar": "cat"}
    assert types(memory, knowledge_at=START.replace(year=2020)) == {"Oscar": "unknown"}
    store_entity(memory, "Lea", "person", lifecycle_state="archived")
    assert types(memory, "Is Lea here?") == {"Lea": "unknown"}


def test_the_most_confident_entity_decides_then_the_newest(memory):
    store_entity(memory, "Oscar", "dog", confidence=0.5)
    store_entity(memory, "oscar", "cat", confidence=0.9)
    assert types(memory) == {"Oscar": "cat"}
    store_entity(memory, "Oscar", "prize", confidence=0.9)
    assert types(memory) == {"Oscar": "prize"}
