"""Rules of the layout (design.md, "Layout and directions") as functions from source text to violations."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE_LIMIT = 400

MAY_IMPORT: dict[str, frozenset[str]] = {
    "prme_ray.model": frozenset({"prme_ray.model"}),
    "stages": frozenset({"prme_ray.model", "stages"}),
    "storage": frozenset({"prme_ray.model", "storage"}),
    "actors": frozenset({"prme_ray.model", "stages", "storage", "actors"}),
    "prme_ray": frozenset({"prme_ray.model", "stages", "storage", "actors", "prme_ray"}),
    "jobs": frozenset({"prme_ray.model", "prme_ray", "jobs"}),
}
"""Layer by layer, what may be imported. Nothing imports ``jobs`` but ``jobs``."""

LAYERS = frozenset(MAY_IMPORT)

HEAVY = frozenset(
    {"ray", "lancedb", "lance", "tantivy", "igraph", "onnxruntime", "dateparser", "sqlalchemy", "tokenizers"}
    | {"torch", "transformers", "sentence_transformers"}
)
"""What neither ``import prme_ray`` nor importing a stage may load."""

# A stage computes from its arguments: no engine, no file, no clock, no chance, no other process.
# A logger and a lock are allowed: they change no answer.
IMPURE_MODULES = frozenset(
    {
        "ray",
        "lancedb",
        "lance",
        "tantivy",
        "igraph",
        "onnxruntime",
        "sqlalchemy",
        "sqlite3",
        "tiktoken",
        "tokenizers",
        "filelock",
        "psutil",
        "time",
        "random",
        "secrets",
        "os",
        "pathlib",
        "io",
        "shutil",
        "tempfile",
        "glob",
        "fileinput",
        "sys",
        "subprocess",
        "socket",
        "ssl",
        "urllib",
        "http",
        "requests",
        "multiprocessing",
        "asyncio",
        "concurrent",
        "queue",
        "importlib",
    }
)
# uuid5 and UUID compute from arguments; these ask the clock or chance, or start something.
IMPURE_NAMES = frozenset(
    {"uuid.uuid1", "uuid.uuid4", "uuid.getnode", "numpy.random", "threading.Thread", "threading.Timer"}
)
IMPURE_CALLS = frozenset({"open", "input", "print", "exec", "eval", "__import__", "breakpoint"})
IMPURE_METHODS = frozenset(
    {
        "now",
        "utcnow",
        "today",
        "Thread",
        "Timer",
        "uuid1",
        "uuid4",
        "default_rng",
        "read_text",
        "write_text",
        "read_bytes",
        "write_bytes",
    }
)

# Written apart so that this file passes its own check.
_MACHINE_PATH = re.compile(r"(?<![\w./~-])/(?:" + "|".join(["work", "root", "tmp", "home"]) + r")/[\w.]")
_SKIPPED = frozenset({"build", "dist", "out", "demo-store", "memory"})


def layer_of(module: str) -> str | None:
    """Return the layer a dotted name belongs to, or None for other libraries."""
    if module == "prme_ray.model" or module.startswith("prme_ray.model."):
        return "prme_ray.model"
    first = module.split(".", maxsplit=1)[0]
    return first if first in LAYERS else None


def module_name(path: Path, root: Path = ROOT) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything imported, wherever in the file; relative names resolved."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                own = module.split(".")
                own = own[: len(own) - node.level + (1 if is_package else 0)]
                base = ".".join([*own, base] if base else own)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def wrong_imports(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Return the imports of one file that go against the directions."""
    layer = layer_of(module)
    if layer is None:
        raise ValueError(f"{module} belongs to no layer")
    return [
        f"{module}:{line} imports {name}: {layer} may import {', '.join(sorted(MAY_IMPORT[layer]))}"
        for line, name in imports(source, module, is_package=is_package)
        if layer_of(name) not in {None, *MAY_IMPORT[layer]}
    ]


def impurities(source: str, module: str) -> list[str]:
    """Return what makes a stage depend on more than its arguments."""
    found = []
    for line, name in imports(source, module):
        if name.split(".")[0] in IMPURE_MODULES or name in IMPURE_NAMES:
            found.append(f"{module}:{line} imports {name}")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
                found.append(f"{module}:{node.lineno} calls {node.func.id}")
            if isinstance(node.func, ast.Attribute) and node.func.attr in IMPURE_METHODS:
                found.append(f"{module}:{node.lineno} calls .{node.func.attr}")
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in {"np.random", "numpy.random"}:
            found.append(f"{module}:{node.lineno} uses numpy.random")
        elif isinstance(node, ast.Global):
            found.append(f"{module}:{node.lineno} changes a module variable")
    return found


def machine_paths(text: str) -> list[str]:
    """Return the lines that name a folder of some machine."""
    return [
        f"line {number}: {line.strip()[:80]}"
        for number, line in enumerate(text.splitlines(), 1)
        if _MACHINE_PATH.search(line)
    ]


def quoted_exceptions(source: str) -> list[str]:
    """Return the log calls that print an exception as it is: what a database says may quote a memory."""
    return [
        f"line {node.lineno}: {ast.unparse(node)[:80]}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (
            any(keyword.arg == "exc_info" for keyword in node.keywords)
            or (node.func.attr == "exception" and bool(node.args))  # a future's own takes at most a time-out, by name
        )
    ]


def too_long(text: str) -> bool:
    """Return whether a file is over the limit of lines."""
    return len(text.splitlines()) > LINE_LIMIT


def project_files(root: Path = ROOT) -> list[Path]:
    """Return the project's own files: no environment, cache, build output or generated data."""
    found: list[Path] = []
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if (not name.startswith(".") or (here == root and name in {".ci", ".github"}))
            and name != "__pycache__"
            and not name.endswith(".egg-info")
            and not (here == root and name in _SKIPPED)
            and not (here / name / "pyvenv.cfg").exists()
        )
        found.extend(here / name for name in sorted(files) if name != ".git")
    return found


def sources(layer: str, root: Path = ROOT) -> list[Path]:
    """Return the Python files of one layer."""
    return [path for path in project_files(root) if path.suffix == ".py" and layer_of(module_name(path, root)) == layer]


_STAGE_NAME = re.compile(r"\bstages\.(\w+)")


def stages_used(source: str, module: str) -> set[str]:
    """Return the stages that a file outside ``stages`` uses, by import or by dotted name in a string."""
    names = [name for _, name in imports(source, module)]
    names += [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
    ]
    return {match.group(1) for name in names for match in _STAGE_NAME.finditer(name)}
