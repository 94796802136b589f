"""The rooms of the package, and which of them know which."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "pytensor_onnx"
ANYWHERE = {"changes", "compat", "errors", "_version", "late_names", "user_code", "rules"}
ARROWS = {
    "graph": {"large_constants"},
    "targets": {"graph"},
    "encodings": {"named_dims", "random", "large_constants"},
    "ops": {"graph", "encodings"},
    "functions": {"ops"},
    "named_dims": set(),
    "random": {"bit_generators"},
    "bit_generators": set(),
    "large_constants": set(),
    "rewriting": {"functions", "ops", "encodings", "named_dims"},
    "passes": {"graph", "targets", "large_constants"},
    "dispatch": {"graph", "ops", "functions", "encodings", "rewriting", "named_dims"},
    "dynamic_axes": {"graph"},
    "conversion": {"graph", "dispatch", "dynamic_axes", "named_dims", "large_constants"},
    "pipeline": {"conversion", "dispatch", "graph", "passes", "targets"},
    "running": {
        *("graph", "dispatch", "rewriting", "conversion", "pipeline", "passes"),
        *("targets", "named_dims", "encodings", "kernels", "native"),
    },
    "native": set(),
    "kernels": {"graph", "passes", "native"},
    "nn": {"ops"},
    "ml": {"ops", "nn", "dynamic_axes", "rewriting"},
    "exporting": {
        *("graph", "rewriting", "conversion", "pipeline", "targets", "running", "ml"),
        *("dynamic_axes", "named_dims", "encodings", "ops", "large_constants", "passes"),
    },
    "pymc": {"exporting", "functions", "graph", "ops", "rewriting", "named_dims"},
    "web": {"graph"},
    "cli": {"dispatch", "exporting", "functions", "graph", "web", ""},
    "__main__": {"cli"},
    "": {"dispatch", "exporting", "functions", "ml", "pymc", "rewriting", "running"},
}
"""For each room the rooms that its modules may import; the empty name is the package itself."""

GROUPS = {
    "exporting": ("requests", "verification", "program", "files"),
}
"""For some rooms their folders; a folder's modules import those of folders before it only."""


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Return the modules of the package that a module imports, at any depth of its code."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = str(node.module)
            is_package = (ROOT.parent / module.replace(".", "/")).is_dir()
            yield from (f"{module}.{alias.name}" if is_package else module for alias in node.names)


@cache
def modules() -> dict[str, Path]:
    paths = sorted(ROOT.rglob("*.py"))
    return {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in paths
    }


@pytest.mark.parametrize("room", ARROWS)
def test_a_room_imports_only_rooms_that_it_may_know(room):
    known = ARROWS[room] | ANYWHERE | {room}
    wrong = [
        f"{module} imports {imported}"
        for module, path in modules().items()
        if room_of(module) == room
        for imported in imports(path)
        if imported.startswith("pytensor_onnx") and imported_room(imported) not in known
    ]
    assert not wrong


def imported_room(name: str) -> str:
    room = room_of(name)
    is_module = (ROOT / room).is_dir() or (ROOT / f"{room}.py").is_file()
    return room if is_module else ""


def test_every_room_has_arrows():
    rooms = {room_of(module) for module in modules()} - ANYWHERE
    assert rooms == set(ARROWS)


@pytest.mark.parametrize("room", GROUPS)
def test_a_folder_of_a_room_imports_only_folders_before_it(room):
    order = GROUPS[room]
    folders = {name: name.split(".")[2] for name in modules() if name.count(".") >= 2}
    own = {name: group for name, group in folders.items() if room_of(name) == room}
    assert set(own.values()) == set(order)
    wrong = [
        f"{module} imports {imported}"
        for module, group in own.items()
        for imported in imports(modules()[module])
        if imported in own and order.index(own[imported]) > order.index(group)
    ]
    assert not wrong


def test_no_modules_import_each_other():
    known = modules()
    needed = {
        module: {name for name in map(module_of, imports(path)) if name not in ("", module)}
        for module, path in known.items()
    }
    # Modules that need nothing are removed until none is left, or those in circles.
    while free := [module for module, names in needed.items() if not names & needed.keys()]:
        for module in free:
            del needed[module]
    assert not needed


def module_of(name: str) -> str:
    """Return the module of the package that a name is one of, or is in."""
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name if name.startswith("pytensor_onnx.") else ""


def test_rooms_know_no_runtime_before_they_run():
    """Conversion needs no ONNX Runtime: only `running` and modules built on it import it."""
    importers = {
        room_of(module)
        for module, path in modules().items()
        if any(name.split(".")[0] == "onnxruntime" for name in imports(path))
    }
    assert importers <= {"running", "exporting", "cli", "targets"}


def test_only_the_room_of_pymc_imports_it():
    importers = {
        room_of(module)
        for module, path in modules().items()
        if any(name.split(".")[0] == "pymc" for name in imports(path))
    }
    assert importers == {"pymc"}


def test_the_import_of_the_package_loads_nothing_that_only_some_graphs_need():
    packages = {"onnx", "onnx_ir", "onnxruntime", "pytensor_ml", "pymc", "sympy", "scipy.optimize"}
    of_pytensor = {"pytensor.sparse", "pytensor.typed_list", "pytensor.xtensor"}
    own = {
        *("cli", "dispatch", "exporting", "functions.linalg", "functions.random", "graph", "nn"),
        *("functions.signal", "functions.special", "passes", "pymc.model", "web"),
        *("rewriting.complex_numbers.structure", "rewriting.sparse_matrices.structure"),
    }
    late = packages | of_pytensor | {f"pytensor_onnx.{name}" for name in own}
    code = f"import sys, pytensor_onnx; print(*{late} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
