import unicodedata

import pytest

from storage.analyzer import MAX_QUERY_TERMS, build_analyzer, index_text, query_terms


def indexed(text: str) -> list[str]:
    return build_analyzer().analyze(index_text(text))


def test_words_are_split_lowered_and_stemmed_and_none_is_too_common():
    assert indexed("The dogs' foo_bar, running; C++ É") == ["the", "dog", "foo", "bar", "run", "c", "é"]


def test_terms_of_40_bytes_and_more_are_dropped():
    assert indexed(f"{'a' * 39} {'b' * 40} {'é' * 19} {'é' * 20}") == ["a" * 39, "é" * 19]


def test_ascii_text_is_indexed_as_it_is():
    text = "plain (text): nothing to do"
    assert index_text(text) is text


def test_runs_without_spaces_become_characters_and_pairs():
    assert indexed("iPhoneを買った") == ["iphon", "を", "買", "っ", "た", "を買", "買っ", "った"]
    assert query_terms("買った") == ["買っ", "った"]
    assert query_terms("買") == ["買"]


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("我昨天在北京吃了烤鸭", "北京"),
        ("昨日東京タワーに行きました", "タワー"),
        ("서울에서 김치를 먹었다", "김치"),
        ("เมื่อวานฉันกินข้าวที่กรุงเทพ", "กรุงเทพ"),
        ("ຂ້ອຍຢູ່ວຽງຈັນ", "ວຽງຈັນ"),
        ("ខ្ញុំរស់នៅភ្នំពេញ", "ភ្នំពេញ"),
        ("ကျွန်တော်ရန်ကုန်မှာနေတယ်", "ရန်ကုန်"),
        ("𠮷野家で食べた", "𠮷野家"),
    ],
)
def test_a_word_inside_a_run_is_found(sentence, word):
    assert set(query_terms(word)) <= set(indexed(sentence))
    for form in ("NFC", "NFD"):
        assert query_terms(unicodedata.normalize(form, word)) == query_terms(word)


@pytest.mark.parametrize(("one", "other"), [("café", "cafe\u0301"), ("タワー", "ﾀﾜｰ"), ("が", "か\u3099")])
def test_spellings_that_look_alike_are_one_term(one, other):
    assert indexed(one) == indexed(other)


@pytest.mark.parametrize("code", [0x0E49, 0x0EC9, 0x17D2, 0x1039, 0x3099])
def test_no_mark_of_a_run_cuts_a_pair_in_two(code):
    letter = chr(code - 0x20 if code != 0x3099 else 0x304B)
    assert all(len(term) <= 2 for term in query_terms(f"{letter}{chr(code)}{letter}"))
    assert len(query_terms(f"{letter}{chr(code)}{letter}")) == 1


@pytest.mark.parametrize("text", ["", " \n", "😀 ☕️ !!", "()"])
def test_text_without_letters_has_no_terms(text):
    assert query_terms(text) == []


def test_terms_count_once_and_the_first_ones_count():
    words = " ".join(f"w{number} w{number}" for number in range(3000))
    assert query_terms(words) == [f"w{number}" for number in range(MAX_QUERY_TERMS)]
