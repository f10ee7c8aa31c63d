"""docs/conformance.md names what exists, and leaves out no section of the RFC."""

import importlib
import re
from pathlib import Path

import pytest

from prme_ray.pipeline import FLOW

ROOT = Path(__file__).resolve().parent.parent
LATER = {"receipts", "exact APIs", "answerability", "service", "benchmark"}
_TEST = re.compile(r"tests/[\w/]+\.py(?:::(\w+))?")


def rows():
    """Return the table rows: section, requirement, kept by, proof."""
    lines = (ROOT / "docs" / "conformance.md").read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if row[0] not in ("§", "---")]


ROWS = rows()
NAMED = [row for row in ROWS if not row[2].startswith("*")]


def found(name):
    """Return whether ``module:attribute.attribute`` exists."""
    module, _, path = name.partition(":")
    value = importlib.import_module(module)
    for attribute in path.split("."):
        if not hasattr(value, attribute):
            return False
        value = getattr(value, attribute)
    return bool(path)


def test_the_table_is_whole():
    assert all(len(row) == 4 and row[1] for row in ROWS)
    sections = {row[0] for row in ROWS}
    assert sections >= {"3", "4", *(f"4.{part}" for part in range(1, 8)), "5", "6", "7", "7.1", "7.2", "7.3", "8"}
    assert sections >= {"10", "11", "12", "13", "selection", "history", "embedding", "providers"}
    assert sum(row[0] == "12" for row in ROWS) == 8


@pytest.mark.parametrize("row", NAMED, ids=[f"{row[0]} {row[1][:40]}" for row in NAMED])
def test_functions_and_tests_exist(row):
    functions, tests = (re.findall(r"`([^`]+)`", cell) for cell in row[2:])
    assert functions
    assert tests
    assert re.sub(r"`[^`]+`|\s", "", row[2] + row[3]) == ""
    assert [name for name in functions if not found(name)] == []
    for test in tests:
        named = _TEST.fullmatch(test)
        assert named, test
        file = ROOT / test.partition("::")[0]
        assert file.is_file(), test
        assert named[1] is None or f"def {named[1]}(" in file.read_text("utf-8"), test


def test_what_is_left_out_says_where_it_belongs():
    for row in ROWS:
        if not row[2].startswith("*"):
            continue
        later = re.fullmatch(r"\*later: ([^*]+)\*", row[2])
        assert (later and later[1] in LATER) or row[2].startswith("*not built*: "), row
        assert row[3] == ""


def test_filtering_comes_before_scoring():
    names = [step.name for step in FLOW]
    assert names.index("allowed") < names.index("scored")
    scored = next(step for step in FLOW if step.name == "scored")
    # Scores are made of what the filter let through, and of nothing before it.
    assert set(scored.inputs) == {"allowed", "request", "analysis", "settings"}
