import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prme_ray.model.nodes import SPEAKER_KEY
from stages.render_reader import header, line, parts
from stages.render_record import read
from tests.conformance.tables import nodes_table
from tests.stages.packing_cases import node_id

LINE = re.compile(r'- (?:\[[^"]*\] )*(?P<speaker>"(?:[^"\\]|\\.)*": )?(?P<text>"(?:[^"\\]|\\.)*")')


def record(content: str, **fields):
    return read(nodes_table([{"id": node_id(1), "content": content} | fields]))[0]


def test_a_line_that_repeats_nothing_its_text_says() -> None:
    """Golden example 15: date and speaker stand in the text already."""
    shown = record(
        "(7:55 pm on 9 June, 2023) Caroline: hi",
        event_time="2023-06-09T19:55:00Z",
        metadata={SPEAKER_KEY: "Caroline"},
    )
    assert line(shown) == ('- "(7:55 pm on 9 June, 2023) Caroline: hi"', False)


def test_validity_and_an_unset_condition() -> None:
    """Golden example 16."""
    shown = record(
        "if it rains we stay",
        event_time="2023-06-09T19:55:00Z",
        valid_from="2023-06-09T19:55:00Z",
        valid_to="2024-01-01T00:00:00Z",
        epistemic_type="conditional",
    )
    assert line(shown)[0] == (
        "- [2023-06-09 19:55; valid 2023-06-09 19:55 to 2024-01-01] "
        '[conditional (condition unknown)] "if it rains we stay"'
    )


def test_every_part_in_order() -> None:
    shown = record(
        "I left", event_time="2024-02-01T00:00:00Z", lifecycle_state="contested", metadata={SPEAKER_KEY: "Anna"}
    )
    assert line(shown, "m3") == ('- [m3] [2024-02-01] [contested] "Anna": "I left"', True)


@pytest.mark.parametrize(
    "content",
    [
        "9 June 2023 x",
        "June 9th, 2023",
        "[2023/06/09 (Fri) 02:21] a",
        "2023-06-09T19:00 a",
        "  sept 9 2023",
        "9 sept 2023",
    ],
)
def test_spellings_of_the_date_a_text_starts_with(content: str) -> None:
    stated = "2023-09-09T00:00:00Z" if "sept" in content else "2023-06-09T00:00:00Z"
    assert parts(record(content, event_time=stated)).time is None
    assert parts(record(content, event_time="2023-06-10T00:00:00Z")).time == "2023-06-10"


def test_a_successor_hides_the_validity_window() -> None:
    ended = {"valid_from": "2023-01-01T00:00:00Z", "valid_to": "2023-02-01T00:00:00Z"}
    assert parts(record("x", **ended)).time == "valid 2023-01-01 to 2023-02-01"
    assert parts(record("x", superseded_by=node_id(2), **ended)).time is None


def test_the_header_explains_only_what_can_occur() -> None:
    plain = header(citations=False, speakers=False)
    assert "[mN]" not in plain
    assert "speaker" not in plain
    assert "[mN]" in header(citations=True, speakers=False)
    assert '"speaker": ' in header(citations=False, speakers=True)
    assert "\n" not in plain


@settings(max_examples=80, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
)
def test_no_stored_text_or_name_can_forge_a_line(content: str, name: str) -> None:
    written, speaker = line(record(content, metadata={SPEAKER_KEY: name}))
    assert written.splitlines() == [written]
    found = LINE.fullmatch(written)
    assert found is not None
    assert json.loads(found["text"]) == content
    assert (found["speaker"] is not None) == speaker
    if speaker:
        assert json.loads(found["speaker"][:-2]) == name.strip()
