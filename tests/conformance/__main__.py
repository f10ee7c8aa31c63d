"""Command line of the golden runner; see :mod:`tests.conformance`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.conformance.compare import difference

_DEVIATIONS = Path(__file__).parent.parent / "intended_deviations.toml"


def deviations() -> list[dict[str, str]]:
    """Return the intended deviations: case id pattern, decision and reason."""
    if not _DEVIATIONS.exists():
        return []
    return tomllib.loads(_DEVIATIONS.read_text("utf-8")).get("deviation", [])


def run_case(check: Any, case: dict[str, Any]) -> str | None:
    """Return how this case fails, or ``None``. A crash of the stage is a failure."""
    try:
        actual = check.actual(case)
    except Exception as error:  # whatever the stage raises is the finding
        return f"raised {type(error).__name__}: {error}"
    expected = check.expected(case) if hasattr(check, "expected") else case["expect"]
    return difference(actual, expected)


def run_file(path: Path) -> dict[str, Any] | None:
    """Return counts and failures of one golden file; ``None`` where no check exists for it yet."""
    module = f"tests.conformance.check_{path.stem}"
    if importlib.util.find_spec(module) is None:
        return None
    check = importlib.import_module(module)
    failures: dict[str, str] = {}
    intended: dict[str, str] = {}
    count = 0
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                continue
            case = json.loads(line)
            count += 1
            failure = run_case(check, case)
            if failure is None:
                continue
            allowed = [item for item in deviations() if fnmatchcase(case["id"], item["case"])]
            if allowed:
                intended[case["id"]] = f"decision {allowed[0]['decision']}: {allowed[0]['reason']}"
            else:
                failures[case["id"]] = failure
    return {"cases": count, "passed": count - len(failures) - len(intended), "failed": failures, "intended": intended}


def main(arguments: list[str] | None = None) -> int:
    """Run every file of a directory; return 1 when anything failed that is not intended."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("directory", type=Path, help="folder of golden .jsonl files")
    parser.add_argument("--json", type=Path, help="write the whole result to this file")
    parser.add_argument("--only", nargs="*", help="file stems to run")
    options = parser.parse_args(arguments)
    files = sorted(options.directory.glob("*.jsonl"))
    if not files:
        parser.error(f"{options.directory} holds no .jsonl file")
    report: dict[str, Any] = {}
    failed = False
    for path in files:
        if options.only and path.stem not in options.only:
            continue
        found = run_file(path)
        report[path.stem] = found
        if found is None:
            print(f"{path.stem:20} no check yet")
            continue
        failed = failed or bool(found["failed"])
        print(
            f"{path.stem:20} cases {found['cases']:4}  passed {found['passed']:4}  "
            f"failed {len(found['failed']):4}  intended {len(found['intended']):3}"
        )
        for case_id, reason in found["failed"].items():
            print(f"    {case_id}: {reason}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False), "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
