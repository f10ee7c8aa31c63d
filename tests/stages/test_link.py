"""Names found in memories: hand-checked lines, scripts, limits and inputs made to be slow."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.link import FIRST, INSIDE, MENTION_LIMIT, QUOTED, SPEAKER, Mention, entity_key, link


def found(text, **options):
    return {mention.name: mention.confidence for mention in link(text, **options)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Inside a sentence.
        ("we met Ana in Porto", {"Ana": INSIDE, "Porto": INSIDE}),
        ("Thanks, Ana! The concert was fun", {"Ana": INSIDE}),
        ("Hey Ana, how are you?", {"Ana": INSIDE}),
        ("dinner with Ana (Leo cooked) & Bo", {"Ana": INSIDE, "Leo": INSIDE, "Bo": INSIDE}),
        ("he lives in New  York City now", {"New York City": INSIDE}),
        ("a trip\nNew\nYork", {"York": FIRST}),
        ("The Beatles and Queen", {"Beatles": INSIDE, "Queen": INSIDE}),
        # At the start of a sentence.
        ("Ana called. Porto is rainy! Leo?", {"Ana": FIRST, "Porto": FIRST, "Leo": FIRST}),
        ("Ana called me. I called Ana", {"Ana": INSIDE}),
        ("New York is loud. New shoes", {"New York": FIRST}),
        ("Painting is fun. Loved it. Really! Great. Self-made", {}),
        ("Plants need light. I water my plants and Pumpkins", {"Pumpkins": INSIDE}),
        ("🎉 Ana won", {"Ana": FIRST}),
        # Ordinary words, the calendar, contractions.
        ("I'm sure He'll come on Monday in May, Don't worry, That's it", {}),
        ("I think I am OK, LOL", {}),
        # Possessives and contracted verbs.
        ("that is Ana's Mom and James' dog", {"Ana": INSIDE, "Mom": INSIDE, "James": INSIDE}),
        ("so Ana’ll drive, Leo'd walk", {"Ana": INSIDE, "Leo": INSIDE}),
        # Shapes.
        ("with O'Brien and D’Arcy", {"O'Brien": INSIDE, "D’Arcy": INSIDE}),
        ("near McDonald and YouTube", {"McDonald": INSIDE, "YouTube": INSIDE}),
        ("books by J. K. Rowling and J.R.R. Tolkien", {"J. K. Rowling": INSIDE, "J.R.R. Tolkien": INSIDE}),
        ("ask Dr. Smith about St. Louis", {"Dr. Smith": INSIDE, "St. Louis": INSIDE}),
        ("Jean-Luc and the Coca-Cola", {"Jean-Luc": FIRST, "Coca-Cola": INSIDE}),
        ("the LGBTQ+ group of UNESCO in NYC", {"LGBTQ": INSIDE, "UNESCO": INSIDE, "NYC": INSIDE}),
        ("this is AMAZINGLY good, vitamin C, X", {}),
        ("GUYS WE FINALLY DID THIS THING TODAY HURRAH", {}),
        ("so Ana SAID NO WAY EVER", {"Ana": INSIDE}),
        ("One Two Alpha Beta Gamma Delta Epsilon Zeta Eta", {}),
        ("see https://Example.com/Docs and C:\\Windows", {}),
        # Scripts.
        ("merhaba Ünal, selam İpek", {"Ünal": INSIDE, "İpek": INSIDE}),
        ("merhaba U\u0308nal", {"Ünal": INSIDE}),
        ("вчера Анна видела Киев", {"Анна": INSIDE, "Киев": INSIDE}),
        ("昨日、友達と「千と千尋の神隠し」を見た", {"千と千尋の神隠し": QUOTED}),
        # Quotes.
        ('she read "the red door" twice', {"the red door": QUOTED}),
        ("she read “Dune,” and „Solaris“", {"Dune": QUOTED, "Solaris": QUOTED}),
        ('a 5" board and a 6" pipe', {}),
        ('"one two three four five six seven eight nine"', {}),
        ('he said "no" and "!!"', {}),
        ('an "unclosed quote', {}),
        ("", {}),
        ("   \n ", {}),
    ],
)
def test_names_of_a_line(text, expected):
    assert found(text) == expected


def test_a_mention_carries_name_key_confidence_and_kind():
    assert link('we saw  "Blue  Hour"  with Ana\'s aunt', speaker=" Leo  Park ") == (
        Mention("Leo Park", "leo park", SPEAKER, "speaker"),
        Mention("Blue Hour", "blue hour", QUOTED, "quoted"),
        Mention("Ana", "ana", INSIDE, "proper_noun"),
    )


def test_the_strongest_way_a_name_was_found_counts():
    assert found("Leo ran. I saw Leo", speaker=None) == {"Leo": INSIDE}
    assert found('Leo ran. "Leo" again') == {"Leo": QUOTED}
    assert found("I saw LEO and Leo's cat", speaker="leo") == {"leo": SPEAKER}


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Ana: hello", "Ana"),
        ("  Ana Lucía O'Neil: hello", "Ana Lucía O'Neil"),
        ("(8 May 2023) Ana: hello", "Ana"),
        ("[1:56 pm] Dr. Ünal: hello", "Dr. Ünal"),
        ("Ana：hello", "Ana"),
        ("Ana:hello", None),
        ("ana: hello", None),
        ("Ana Bo Cy Di: hello", None),
        ("Note: buy milk", None),
        ("User: hi", None),
        ("Great: hi", None),
        ("(a) (b) Ana: hello", None),
        ("at 5 Ana: hello", None),
    ],
)
def test_a_leading_name_and_colon_is_the_speaker(text, speaker):
    speakers = [mention.name for mention in link(text) if mention.kind == "speaker"]
    assert speakers == ([] if speaker is None else [speaker])


def test_a_given_speaker_replaces_the_prefix():
    assert found("Ana: hello", speaker="Leo") == {"Leo": SPEAKER, "Ana": FIRST}
    assert found("hello", speaker=" ") == {}
    assert found("hello", speaker="田中") == {"田中": SPEAKER}


@pytest.mark.parametrize(
    "spellings",
    [
        ("Ana", "ANA", "ana", "Ana's", "ANA’S", " Ana "),
        ("James", "James'", "James’", "james's"),
        ("New York", "new  york", "NEW\tYORK"),
        ("O'Brien", "O’Brien", "o'brien's"),
        ("J. K. Rowling", "J.K. Rowling", "J K Rowling"),
        ("Ünal", "U\u0308nal", "ÜNAL"),
        ("ＮＨＫ", "NHK", "nhk"),
        ("Straße", "STRASSE"),
    ],
)
def test_spellings_of_one_name_share_a_key(spellings):
    assert len({entity_key(spelling) for spelling in spellings}) == 1


def test_different_names_have_different_keys():
    assert len({entity_key(name) for name in ("Ana", "Anna", "Ann", "Annas", "Án", "O'Brien", "Brien")}) == 7
    assert entity_key("?! …") == ""


def test_the_first_names_are_kept_in_order():
    text = " ".join(f'x Name{number} y "title {number}",' for number in range(40))
    names = [mention.name for mention in link(text, speaker="Leo")]
    pairs = [name for number in range(40) for name in (f"Name{number}", f"title {number}")]
    assert names == ["Leo", *pairs][:MENTION_LIMIT]


@pytest.mark.parametrize(
    "unit",
    [
        "A ",
        "A'",
        "A's ",
        "Ab ",
        "Ab. ",
        "A.",
        "x. Painting ",
        '"',
        '"a',
        "“a b",
        "(",
        "[a",
        "你好",
        "你 ",
        "a",
        "A-",
        " ",
        "é ",
    ],
)
def test_time_is_bounded_on_100_000_characters(unit):
    text = unit * (100_000 // len(unit))
    start = time.process_time()
    assert len(link(text)) <= 1
    assert time.process_time() - start < 0.5  # 50 ms and less where nothing else runs; quadratic takes minutes


def test_prose_of_100_000_characters():
    text = "yesterday Ana and Leo walked along the river, and we talked about the old bridge. " * 1200
    start = time.process_time()
    assert found(text) == {"Ana": INSIDE, "Leo": INSIDE}
    assert time.process_time() - start < 0.5


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from("aAbB sS.'’\"“”「」:([)]-\n\t,!é\u0308ÜßΣ你🎉5_/&"), max_size=60))
@example("A\u0308'S.B")
def test_any_text_gives_sound_mentions(text):
    mentions = link(text)
    assert mentions == link(text)
    keys = [mention.key for mention in mentions]
    assert len(set(keys)) == len(keys) <= MENTION_LIMIT
    for mention in mentions:
        assert entity_key(mention.name) == mention.key != ""
        assert mention.confidence in {SPEAKER, INSIDE, QUOTED, FIRST}
        assert mention.name == mention.name.strip()
