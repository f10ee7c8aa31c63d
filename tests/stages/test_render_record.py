from stages.render_record import LEVELS, TEXT_LEVELS, level_text, quoted, read, utc
from tests.conformance.tables import nodes_table
from tests.stages.packing_cases import node_id


def test_what_stands_for_the_text_at_each_level():
    (shown,) = read(nodes_table([{"id": node_id(7), "content": "I left.", "node_type": "fact", "confidence": 0.5}]))
    assert [level_text(shown, level) for level in LEVELS] == [
        "I left.",
        "fact: I left.",
        f"id={node_id(7)}; type=fact; confidence=0.50",
        f"fact {node_id(7)}",
    ]
    # A receipt says "has content" of these, and of no other.
    assert [level for level in LEVELS if "I left." in level_text(shown, level)] == list(TEXT_LEVELS)


def test_one_line_for_every_reader():
    assert quoted('"a\u2028b\u2029c\u0085d 猫"') == '"a\\u2028b\\u2029c\\u0085d 猫"'
    assert quoted('"plain"') == '"plain"'


def test_instants():
    assert (utc(None), utc(0), utc(1_500_000)) == (None, "1970-01-01T00:00:00Z", "1970-01-01T00:00:01.500000Z")
