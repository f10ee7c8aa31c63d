"""Command line of the golden runner; see :mod:`tests.conformance`.

A check module ``check_<file>`` has ``actual(case)`` and may have ``expected(case)``, what the product
owes where that is not the case's ``expect``, and ``deviation(case)``. Labels and ids of a case decide
nothing. ``expect.error`` of any name means that the call has to be refused, in every file.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prme_ray.model.errors import EncoderRejected, InvalidRequest
from tests.conformance.compare import difference

DEVIATIONS = Path(__file__).parent.parent / "intended_deviations.toml"
REFUSALS = (InvalidRequest, EncoderRejected, ValidationError)
"""How the product says no to a caller's values. Any other exception is a crash, whatever was expected."""


def deviations(path: Path = DEVIATIONS) -> list[dict[str, Any]]:
    """Return the intended deviations: pattern of ``file/case id``, decision and reason."""
    return tomllib.loads(path.read_text("utf-8")).get("deviation", []) if path.exists() else []


def run_case(check: Any, case: dict[str, Any]) -> str | None:
    """Return how this case fails, or ``None``. A crash of the stage is a failure."""
    expected = check.expected(case) if hasattr(check, "expected") else case["expect"]
    if not expected:
        return "the case expects nothing that is checked"
    refusal_expected = "error" in expected
    try:
        actual = check.actual(case)
    except REFUSALS as error:
        return None if refusal_expected else f"refused: {error}"
    except Exception as error:  # whatever else the stage raises is the finding
        return f"raised {type(error).__name__}: {error}"
    return "accepted, expected a refusal" if refusal_expected else difference(actual, expected)


def run_file(path: Path, check: Any, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return counts, failures, intended deviations and stale entries of one golden file.

    A failing case is intended where its check states a deviation under a decision that is listed for
    it, and what the product gives is then exactly what that decision asks for. An entry that never
    applied is stale, unless no case of the file bears on its decision.
    """
    failures: dict[str, str] = {}
    intended: dict[str, str] = {}
    bearing: Counter[int] = Counter()
    used: set[int] = set()
    count = 0
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            case = json.loads(line)
            name = str(case.get("id", f"line {number}"))
            count += 1
            stated = check.deviation(case) if hasattr(check, "deviation") else None
            if stated is not None:
                bearing[stated["decision"]] += 1
            failure = run_case(check, case)
            if failure is None:
                continue
            allowed = [
                place
                for place, entry in enumerate(entries)
                if stated is not None
                and entry["decision"] == stated["decision"]
                and fnmatchcase(f"{path.stem}/{name}", entry["case"])
            ]
            wrong = difference(stated["actual"], stated["expected"]) if stated is not None else None
            if allowed and wrong is None:
                used.add(allowed[0])
                intended[name] = f"decision {stated['decision']}: {entries[allowed[0]]['reason']}"
            else:
                failures[name] = failure if wrong is None else f"decision {stated['decision']} does not explain {wrong}"
    stale = [
        entry["case"]
        for place, entry in enumerate(entries)
        if _file(entry) == path.stem
        and place not in used
        and (bearing[entry["decision"]] or not hasattr(check, "deviation"))
    ]
    passed = count - len(failures) - len(intended)
    return {"cases": count, "passed": passed, "failed": failures, "intended": intended, "stale": stale}


def _file(entry: dict[str, Any]) -> str:
    name: str = entry["case"].partition("/")[0]
    return name


def _check(stem: str) -> Any:
    """Return the check of a golden file, ``None`` where there is none yet."""
    module = f"tests.conformance.check_{stem}"
    return importlib.import_module(module) if importlib.util.find_spec(module) is not None else None


def main(arguments: list[str] | None = None) -> int:
    """Run every file of a directory; return 1 when anything failed that is not intended, or an entry is stale."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("directory", type=Path, help="folder of golden .jsonl files")
    parser.add_argument("--json", type=Path, help="write the whole result to this file")
    parser.add_argument("--only", nargs="*", help="file stems to run")
    parser.add_argument("--deviations", type=Path, default=DEVIATIONS, help="list of the intended deviations")
    options = parser.parse_args(arguments)
    files = sorted(options.directory.glob("*.jsonl"))
    if not files:
        parser.error(f"{options.directory} holds no .jsonl file")
    entries = deviations(options.deviations)
    report: dict[str, Any] = {}
    stale = [entry["case"] for entry in entries if _check(_file(entry)) is None]
    for path in files:
        if options.only and path.stem not in options.only:
            continue
        check = _check(path.stem)
        if check is None:
            report[path.stem] = None
            print(f"{path.stem:20} no check yet")
            continue
        found = report[path.stem] = run_file(path, check, entries)
        stale += found["stale"]
        print(
            f"{path.stem:20} cases {found['cases']:4}  passed {found['passed']:4}  "
            f"failed {len(found['failed']):4}  intended {len(found['intended']):3}"
        )
        for reason, times in Counter(found["intended"].values()).items():
            print(f"    {times} by {reason}")
        for name, reason in found["failed"].items():
            print(f"    {name}: {reason}")
    for pattern in stale:
        print(f"stale deviation: {pattern!r} excuses nothing; take it out of {options.deviations.name}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False), "utf-8")
    return 1 if stale or any(found and found["failed"] for found in report.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
