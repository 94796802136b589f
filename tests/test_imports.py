"""The rooms of the package, and which of them know which; the files of the native library."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from scripts.make_design import PAGE, page
from tests.rooms import ANYWHERE, FAMILIES, GROUPS, LAYERS, ROOMS

ROOT = Path(__file__).parents[1] / "src" / "pytensor_onnx"
TESTS = Path(__file__).parent
NATIVE = TESTS.parent / "native"


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


@pytest.mark.few(30)
@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_that_it_may_know(room):
    known = ROOMS[room].knows | ANYWHERE | {room}
    wrong = [
        f"{module} imports {imported}"
        for module, path in modules().items()
        if room_of(module) == room
        for imported in imports(path)
        if imported.split(".")[0] == "pytensor_onnx" and imported_room(imported) not in known
    ]
    assert not wrong


def imported_room(name: str) -> str:
    room = room_of(name)
    is_module = (ROOT / room).is_dir() or (ROOT / f"{room}.py").is_file()
    return room if is_module else ""


def test_every_room_is_known():
    rooms = {room_of(module) for module in modules()} - ANYWHERE
    assert rooms == set(ROOMS)


@pytest.mark.parametrize("layer", LAYERS)
def test_the_children_of_a_layer_are_families(layer):
    children = {p.stem for p in (ROOT / layer).iterdir() if not p.stem.startswith("__")}
    assert children <= FAMILIES.keys() | {*LAYERS[layer]}


@pytest.mark.parametrize("layer", LAYERS)
def test_the_tests_of_a_layer_are_in_the_folders_of_its_families(layer):
    found = {p.stem.removeprefix("test_") for p in (TESTS / layer).glob("*") if is_test(p)}
    assert found <= FAMILIES.keys() | {*LAYERS[layer]}


def is_test(path: Path) -> bool:
    return path.name.startswith("test_") or any(path.glob("**/test_*.py"))


def test_names_of_modules_are_unique():
    """Names of families, and of modules that are called as their folder, may occur again."""
    parts = [module.split(".") for module in modules() if "." in module]
    shared = FAMILIES.keys() | {name for names in LAYERS.values() for name in names}
    names = [path[-1] for path in parts if path[-1] not in shared and path[-1] != path[-2]]
    assert not [name for name, count in Counter(names).items() if count > 1]


def test_the_page_of_the_design_shows_the_rooms():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m scripts.make_design"


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
    assert not in_circles(needed)


def test_no_folders_of_a_room_import_each_other():
    needed: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, path in modules().items():
        folder = tuple(module.split(".")[1:3])
        others = {tuple(name.split(".")[1:3]) for name in map(module_of, imports(path)) if name}
        if len(folder) == 2:
            of_room = {other for other in others if other[0] == folder[0] and len(other) == 2}
            needed.setdefault(folder, set()).update(of_room - {folder})
    assert not in_circles(needed)


def in_circles(needed: dict[Any, set[Any]]) -> dict[Any, set[Any]]:
    """Return the parts that need each other, with those that need them."""
    # Parts that need nothing are removed until none is left, or those in circles.
    left = dict(needed)
    while free := [part for part, others in left.items() if not others & left.keys()]:
        for part in free:
            del left[part]
    return left


def test_no_files_of_c_need_each_other():
    assert not in_circles(files_of_c(NATIVE))


def test_a_call_back_makes_a_circle_of_files_of_c(tmp_path):
    texts = {
        "plan.h": "typedef struct Plan Plan;\nvoid plan_all(Plan *plan);\nint count;\n",
        "plan.c": '#include "kernel.h"\nvoid plan_all(Plan *plan) {\n  run_kernel(plan);\n}\n',
        "kernel.h": '#include "plan.h"\n/* plan_all */\nvoid run_kernel(Plan *plan);\n',
        "kernel.c": '#include "kernel.h"\nvoid run_kernel(Plan *plan) {\n}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert not in_circles(files_of_c(tmp_path))
    calls = texts["kernel.c"].replace("{\n}", "{\n  plan_all(plan);\n}")
    (tmp_path / "kernel.c").write_text(calls, encoding="utf-8")
    assert in_circles(files_of_c(tmp_path)).keys() == {"plan.c", "kernel.c"}


PROTOTYPE = re.compile(
    r"^(?!static|typedef|#)\w[\w *]*?\b(\w+)\([^;{}]*\);|^(?:extern|Planner) ([^;]*);", re.M
)
DEFINITION = re.compile(
    r"^(?!static|typedef|extern|#)\w[^\n;={}()]*?\b(\w+)"
    r"(?:\([^;{}]*\) \{|(?:\[\w*\])? = [{\d])",
    re.M,
)
BODY = re.compile(r"\) (\{[^\n]*\}$|\{\n.*?^\})", re.M | re.S)


def files_of_c(folder: Path) -> dict[str, set[str]]:
    """Return for each file those that it includes, and those whose functions and tables it uses.

    It uses a name that a header declares which it includes, and that another file defines.
    """
    texts = {
        path.name: re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
        for path in sorted(folder.iterdir())
        if path.suffix in (".c", ".h", ".inc")
    }
    included = {file: {*re.findall(r'#include "([^"]+)"', text)} for file, text in texts.items()}
    declared = {
        file: {*re.findall(r"\w+", " ".join(map(" ".join, PROTOTYPE.findall(text))))}
        for file, text in texts.items()
    }
    home = {
        name: file
        for file, text in texts.items()
        if file.endswith(".c")
        for name in DEFINITION.findall(text)
    }

    def visible(file: str) -> set[str]:
        return declared[file].union(*map(visible, included[file]))

    def used(file: str) -> set[str]:
        text = texts[file]
        code = " ".join(BODY.findall(text)) if file.endswith(".h") else text
        return {home[name] for name in visible(file) & {*re.findall(r"\w+", code)} & home.keys()}

    return {file: (used(file) | included[file]) - {file} for file in texts}


def module_of(name: str) -> str:
    """Return the module of the package that a name is one of, or is in."""
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name if name.startswith("pytensor_onnx.") else ""


def test_rooms_know_no_runtime_before_they_run():
    """Conversion needs no ONNX Runtime: `running`, `native` and modules built on them import it."""
    importers = {
        room_of(module)
        for module, path in modules().items()
        if any(name.split(".")[0] == "onnxruntime" for name in imports(path))
    }
    assert importers <= {"running", "exporting", "cli", "targets", "native", "catalogue"}


def test_only_rooms_of_distributions_import_pymc():
    importers = {
        room_of(module)
        for module, path in modules().items()
        if any(name.split(".")[0] == "pymc" for name in imports(path))
    }
    assert importers == {"pymc", "catalogue"}


def test_the_import_of_the_package_loads_nothing_that_only_some_graphs_need():
    packages = {"onnx", "onnx_ir", "onnxruntime", "pytensor_ml", "pymc", "sympy", "scipy.optimize"}
    of_pytensor = {"pytensor.sparse", "pytensor.typed_list", "pytensor.xtensor"}
    own = {
        *("cli", "dispatch", "encodings", "exporting", "graph", "nn"),
        *("functions", "importing", "kernels", "ml", "ops", "passes", "pymc", "rewriting"),
        *("running", "rules", "web"),
    }
    late = packages | of_pytensor | {f"pytensor_onnx.{name}" for name in own}
    code = f"import sys, pytensor_onnx; print(*{late} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


PUBLIC = {
    name
    for module in ("pytensor_onnx", "pytensor_onnx.nn", "pytensor_onnx.pymc", "pytensor_onnx.ml")
    for name in import_module(module).__all__
}


@pytest.mark.parametrize("room", ROOMS)
def test_functions_take_at_most_seven_parameters(room):
    """Public functions may have more options; an operator or a command fixes its parameters."""
    wrong = [
        f"{module}.{function.name}"
        for module, path in modules().items()
        if room_of(module) == room
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef) and not function.decorator_list
        if function.name not in PUBLIC and len(parameters(function)) > 7
    ]
    assert not wrong


def parameters(function: ast.FunctionDef) -> list[str]:
    given = function.args
    names = [x.arg for x in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def test_an_export_follows_a_function_in_mode_onnx():
    code = """
import pytensor, pytensor.tensor as pt, pytensor_onnx
x = pt.vector("x")
print(pytensor.function([x], x + 1, mode="ONNX")([1.0]))
print(pytensor_onnx.compile_onnx([x], x + 1)([1.0]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("[2.]\n[2.]\n", 0), run.stderr
