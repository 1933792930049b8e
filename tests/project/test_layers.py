"""Arrows point down only: reads every import of the product and fails on one that runs back.

A unit is what stands directly under `tracejit`: a module, or a package with all it holds. It may
import from lower layers and from its neighbours in the same layer, never from a higher one and
never in a circle.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.project import checkout

# Lowest first; every unit stands in exactly one layer.
LAYERS = (
    {"affine", "errors", "loading", "sources", "system", "tracebacks", "typing"},
    {"config", "element_types", "layouts"},
    {"shapes"},
    {"attributes", "graph"},
    {"tree_keys"},
    {"equality", "traversal", "tree"},
    {"tree_util"},
    {"native_calls", "ops"},
    {"builder", "hlo", "queues", "rules", "targets", "trace", "verifier"},
    {
        "callbacks",
        "cuda",
        "debug",
        "flatten_util",
        "lax",
        "nn",
        "numpy",
        "optim",
        "random",
        "scipy",
    },
    {"autodiff", "backends", "batching"},
    {"passes", "runtime"},
    {"transforms"},
    {"api"},
    {"background", "custom_ops", "display", "distributed", "ffi", "interop", "sharding"},
    {"commandline"},
    {"__init__"},
    {"__main__"},
)

# Neighbours that must not know each other at all.
STRANGERS = {
    frozenset({"autodiff", "backends"}),
    frozenset({"autodiff", "batching"}),
}

# The folders of the compiler, lowest first: what is on the right may import what is on the left.
COMPILER = "tracejit.backends.tvm"
STAGES = (
    "ir",
    "analysis",
    "program",
    "verification",
    "tune",
    "codegen",
    "fusion",
    "passes",
    "buffers",
    "target",
    "cpu",
    "cuda",
    "plain",
    "pipeline",
    "lower",
    "export",
)

# What the product may import from outside the standard library, and below which package only.
THIRD_PARTY = {
    "ml_dtypes": "tracejit",
    "mpi4py": "tracejit.runtime.devices.mpi",
    "numpy": "tracejit",
    "optree": "tracejit",
    "scipy": "tracejit",
    "tvm": "tracejit.backends.tvm",
    "tvm_ffi": "tracejit.backends.tvm",
    "typing_extensions": "tracejit",
}

# The only import inside a function: TVM is loaded when something is compiled.
LAZY = "tracejit.backends.tvm"

# The module that imports parts of the package when they are first used.
LOADER = "tracejit.loading"

# The module that carries out the import statements of the functions it traces.
USERS_IMPORTS = "tracejit.trace.recording"


@dataclass(frozen=True)
class Import:
    importer: str
    target: str
    inside_function: bool
    relative: bool
    line: int
    by_name: bool = False
    """Loaded when it is first used: `load("tracejit.api")`."""

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


def parse(module: str, path: Path, known: set[str]) -> Iterator[Import]:
    """The imports of one file; `from tracejit import shapes` is an import of `tracejit.shapes`."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    nested = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            named = [f"{base}.{alias.name}" for alias in node.names]
            targets = sorted({name if name in known else base for name in named})
        elif isinstance(node, ast.Call) and loaded(node) is not None:
            # What the loader is told by name is imported late, and no less.
            yield Import(module, str(loaded(node)), False, False, node.lineno, by_name=True)
            continue
        elif isinstance(node, ast.Call) and dynamic(node) and module not in (USERS_IMPORTS, LOADER):
            targets = [str(a.value) for a in node.args if isinstance(a, ast.Constant)] or ["?"]
        else:
            continue
        relative = isinstance(node, ast.ImportFrom) and node.level > 0
        for target in targets:
            yield Import(module, target, id(node) in nested, relative, node.lineno)


def loaded(call: ast.Call) -> str | None:
    """The module that `load("...")` names."""
    name = call.args[0] if call.args else None
    is_load = ast.unparse(call.func) in {"load", "load_if_any", "load_module"}
    if not is_load or not isinstance(name, ast.Constant):
        return None
    return str(name.value)


def dynamic(call: ast.Call) -> bool:
    """Whether this is `import_module(...)` or `__import__(...)`."""
    called = ast.unparse(call.func)
    return called in {
        "importlib.import_module",
        "import_module",
        "__import__",
        "builtins.__import__",
    }


def unit(module: str) -> str:
    """`tracejit.ops.layout` -> `ops`; the package's own `__init__` is `__init__`."""
    return module.split(".")[1] if "." in module else "__init__"


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    modules = checkout.modules()
    return [i for name, path in modules.items() for i in parse(name, path, set(modules))]


@pytest.fixture(scope="module")
def arrows(imports: list[Import]) -> list[Import]:
    """The imports from one unit of the product to another."""
    return [
        i
        for i in imports
        if i.target.split(".")[0] == "tracejit" and unit(i.importer) != unit(i.target)
    ]


