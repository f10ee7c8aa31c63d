"""The runner itself: what it forgives, what it does not, and the golden files when they are at hand."""

import json
import random
import re
import uuid
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from prme_ray.model.receipts import checksum_of
from tests.conformance.__main__ import DEVIATIONS, deviations, main, run_case
from tests.conformance.compare import difference

NODE = {"id": "00000000-0000-4000-8000-000000000001", "lifecycle_state": "deprecated", "confidence": 0.5}
GIVEN = {"mode": "default", "unverified_threshold": None, "nodes": [NODE]}
AS_THE_REFERENCE = {"kept": [NODE["id"]], "excluded": []}
AS_DECIDED = {"kept": [], "excluded": [{"id": NODE["id"], "reason": "lifecycle_filtered:deprecated"}]}
PASSES = {"id": "no-case-at-all", "given": {"nodes": [], "mode": "default", "unverified_threshold": None}}
PASSES["expect"] = {"kept": [], "excluded": []}


def run(folder, *cases, file="filter", deviation=True):
    """Run cases as one golden file; return the exit code."""
    lines = "\n\n".join(json.dumps(case) for case in cases)
    (folder / f"{file}.jsonl").write_text(f"\n{lines}\n\n", "utf-8")
    listed = folder / "deviations.toml"
    entry = '[[deviation]]\ncase = "filter/*"\ndecision = 7\nreason = "as decided"\n'
    listed.write_text(entry if deviation is True else deviation or "", "utf-8")
    return main([str(folder), "--deviations", str(listed)])


def case(name, expect, **labels):
    return {"id": name, "given": GIVEN, "expect": expect, **labels}


def test_a_stated_and_listed_deviation_is_intended(tmp_path, capsys):
    deviating = case("x", AS_THE_REFERENCE, expect_with_deviation=AS_DECIDED, colour="unknown label")
    assert run(tmp_path, deviating) == 0
    assert "failed    0  intended   1" in capsys.readouterr().out
    assert run(tmp_path, deviating, deviation=None) == 1


def test_a_deviation_excuses_only_what_its_decision_asks_for(tmp_path, capsys):
    assert run(tmp_path, case("x", AS_THE_REFERENCE)) == 0
    assert run(tmp_path, case("x", AS_THE_REFERENCE, expect_with_deviation=AS_DECIDED | {"kept": ["other"]})) == 1
    assert run(tmp_path, case("x", AS_THE_REFERENCE | {"kept": []}, expect_with_deviation=AS_DECIDED)) == 1
    assert "decision 7 does not explain" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pattern", "decision", "code"),
    [("filter/*", 7, 1), ("filter/*", 8, 0), ("filtre/*", 7, 1), ("merge/*", 7, 0)],
)
def test_an_entry_that_excuses_nothing_is_stale(tmp_path, capsys, pattern, decision, code):
    entry = f'[[deviation]]\ncase = "{pattern}"\ndecision = {decision}\nreason = "r"\n'
    deviating = case("x", AS_DECIDED, expect_with_deviation=AS_DECIDED)
    assert run(tmp_path, deviating, deviation=entry) == code
    assert (f"stale deviation: {pattern!r}" in capsys.readouterr().out) is bool(code)


def test_an_entry_is_not_stale_where_no_case_bears_on_it(tmp_path):
    assert run(tmp_path, PASSES) == 0


def test_a_file_without_a_check_is_named_and_does_not_fail(tmp_path, capsys):
    assert run(tmp_path, PASSES, file="weather", deviation=None) == 0
    assert "no check yet" in capsys.readouterr().out


def test_cases_need_no_id_and_no_label(tmp_path, capsys):
    assert run(tmp_path, {"given": GIVEN, "expect": AS_THE_REFERENCE}, deviation=None) == 1
    assert "line 2:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "given"),
    [
        ("filter", GIVEN | {"nodes": [NODE | {"lifecycle_state": "unheard of"}]}),
        ("episode", {"query": "q", "config": {"episode_context_top_k": -1}, "scored": []}),
        ("rerank_blend", {"scored": [], "neural_scores": {}, "policy": "none", "prior_weight": 0.3, "top_k": 1}),
    ],
)
def test_an_expected_refusal_is_a_refusal_and_not_a_crash(tmp_path, file, given):
    crash = file == "filter"
    expected = {"given": given, "expect": {"error": "ValueError"}}
    assert run(tmp_path, expected, file=file, deviation=None) == (1 if crash else 0)
    assert run(tmp_path, expected | {"expect": {"results": []}}, file=file, deviation=None) == 1


