"""The table of defects: each record is shown by a test, and no property of a target is unread."""

import ast
import runpy
from collections import Counter
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from pytensor_onnx.passes.defects import DEFECTS, defects_by_operator
from pytensor_onnx.targets import Profile, get_profile
from tests.targets.test_optimizer import WRONG

ROOT = Path(__file__).parents[2]
SOURCES = tuple(
    path for path in ROOT.glob("src/**/*.py") if path.name not in {"profile.py", "profiles.py"}
)


@cache
def functions_and_texts(path: str) -> tuple[set[str], set[str]]:
    """Return the functions of a file and the texts in it, which parameters are named by."""
    nodes = list(ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))))
    texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return {n.name for n in nodes if isinstance(n, ast.FunctionDef)}, texts


@cache
def attributes_read(paths: tuple[Path, ...]) -> set[str]:
    """Return the names of the attributes that files read."""
    return {
        node.attr
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_each_defect_is_shown_by_tests(defect):
    assert defect.tests
    for test in defect.tests:
        path, _, name = test.partition("::")
        function, _, parameter = name.removesuffix("]").partition("[")
        functions, texts = functions_and_texts(path)
        assert function in functions
        assert not parameter or parameter in texts


def test_names_of_defects_are_unique():
    assert max(Counter(defect.name for defect in DEFECTS).values()) == 1


def test_defects_are_of_known_targets():
    for target in {target for defect in DEFECTS for target in defect.targets}:
        assert get_profile(*target.split(" ")).name == target
        assert defects_by_operator(target)


def test_each_wrong_rewrite_of_the_optimizer_belongs_to_a_defect():
    tests = {test for defect in DEFECTS for test in defect.tests}
    shown = "tests/targets/test_optimizer.py::test_rewrites_change_results"
    assert {f"{shown}[{name}]" for name in WRONG} <= tests


@pytest.mark.few(4)
@pytest.mark.parametrize("name", [field.name for field in fields(Profile)])
def test_each_property_of_a_target_is_read(name):
    # `supports` reads the kernel table; the other properties are read by passes and the exporter.
    profile = ROOT / "src/pytensor_onnx/targets/profiles.py"
    is_of_table = name in ("avoided", "kernels")
    assert name in attributes_read((profile,) if is_of_table else SOURCES)


def test_the_page_of_defects_is_made_of_the_table():
    made = runpy.run_path(str(ROOT / "scripts/make_defects.py"))["page"]()
    page = ROOT / "docs/reference/defects.md"
    assert page.read_text(encoding="utf-8") == made, "run scripts/make_defects.py"