def test_every_unit_stands_in_one_layer() -> None:
    placed = [name for layer in LAYERS for name in layer]
    assert len(placed) == len(set(placed))
    missing = {unit(name) for name in checkout.modules()} - set(placed)
    assert not missing, f"give these a place in LAYERS: {sorted(missing)}"


def test_no_arrow_runs_back(arrows: list[Import]) -> None:
    height = {name: index for index, layer in enumerate(LAYERS) for name in layer}
    assert [str(i) for i in arrows if height[unit(i.importer)] < height[unit(i.target)]] == []


def test_neighbours_do_not_run_in_circles(arrows: list[Import]) -> None:
    below: dict[str, set[str]] = {}
    for i in arrows:
        if i.by_name:
            continue
        below.setdefault(unit(i.importer), set()).add(unit(i.target))
    try:
        tuple(TopologicalSorter(below).static_order())
    except CycleError as error:
        pytest.fail(f"units import each other in a circle: {' -> '.join(error.args[1])}")


def stage(module: str) -> int:
    """The height of the compiler's folder that a module is in; of its front, above all."""
    name = module.removeprefix(COMPILER).lstrip(".").partition(".")[0]
    return STAGES.index(name) if name in STAGES else len(STAGES)


def test_no_arrow_runs_back_inside_the_compiler(imports: list[Import]) -> None:
    own = f"{COMPILER}."
    back = {
        (i.importer.removeprefix(own), i.target.removeprefix(own))
        for i in imports
        if i.importer.startswith(own)
        and i.target.startswith(own)
        and stage(i.importer) < stage(i.target)
    }
    assert back == set()


def test_every_folder_of_the_compiler_is_a_stage() -> None:
    folder = checkout.ROOT / "backends" / "tvm"
    assert {path.parent.name for path in folder.glob("*/__init__.py")} <= {*STAGES}


def test_autodiff_and_backends_are_strangers(arrows: list[Import]) -> None:
    assert [str(i) for i in arrows if {unit(i.importer), unit(i.target)} in STRANGERS] == []


def test_imports_are_absolute(imports: list[Import]) -> None:
    assert [str(i) for i in imports if i.relative] == []


def test_one_import_inside_a_function(imports: list[Import]) -> None:
    """Compilation is reached from one place; whatever else comes late, the loader imports."""
    late = [i for i in imports if i.inside_function]
    assert [str(i) for i in late if not i.target.startswith(LAZY)] == []
    imports = [i for i in imports if not i.by_name]
    to_tvm = [i for i in imports if i.target.startswith(LAZY) and not i.importer.startswith(LAZY)]
    assert all(i.inside_function for i in to_tvm), [str(i) for i in to_tvm]
    assert len({i.importer for i in to_tvm}) == 1, [str(i) for i in to_tvm]


def test_third_party_imports_are_dependencies(imports: list[Import]) -> None:
    allowed = {"tracejit": "tracejit", "__future__": "tracejit", **THIRD_PARTY}
    foreign = [
        str(i)
        for i in imports
        if (top := i.target.split(".")[0]) not in sys.stdlib_module_names
        and not f"{i.importer}.".startswith(f"{allowed.get(top, '?')}.")
    ]
    assert foreign == []


def test_a_planted_arrow_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(
        "from tracejit import api, other\n"
        "from .shapes import Shape\n"
        "def late():\n"
        "    import tracejit.backends.tvm.cpu.objects.build\n"
        "    import_module('tvm')\n"
        "    load('tracejit.api').compile\n"
    )
    found = parse("tracejit.ops.planted", path, {"tracejit", "tracejit.api"})
    assert [(i.target, i.inside_function, i.relative) for i in found] == [
        ("tracejit", False, False),
        ("tracejit.api", False, False),
        ("shapes", False, True),
        ("tracejit.backends.tvm.cpu.objects.build", True, False),
        ("tvm", True, False),
        ("tracejit.api", False, False),
    ]


# What only `tracejit.system` may say: files and functions that some systems have and others do not.
OF_SYSTEMS = re.compile(
    r"sys\.platform|/proc/|/dev/|/sys/|os\.fork|memfd|register_at_fork|getrlimit|sched_getaffinity"
    r"|\bgetuid|statvfs|import resource$|import fcntl"
)


def test_one_package_knows_the_operating_system() -> None:
    """Whatever assumes Linux, ELF or POSIX stands beside what replaces it elsewhere."""
    known = [
        f"{module}: {line.strip()}"
        for module, path in checkout.modules().items()
        if not module.startswith("tracejit.system")
        for line in path.read_text(encoding="utf-8").splitlines()
        if OF_SYSTEMS.search(line)
    ]
    assert known == []


def test_each_folder_of_the_compiler_says_when_it_runs() -> None:
    files = [*(checkout.ROOT / "backends" / "tvm").rglob("__init__.py")]
    docstrings = {file: ast.get_docstring(ast.parse(file.read_text())) or "" for file in files}
    assert len(files) > 30
    assert not [file for file, text in docstrings.items() if "\nWhen: " not in text]
