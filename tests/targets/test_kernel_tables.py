"""Kernel tables hold measurements, and can be measured again."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import onnx_ir as ir
import onnxruntime
import pytest
from packaging.version import Version

from pytensor_onnx.targets import get_profile
from pytensor_onnx.targets.kernel_tables import load_kernels

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


def probe(path: Path, *arguments: str) -> bytes:
    command = [sys.executable, str(PROBE), "--output", str(path), *arguments]
    subprocess.run(command, check=True)
    return path.read_bytes()


@pytest.mark.slow
def test_the_installed_runtime_has_every_kernel_of_the_table(tmp_path):
    recorded = TABLES / "kernels_onnxruntime.json"
    probe(tmp_path / "table.json", "--join", str(recorded))
    joined = json.loads((tmp_path / "table.json").read_text())
    assert onnxruntime.__version__ in joined["versions"]
    assert joined["kernels"] == json.loads(recorded.read_text())["kernels"]


def test_the_table_holds_for_the_lowest_version_that_is_allowed():
    with (ROOT / "pyproject.toml").open("rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    (bound,) = (d.split(">=")[1] for d in dependencies if d.startswith("onnxruntime>="))
    lowest = load_kernels("kernels_onnxruntime.json").versions[0]
    assert Version(lowest) <= Version(bound)


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


def test_a_kernel_that_only_later_versions_have_does_not_count():
    assert not RUNTIME.supports("Where", UINT32, 21)


def test_a_portable_file_has_the_kernels_of_onnxruntime_but_for_avoided_operators():
    portable = get_profile("portable")
    assert get_profile("standard") is portable
    assert not portable.supports("Erf", DOUBLE, 21)
    assert RUNTIME.supports("Compress", FLOAT, 21)
    assert not portable.supports("Compress", FLOAT, 21)


@pytest.mark.slow
def test_the_runtime_is_not_imported_for_its_profile():
    code = (
        "import sys; from pytensor_onnx.targets import get_profile; import onnx_ir;"
        "get_profile('onnxruntime').supports('Erf', onnx_ir.DataType.FLOAT, 21);"
        "assert 'onnxruntime' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
