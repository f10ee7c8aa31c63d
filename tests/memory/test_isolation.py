"""No owner sees, or is moved by, another owner's memories."""

import json
from datetime import timedelta

import pytest

from prme_ray import Memory
from tests.memory.tools import FEW_SHARDS, START, Clock, Ids, WordEncoder, same_request

OWNERS = [f"owner {number}" for number in range(30)]
TEMPLATES = [
    "Caroline adopted a cat called {0}.",
    "Caroline's cat {0} sleeps all day.",
    "I moved to {0} last year.",
    "My secret number is {0}.",
    "Caroline and {0} met in Lisbon.",
]
QUERIES = ["What is Caroline's cat called?", "Where did I move?", "secret number", "How many cats does Caroline have?"]


def secret(owner):
    """Return a word that only this owner's texts hold."""
    return f"Zq{OWNERS.index(owner)}x"


def fill(memory, owners, clock, ids):
    """Store the same kind of texts for all owners, turn by turn; times and ids depend on the owner alone."""
    receipts = {owner: [] for owner in owners}
    for turn, template in enumerate(TEMPLATES):
        for owner in owners:
            ids.name = owner
            clock.now = START + timedelta(hours=turn, minutes=OWNERS.index(owner))
            text = template.format(secret(owner))
            receipts[owner].append(memory.store(text, owner=owner, session_id="s", speaker="Caroline"))
    for owner in owners:
        ids.name = owner
        clock.now = START + timedelta(days=1, minutes=OWNERS.index(owner))
        node = memory.store_node(
            f"{secret(owner)} is pinned", owner=owner, node_type="fact", scope="project", pinned=True
        )
        memory.store_edge(node.node_id, receipts[owner][0].node_id, "supports", owner=owner)
        receipts[owner].append(node)
    return receipts


def ask(memory, owner, queries=QUERIES):
    answers = []
    for query in queries:
        for mode, scope in (("default", None), ("audit", None), ("default", "personal")):
            answer = memory.retrieve(
                query, owner=owner, retrieval_mode=mode, scope=scope, reference_time=START + timedelta(days=2)
            )
            answers.append(same_request(answer))
    return answers


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    clock, ids = Clock(step=timedelta(0)), Ids()
    path = tmp_path_factory.mktemp("town") / "store"
    with Memory.open(path, settings=FEW_SHARDS, encoder=WordEncoder(), clock=clock, new_id=ids) as memory:
        receipts = fill(memory, OWNERS, clock, ids)
        yield memory, receipts


def test_no_foreign_id_or_text_is_anywhere_in_an_answer(town):
    memory, receipts = town
    names = {
        owner: {r.node_id for r in found} | {r.event_id for r in found} - {None} for owner, found in receipts.items()
    }
    for owner in OWNERS:
        text = json.dumps(ask(memory, owner, QUERIES[:1]), ensure_ascii=False)
        assert secret(owner) in text
        for other in OWNERS:
            if other != owner:
                assert secret(other) not in text
                assert not any(name in text for name in names[other])


@pytest.mark.parametrize("owner", OWNERS[::10])
def test_an_answer_is_the_same_without_the_other_owners(town, tmp_path, owner):
    memory, _ = town
    clock, ids = Clock(step=timedelta(0)), Ids()
    with Memory.open(tmp_path, settings=FEW_SHARDS, encoder=WordEncoder(), clock=clock, new_id=ids) as alone:
        fill(alone, [owner], clock, ids)
        expected = ask(alone, owner)
    found = ask(memory, owner)
    assert found == expected
    assert all(answer["metadata"]["snapshot"] > 0 for answer in found)
