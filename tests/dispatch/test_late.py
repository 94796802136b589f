"""Modules of lowerings and definitions that are imported when a graph has one of their Ops."""

import subprocess
import sys

import pytest

from pytensor_onnx import onnx_funcify
from pytensor_onnx.dispatch.late import LATE, import_lowerings
from pytensor_onnx.functions.registry import DEFINITIONS, PACKAGES, import_definitions

OWN_LOWERINGS = """
import pytensor.tensor as pt
from pytensor_onnx import compile_onnx, define, onnx_funcify
from pytensor.tensor.linalg.products import Expm
from pytensor.tensor.sort import SortOp

before = onnx_funcify.dispatch(SortOp)

@onnx_funcify.register(SortOp)
def sort_halves(op, node, build, *inputs):
    return build.Div(before(op, node, build, *inputs), 2)

@define(Expm, "(m,m)->(m,m)")
def double(x):
    return 2 * x

x = pt.matrix("x")
results = [pt.argsort(x), pt.sort(x), pt.linalg.det(x), pt.linalg.expm(x)]
print([y.tolist() for y in compile_onnx([x], results, verify=False)([[3.0, 1.0], [2.0, 4.0]])])
"""


def run(code: str) -> str:
    """Run code in a new process, without any modules imported, and return the printed text."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_table_has_the_ops_of_each_module():
    import_lowerings(*LATE)
    registered = {
        op_type: lowering.__module__.rpartition(".")[2]
        for op_type, lowering in onnx_funcify.registry.items()
        if lowering.__module__.startswith("pytensor_onnx.dispatch.")
    }
    for module, op_types in LATE.items():
        assert {registered[op_type] for op_type in op_types} == {module}
    for op_type, module in registered.items():
        assert module not in LATE or issubclass(op_type, LATE[module]), op_type


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_defines_ops_of_its_modules_alone(package):
    import_definitions(package)
    name = f"pytensor_onnx.functions.{package}."
    own = {o for o, d in DEFINITIONS.items() if d.expression.__module__.startswith(name)}
    assert own
    assert all(op_type.__module__.startswith(PACKAGES[package]) for op_type in own)


def test_a_small_graph_imports_no_late_module():
    code = f"""
import sys, pytensor, pytensor.tensor as pt, pytensor_onnx
x = pt.vector("x")
pytensor.function([x], pt.exp(x[1:]).sum(), mode="ONNX")([1.0, 2.0])
late = {[f"dispatch.{module}" for module in LATE] + ["functions.linalg.svd"]}
print([module for module in late if f"pytensor_onnx.{{module}}" in sys.modules])
"""
    assert run(code) == "[]"


def test_lowerings_and_definitions_of_users_outlast_a_late_import():
    halves, doubled = [[0.5, 1.5], [1.0, 2.0]], [[6.0, 2.0], [4.0, 8.0]]
    assert run(OWN_LOWERINGS) == str([[[1, 0], [0, 1]], halves, 10.0, doubled])
