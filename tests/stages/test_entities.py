import pytest

from stages.entities import PROPER_NOUN_CONFIDENCE, QUOTED_CONFIDENCE, extract_entities, has_proper_noun


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Alice went", []),
        ("When did Caroline go?", ["Caroline"]),
        ("Hello! Bob is in", []),
        ("Hi.Bob came", ["Bob"]),
        ("the Big\nApple pie", ["Big\nApple"]),
        ("met McDonald and O'Brien", ["Mc", "Donald", "Brien"]),
        ("USA trip with NASA", []),
        ("it's bob's", ["s bob"]),
        ("say \"x\" and 'y'", ["x", "y"]),
        ("with Ann and Ann", ["Ann"]),
        ("", []),
        ("日本 with Ken", ["Ken"]),
    ],
)
def test_names_are_found_by_spelling(query, names):
    assert [entity.name for entity in extract_entities(query)] == names


def test_proper_nouns_come_first_and_carry_their_confidence():
    found = extract_entities('does "red dog" like Ann Lee')
    assert [(entity.name, entity.type, entity.confidence) for entity in found] == [
        ("Ann Lee", "unknown", PROPER_NOUN_CONFIDENCE),
        ("red dog", "unknown", QUOTED_CONFIDENCE),
    ]


def test_a_quoted_name_is_not_a_proper_noun_match():
    assert not has_proper_noun("does 'red dog' like it")
    assert has_proper_noun("does Ann like it")
