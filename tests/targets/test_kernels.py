"""Kernel tables hold measurements, and can be measured again."""

import os
import subprocess
import sys
from pathlib import Path

import onnx_ir as ir
import onnxruntime
import pytest

from pytensor_onnx.targets import get_profile
from pytensor_onnx.targets.kernels import load_kernels

ROOT = Path(__file__).parents[2]
PROBE = ROOT / "scripts" / "probe_kernels.py"
TABLES = ROOT / "src" / "pytensor_onnx" / "targets"
NODE_MODULES = os.environ.get("ONNXRUNTIME_WEB_NODE_MODULES")

FLOAT = ir.DataType.FLOAT
FLOAT16 = ir.DataType.FLOAT16
DOUBLE = ir.DataType.DOUBLE
BOOL = ir.DataType.BOOL
INT64 = ir.DataType.INT64
UINT32 = ir.DataType.UINT32

RUNTIME = get_profile("onnxruntime")
RECORDED = load_kernels("kernels_onnxruntime.json").version


def probe(path: Path, *arguments: str) -> bytes:
    command = [sys.executable, str(PROBE), "--output", str(path), *arguments]
    subprocess.run(command, check=True)
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(
    onnxruntime.__version__ != RECORDED,
    reason=f"the table is of onnxruntime {RECORDED}, not {onnxruntime.__version__}",
)
def test_probing_again_reproduces_the_table(tmp_path):
    assert probe(tmp_path / "table.json") == (TABLES / "kernels_onnxruntime.json").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not NODE_MODULES, reason="ONNXRUNTIME_WEB_NODE_MODULES names no directory")
def test_probing_the_web_runtime_again_reproduces_its_table(tmp_path):
    table = probe(tmp_path / "table.json", "--web", str(NODE_MODULES))
    assert table == (TABLES / "kernels_web.json").read_bytes()


@pytest.mark.parametrize(
    ("op_type", "dtype", "opset", "runs"),
    [
        ("Erf", FLOAT, 21, True),
        ("Erf", DOUBLE, 21, False),
        ("Where", BOOL, 21, False),
        ("ReduceMax", BOOL, 19, False),
        ("ReduceMax", BOOL, 20, True),
        ("CumProd", DOUBLE, 25, False),
        ("CumProd", DOUBLE, 26, True),
        ("Softplus", DOUBLE, 18, True),
        ("Softplus", DOUBLE, 19, False),
    ],
)
def test_support_depends_on_dtype_and_opset(op_type, dtype, opset, runs):
    assert RUNTIME.supports(op_type, dtype, opset) is runs


@pytest.mark.parametrize(
    ("op_type", "dtype", "attributes", "runs"),
    [
        ("Mod", DOUBLE, {"fmod": 1}, True),
        ("Mod", DOUBLE, {"fmod": 0}, False),
        ("Mod", DOUBLE, {}, False),
        ("Mod", INT64, None, True),
        ("ScatterND", BOOL, {}, True),
        ("ScatterND", BOOL, {"reduction": "max"}, False),
        ("ScatterND", BOOL, None, False),
        ("Gelu", DOUBLE, {"approximate": "tanh"}, True),
        ("Gelu", DOUBLE, {}, False),
        ("Add", DOUBLE, {}, True),
    ],
)
def test_attributes_choose_the_variant_and_without_them_all_count(op_type, dtype, attributes, runs):
    assert RUNTIME.supports(op_type, dtype, 21, attributes) is runs


def test_attributes_of_a_node_are_understood():
    x = ir.val("x", FLOAT16, [2])
    node = ir.node("ScatterND", [x, x, x], attributes={"reduction": "add"})
    assert not RUNTIME.supports(node.op_type, FLOAT16, 21, node.attributes)
    assert RUNTIME.supports(node.op_type, FLOAT16, 21, {})


def test_what_was_not_probed_counts_as_running():
    assert RUNTIME.supports("StringConcat", ir.DataType.STRING, 21)
    assert RUNTIME.supports("Where", ir.DataType.STRING, 21)
    assert RUNTIME.supports("Add", ir.DataType.BFLOAT16, 21)


@pytest.mark.parametrize("opset", [17, 27])
def test_an_opset_outside_the_table_is_refused(opset):
    with pytest.raises(ValueError, match=r"'web' knows opsets 18 to 26"):
        get_profile("web").supports("Add", FLOAT, opset)


def test_the_web_lacks_where_on_uint32():
    assert RUNTIME.supports("Where", UINT32, 21)
    assert not get_profile("web").supports("Where", UINT32, 21)


def test_the_standard_is_taken_at_its_word():
    standard = get_profile("standard")
    assert standard.supports("Erf", DOUBLE, 21)
    assert standard.supports("Where", BOOL, 13)
    assert not standard.supports("Erf", BOOL, 21)
    assert not standard.supports("BitCast", FLOAT, 21)


def test_the_runtime_is_not_imported_for_its_profile():
    code = (
        "import sys; from pytensor_onnx.targets import get_profile; import onnx_ir;"
        "get_profile('onnxruntime').supports('Erf', onnx_ir.DataType.FLOAT, 21);"
        "assert 'onnxruntime' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