def test_accepting_what_has_to_be_refused_fails():
    class Check:
        actual = staticmethod(lambda case: {"anything": 1})

    assert run_case(Check, {"given": {}, "expect": {"error": "ValueError"}}) == "accepted, expected a refusal"


def test_a_case_that_expects_nothing_proves_nothing():
    assert run_case(None, {"given": {}, "expect": {}}) == "the case expects nothing that is checked"


UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def some_cases(folder, count):
    """Yield, for every golden file that has a check, its name and some of its cases as text."""
    for path in sorted((folder / "golden").glob("*.jsonl")):
        if find_spec(f"tests.conformance.check_{path.stem}"):
            lines = path.read_text("utf-8").splitlines()
            yield path.stem, random.Random(path.stem).sample(lines, min(count, len(lines)))


def resealed(given, changed):
    """Give a receipt with other ids the checksum of its text, where it had that before."""
    if "stored_checksum" in given and given["stored_checksum"] == checksum_of(given["receipt"]):
        changed["stored_checksum"] = checksum_of(changed["receipt"])


def test_cases_with_other_ids_and_no_labels_are_computed_alike(shared, tmp_path, capsys):
    for stem, lines in some_cases(shared, 8):
        renamed = []
        for number, line in enumerate(lines):
            ids = sorted(set(UUID.findall(line)))
            others = sorted(str(uuid.uuid5(uuid.NAMESPACE_OID, name)) for name in ids)
            other = dict(zip(ids, others, strict=True))
            changed = json.loads(UUID.sub(lambda found, other=other: other[found[0]], line))
            resealed(json.loads(line)["given"], changed["given"])
            renamed.append({"id": f"{number}", "given": changed["given"], "expect": changed["expect"]})
        (tmp_path / f"{stem}.jsonl").write_text("\n".join(map(json.dumps, renamed)), "utf-8")
    main([str(tmp_path)])
    report = capsys.readouterr().out
    assert report.count("failed    0") == report.count(" cases ") > 10, report


def corrupted(expect):
    """Yield an expectation with one thing in it changed, for every field and every list's length and order."""
    for name, value in expect.items():
        if name == "error":
            continue
        for wrong in changes(value):
            yield name, expect | {name: wrong}


def changes(value):
    if isinstance(value, list):
        yield [*value, *value[-1:]] if value else ["one too many"]
        if len(value) > 1 and value[0] != value[-1]:
            yield value[::-1]
        for wrong in changes(value[-1]) if value else ():
            yield [*value[:-1], wrong]
    elif isinstance(value, dict):
        for name in value:
            for wrong in changes(value[name]):
                yield value | {name: wrong}
    elif isinstance(value, bool) or value is None:
        yield not value
    else:
        yield value + "x" if isinstance(value, str) else value + 1e-9


def test_a_corrupted_expectation_is_always_reported(shared):
    unnoticed = set()
    for stem, lines in some_cases(shared, 3):
        check = import_module(f"tests.conformance.check_{stem}")
        for case in map(json.loads, lines):
            found = check.actual(case) if "error" not in case["expect"] else {}
            given = SimpleNamespace(actual=lambda _, found=found: found)
            for optional in ("expected", "deviation"):
                if hasattr(check, optional):
                    setattr(given, optional, getattr(check, optional))
            for name, wrong in corrupted(case["expect"]):
                changed = case | {"expect": wrong}
                stated = given.deviation(changed) if hasattr(given, "deviation") else None
                excused = stated is not None and difference(stated["actual"], stated["expected"]) is None
                if excused or run_case(given, changed) is None:
                    unnoticed.add((stem, name))
    assert unnoticed == set()


def test_differences():
    assert difference({"a": 1.0, "more": 2}, {"a": 1.0 + 1e-13}) is None
    assert difference({"a": 1.0}, {"a": 1.0 + 2e-12}) is not None
    assert difference({"a": True}, {"a": 1}) is None
    assert difference({"a": float("nan")}, {"a": 1.0}) is not None
    assert (
        difference({"levels": {"x": "full", "y": "full"}}, {"levels": {"x": "full"}}) == ".levels: ['y'] not expected"
    )
    assert difference([1, 2], [1]) == ": 2 items, expected 1"


def test_the_listed_deviations_all_show_and_nothing_else_fails(shared, capsys):
    assert main([str(shared / "golden")]) == 0, capsys.readouterr().out
    report = capsys.readouterr().out
    assert {f"by decision {entry['decision']}:" in report for entry in deviations(DEVIATIONS)} == {True}
