"""docs/settings.md is what the settings models say."""

import re

import pytest

from jobs.settings_table import main, settings_table
from prme_ray.model.settings.walk import knobs
from prme_ray.settings_io import variable_name
from tests.architecture import ROOT

DOCUMENT = ROOT / "docs" / "settings.md"


def rows():
    """Cells of every line about a setting: name, default, allowed, meaning, variable."""
    lines = [line for line in settings_table().splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_committed_table_is_the_generated_one():
    assert DOCUMENT.read_text("utf-8") == settings_table(), "run python -m jobs.settings_table"


def test_every_setting_has_one_row_of_five_cells():
    assert all(len(cells) == 5 and all(cells) for cells in rows())
    assert sorted(cells[4] for cells in rows()) == sorted(f"`{variable_name(knob.path)}`" for knob in knobs())


@pytest.mark.parametrize(
    ("name", "default", "allowed"),
    [
        ("graph_max_hops", "`3`", "whole number 1 to 3"),
        ("token_budget", "`4096`", "whole number of at least 0"),
        ("rrf_recency_boost", "`0.25`", "number above 0, up to 4 or `null`"),
        ("rrf_k", "`60`", "whole number 1 to 10000 or `null`"),  # what is in force, not what is left out
        ("rrf_tie_break", "`event_time`", "`event_time` or `null`"),
        ("fusion", "`rrf`", "`rrf`, `weighted`"),
        ("w_semantic", "`0.25`", "number"),
        ("fold_repeated_text", "`true`", "`true` or `false`"),
        ("disabled_channels", "`[]`", "list of `GRAPH`, `VECTOR`, `LEXICAL`, `PINNED`"),
        ("confidence_overrides", "`{}`", "map; keys: text; values: number 0 to 1"),
        ("model_path", "`null`", "text or `null`"),
    ],
)
def test_defaults_and_limits_are_put_into_words(name, default, allowed):
    assert [cells[1:3] for cells in rows() if cells[0] == f"`{name}`"] == [[default, allowed]]


def test_sentences_are_markdown_without_references_to_the_specification():
    text = settings_table()
    assert "``" not in text
    assert re.search(r"decision \d|digest [ab]", text) is None
    assert "carry references `[m1]`; needs the reader format" in text


def test_check_says_whether_a_file_is_up_to_date_and_writes_nothing(tmp_path, capsys):
    file = tmp_path / "new" / "settings.md"
    check = ["--check", "--output", str(file)]
    assert main(check) == 1
    assert not file.exists()
    assert main(["--output", str(file)]) == 0
    assert main(check) == 0
    file.write_text("old\n")
    assert main(check) == 1
    assert file.read_text() == "old\n"
    assert "out of date: run python -m jobs.settings_table" in capsys.readouterr().out
