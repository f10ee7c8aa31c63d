"""Text is kept byte for byte or refused; names that look equal are equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.errors import InvalidRequest, InvalidText
from prme_ray.model.text import NAME_LIMIT, check_text, name_of


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_accepted_text_is_returned_unchanged(text):
    assert check_text(text, "text") is text


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("ab\x00", "a NUL character at character 2"),
        ("\ud83d", "a lone surrogate at character 0"),
        (b"bytes", "type bytes"),
        (None, "type NoneType"),
    ],
)
def test_what_no_index_can_hold_is_refused_and_located(value, what):
    with pytest.raises(InvalidText) as caught:
        check_text(value, "content", 3)
    assert (caught.value.argument, caught.value.given, caught.value.item) == ("content", what, 3)


def test_a_refusal_never_repeats_the_text():
    with pytest.raises(InvalidText) as caught:
        check_text("secret\x00", "content")
    assert "secret" not in str(caught.value)


def test_two_spellings_of_a_name_are_one_name():
    assert name_of("Ine\u0302s", "owner") == name_of("In\u00eas", "owner") == "In\u00eas"


@pytest.mark.parametrize("value", ["", "x" * (NAME_LIMIT + 1)])
def test_empty_and_endless_names_are_refused(value):
    with pytest.raises(InvalidRequest, match="1 to 1024 characters"):
        name_of(value, "tenant")


def test_the_longest_name_is_measured_after_normalising():
    assert len(name_of("e\u0301" * NAME_LIMIT, "owner")) == NAME_LIMIT
