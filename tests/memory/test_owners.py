"""Names of owners and tenants: never a path, never shared, equal spellings are one name."""

import itertools

import pytest

from tests.memory.tools import OWNER

NAMES = [
    "a/b",
    "a",
    "b",
    "..",
    "../../escape",
    "/etc/passwd",
    "C:\\x",
    " ",
    "x" * 300,
    "x" * 299,
    "🦊",
    "CON",
    "a:b",
    "a' OR '1'='1",
    "%",
    "*",
    "dana",
    "Dana",
    "\u2028",
]


def files(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


def test_every_name_is_an_owner_of_its_own_and_none_is_a_path(memory, folder, tmp_path):
    stored = {}
    for name in NAMES:
        stored[name] = memory.store(f"secret number {NAMES.index(name)}", owner=name)
    for name in NAMES:
        answer = memory.retrieve("secret number", owner=name)
        assert answer.results.ids == [stored[name].node_id]
        assert memory.get(stored[name].node_id, owner=name).content == f"secret number {NAMES.index(name)}"
    memory.flush()
    assert files(tmp_path) == files(folder)
    assert not any("x" * 50 in str(path) or "escape" in str(path) for path in folder.rglob("*"))


def test_tenant_and_owner_are_two_names_and_not_one_joined(memory):
    pairs = list(itertools.product(["a", "ab", "a/b"], ["c", "bc", "b/c"]))
    stored = {pair: memory.store("the same text", owner=pair[1], tenant=pair[0]) for pair in pairs}
    for (tenant, owner), receipt in stored.items():
        answer = memory.retrieve("the same text", owner=owner, tenant=tenant)
        assert answer.results.ids == [receipt.node_id]


@pytest.mark.parametrize(
    ("composed", "decomposed"), [("J\u00e4ger", "Ja\u0308ger"), ("\u00c5", "\u212b"), ("\uac00", "\u1100\u1161")]
)
def test_equal_looking_names_are_one_name(memory, composed, decomposed):
    assert composed != decomposed
    stored = memory.store("one", owner=composed, tenant=decomposed)
    assert memory.get(stored.node_id, owner=decomposed, tenant=composed).content == "one"
    assert memory.retrieve("one", owner=decomposed, tenant=composed).results.ids == [stored.node_id]


def test_equal_looking_sessions_are_one_session(memory):
    for session_id in ("caf\u00e9", "cafe\u0301"):
        stored = memory.store("text", owner=OWNER, session_id=session_id)
        assert memory.get(stored.node_id, owner=OWNER).session_id == "caf\u00e9"


def test_a_name_survives_reopening(memory, opened):
    stored = memory.store("one", owner="🦊/..", tenant="Ja\u0308ger")
    memory.close()
    assert opened().retrieve("one", owner="🦊/..", tenant="J\u00e4ger").results.ids == [stored.node_id]
