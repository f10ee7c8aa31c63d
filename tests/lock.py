"""Keeps requirements.lock true: ``python -m tests.lock check`` and ``python -m tests.lock write``."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
HEADER = """\
# Exact versions of every package that prme-ray runs and is tested with (a pip constraints file).
# Written by `make lock`: a fresh environment, the newest versions that pyproject.toml allows.
# Install with: pip install -c requirements.lock -e ".[test]"
"""


def pins(text: str) -> dict[str, str]:
    """Return version by normalised name. Raises ValueError for a line that is not ``name==version``."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        name, separator, version = entry.partition("==")
        if not separator or not name or not version or any(c in entry for c in " ;@*,"):
            raise ValueError(f"requirements.lock line {number}: {entry!r} is not name==version")
        key = canonicalize_name(name)
        if key in found:
            raise ValueError(f"requirements.lock line {number}: {name} is pinned twice")
        found[key] = version
    return found


def declared() -> list[Requirement]:
    """Return the runtime and test requirements of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    found = [Requirement(text) for text in project["dependencies"] + extras["test"]]
    # An extra may name others of the project itself.
    own = [item for item in found if item.name == project["name"]]
    found += [Requirement(text) for item in own for extra in sorted(item.extras) for text in extras[extra]]
    return [item for item in found if item not in own]


def installed_requirements(name: str) -> tuple[str, list[str]] | None:
    """Return version and requirements of an installed package, or None."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    return found.version, list(found.requires or ())


def problems(
    wanted: Iterable[Requirement],
    pinned: dict[str, str],
    lookup: Callable[[str], tuple[str, list[str]] | None] = installed_requirements,
) -> list[str]:
    """Return what is wrong with the pins of ``wanted`` and of everything they need in turn."""
    found: list[str] = []
    seen: set[tuple[str, str]] = set()
    waiting = [(item, extra) for item in wanted for extra in ("", *item.extras)]
    while waiting:
        item, extra = waiting.pop()
        name = canonicalize_name(item.name)
        if item.marker is not None and not item.marker.evaluate({"extra": extra}):
            continue
        package = lookup(item.name)
        version = pinned.get(name)
        if version is None:
            found.append(f"{name} is not pinned: run `make lock`")
        elif package is None:
            found.append(f"{name}=={version} is not installed: run `make test`")
        elif package[0] != version:
            found.append(f"{name} {package[0]} is installed, {version} is pinned: run `make lock` or remove .venv")
        elif not item.specifier.contains(version, prereleases=True):
            found.append(f"{name}=={version} does not satisfy {item}")
        for own_extra in ("", *item.extras):
            if package is not None and (name, own_extra) not in seen:
                seen.add((name, own_extra))
                waiting.extend((Requirement(text), own_extra) for text in package[1])
    return sorted(set(found))


def written(names: Iterable[tuple[str, str]]) -> str:
    """Return the text of a lock file for (name, version) pairs."""
    # These belong to the environment, not to the product.
    own = {"pip", "setuptools", "wheel", "prme-ray"}
    kept = {canonicalize_name(name): version for name, version in names}
    return HEADER + "".join(f"{name}=={kept[name]}\n" for name in sorted(kept) if name not in own)


def main(arguments: list[str] | None = None) -> int:
    """Check the lock against this environment, or write it from this environment."""
    parser = argparse.ArgumentParser(prog="python -m tests.lock", description=__doc__)
    parser.add_argument("action", choices=["check", "write"])
    if parser.parse_args(arguments).action == "write":
        LOCK.write_text(written((item.name, item.version) for item in metadata.distributions()), "utf-8")
        return 0
    pinned = pins(LOCK.read_text("utf-8"))
    wrong = problems(declared(), pinned)
    print("\n".join(wrong) or f"requirements.lock: {len(pinned)} pins, every requirement is pinned and met")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
