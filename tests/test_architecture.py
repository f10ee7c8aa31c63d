"""The layout of the project; every rule is first shown to fail on a small bad source."""

import ast
import json
import subprocess
import sys

import pytest

from tests.architecture import (
    HEAVY,
    LAYERS,
    LINE_LIMIT,
    ROOT,
    impurities,
    layer_of,
    machine_paths,
    module_name,
    project_files,
    quoted_exceptions,
    sources,
    stages_used,
    too_long,
    wrong_imports,
)

EVERY_SOURCE = [path for layer in sorted(LAYERS) for path in sources(layer)]
STAGES = [path for path in sources("stages") if path.name != "__init__.py"]
# Public: used by another package. What only other stages use is tested through them.
PUBLIC_STAGES = sorted(
    {path.stem for path in STAGES}
    & {
        name
        for layer in ("prme_ray", "actors")
        for path in sources(layer)
        for name in stages_used(path.read_text("utf-8"), module_name(path))
    }
)


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=[module_name(path) for path in paths])


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("prme_ray.model.nodes", "import stages.merge"),
        ("prme_ray.model.nodes", "from prme_ray import Memory"),
        ("prme_ray.model.nodes", "from .. import memory"),
        ("stages.merge", "from storage import log"),
        ("stages.merge", "def f():\n    import prme_ray.pipeline"),
        ("storage.log", "from stages.merge import merge"),
        ("actors.vector", "import prme_ray.pipeline"),
        ("prme_ray.memory", "from jobs import ingest"),
        ("jobs.ingest", "import storage.log"),
    ],
)
def test_the_import_rule_finds_a_wrong_direction(module, line):
    assert len(wrong_imports(line, module)) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("prme_ray.model.nodes", "from prme_ray.model.enums import code"),
        ("prme_ray.model.nodes", "from . import enums"),
        ("stages.merge", "from prme_ray import model"),
        ("stages.merge", "import numpy as np"),
        ("actors.vector", "from storage.catalog import Catalog"),
        ("prme_ray.memory", "from stages.merge import merge"),
        ("jobs.ingest", "from prme_ray import Memory"),
    ],
)
def test_the_import_rule_allows_the_right_directions(module, line):
    assert wrong_imports(line, module) == []


def test_a_relative_import_of_a_package_is_resolved():
    assert wrong_imports("from .enums import code", "prme_ray.model", is_package=True) == []
    assert len(wrong_imports("from ..memory import Memory", "prme_ray.model", is_package=True)) == 1
    (found,) = wrong_imports("from ...stages import merge", "prme_ray.model.settings", is_package=True)
    assert "stages.merge" in found


@named(EVERY_SOURCE)
def test_imports_go_down(path):
    assert wrong_imports(path.read_text("utf-8"), module_name(path), is_package=path.name == "__init__.py") == []


@pytest.mark.parametrize(
    "source",
    [
        "import ray",
        "from lancedb.table import Table",
        "def f():\n    import time",
        "from uuid import uuid4",
        "from datetime import datetime\nnow = datetime.now()",
        "import datetime\nday = datetime.date.today()",
        "import numpy as np\nx = np.random.rand()",
        "import uuid\nx = uuid.uuid4()",
        "x = open('f')",
        "print('x')",
        "def f():\n    global seen\n    seen = 1",
    ],
)
def test_the_purity_rule_finds_an_impure_stage(source):
    assert impurities(source, "stages.bad") != []


def test_the_purity_rule_allows_computing():
    source = "import json\nfrom uuid import uuid5\nimport numpy as np\nx = np.argsort([2, 1])\ny = uuid5"
    assert impurities(source, "stages.good") == []


@named(STAGES)
def test_stages_are_pure(path):
    assert impurities(path.read_text("utf-8"), module_name(path)) == []


def test_a_used_stage_is_found_by_import_and_by_name():
    source = "from stages import merge\nfrom stages.pack import pack\nflow = {'score': 'stages.score:score'}"
    assert stages_used(source, "prme_ray.pipeline") == {"merge", "pack", "score"}


def test_the_product_uses_stages():
    assert {"merge", "filter", "score", "pack"} <= set(PUBLIC_STAGES)


@pytest.mark.parametrize("name", PUBLIC_STAGES)
def test_every_public_stage_has_a_test_of_its_name(name):
    test = ROOT / "tests" / "stages" / f"test_{name}.py"
    assert test.exists(), f"stages/{name}.py is used outside stages: write {test.relative_to(ROOT)}"
    functions = [node for node in ast.walk(ast.parse(test.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)]
    assert any(function.name.startswith("test_") for function in functions)


def loaded_by(statement):
    """Return which heavy libraries a fresh interpreter has loaded after ``statement``."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted({set(HEAVY)!r} & set(sys.modules))))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_loading_rule_finds_a_heavy_library():
    assert loaded_by("import igraph") == ["igraph"]


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import prme_ray") == []


def test_importing_all_stages_loads_nothing_heavy():
    names = ["stages", *(module_name(path) for path in STAGES)]
    assert loaded_by("import " + ", ".join(names)) == []


def test_the_length_rule_finds_a_long_file():
    assert not too_long("x\n" * LINE_LIMIT)
    assert too_long("x\n" * (LINE_LIMIT + 1))


def test_no_source_or_test_is_too_long():
    files = [path for path in project_files() if path.suffix == ".py"]
    assert [str(path.relative_to(ROOT)) for path in files if too_long(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("folder", ["work", "root", "tmp", "home"])
def test_the_path_rule_finds_a_folder_of_a_machine(folder):
    assert machine_paths(f"first\nsee /{folder}/x for it") != []
    assert machine_paths(f"open('/{folder}/x')") != []


def test_the_path_rule_allows_addresses_and_relative_paths():
    assert machine_paths("https://example.org/home/page, ./tmp/x, out/work/x, ~/home/x") == []


def test_no_file_names_a_folder_of_a_machine():
    found = {}
    for path in project_files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue  # not a text file
        lines = machine_paths(text)
        if lines:
            found[str(path.relative_to(ROOT))] = lines
    assert found == {}


@pytest.mark.parametrize("call", ['log.exception("it failed")', 'log.error("it failed", exc_info=True)'])
def test_the_quoting_rule_finds_an_exception_in_a_log(call):
    assert len(quoted_exceptions(call)) == 1
    assert quoted_exceptions('log.error("it failed: %s", where(error)); future.exception()') == []


@named([path for path in EVERY_SOURCE if layer_of(module_name(path)) != "jobs"])
def test_no_log_prints_an_exception_as_it_is(path):
    assert quoted_exceptions(path.read_text("utf-8")) == []


def test_the_walk_sees_the_project_and_not_the_environment():
    names = {path.relative_to(ROOT).as_posix() for path in project_files()}
    assert {"Makefile", ".ci/run", "prme_ray/__init__.py", "tests/test_architecture.py"} <= names
    assert not any(".venv" in name or "egg-info" in name or "__pycache__" in name for name in names)


def test_every_layer_is_walked():
    assert {layer_of(module_name(path)) for path in EVERY_SOURCE} == LAYERS
