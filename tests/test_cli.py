import re
import subprocess
import sys

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from typer.testing import CliRunner

from pytensor_onnx import VerificationError, export_onnx
from pytensor_onnx.cli import app, main


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "120"})


@pytest.fixture(scope="module")
def special(tmp_path_factory):
    """A file with a model-local function, a batch dimension and a state."""
    path = tmp_path_factory.mktemp("models") / "special.onnx"
    x, total = (
        pt.matrix("x", shape=(None, 3)),
        pytensor.shared(np.zeros(3), name="total", shape=(3,)),
    )
    y = pt.tan(x)
    y.name = "y"
    export_onnx([x], y, path, updates={total: total + y.sum(axis=0)}, dynamic_axes={"x": {0: "n"}})
    return path


def test_demo_digits_writes_a_file_and_prints_a_table(tmp_path):
    pytest.importorskip("pytensor_ml")
    path = tmp_path / "small.onnx"
    result = run("demo", "digits", "--output", path, "--epochs", 1)
    assert result.exit_code == 0, result.output
    assert "450 of 450" in result.output
    assert "Gemm, Relu, Gemm, Softmax" in result.output
    assert f"{path.stat().st_size:,} bytes" in result.output


def test_inspect_shows_what_the_file_holds(special):
    result = run("inspect", special)
    assert result.exit_code == 0, result.output
    for text in ("x: float64[n, 3]", "y: float64[n, 3]", "total: float64[3], with a default"):
        assert text in result.output
    assert re.search(r"pytensor::Tan_float64 +│ +1 ", result.output)
    assert "onnx 21, pytensor 1; IR version 10" in result.output
    assert f"{special.stat().st_size:,} bytes" in result.output


def test_verify_says_what_holds(special):
    result = run("verify", special)
    assert result.exit_code == 0, result.output
    assert "the ONNX checker accepts it" in result.output
    assert "ONNX Runtime loads it" in result.output
    assert "runs on sampled inputs (x [3, 3])" in result.output
    assert "y: float64[3, 3]" in result.output


def test_verify_refuses_what_the_checker_refuses(tmp_path, special):
    model = ir.load(special)
    model.graph[0].op_type = "NoSuchOperator"
    model.graph[0].domain = ""
    ir.save(model, tmp_path / "bad.onnx")
    result = run("verify", tmp_path / "bad.onnx")
    assert isinstance(result.exception, VerificationError)
    assert "NoSuchOperator" in str(result.exception)


def test_verify_refuses_what_does_not_run(tmp_path):
    index = ir.val("index", dtype=ir.DataType.INT64, shape=())
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=(0,))
    node = ir.node("Gather", [x, index])
    node.outputs[0].name, node.outputs[0].dtype = "y", ir.DataType.FLOAT
    node.outputs[0].shape = ir.Shape(())
    graph = ir.Graph([x, index], node.outputs, nodes=[node], opset_imports={"": 21}, name="g")
    ir.save(ir.Model(graph, ir_version=10), tmp_path / "bad.onnx")
    result = run("verify", tmp_path / "bad.onnx")
    assert isinstance(result.exception, VerificationError)
    assert "runs on no sampled inputs" in str(result.exception)


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_what_is_no_model_ends_in_one_line(tmp_path, capsys, command):
    file = tmp_path / "text.onnx"
    file.write_text("this is no model")
    with pytest.raises(SystemExit) as exit_:
        main([command, str(file)])
    assert exit_.value.code == 1
    error = capsys.readouterr().err
    assert "cannot be read as an ONNX model" in " ".join(error.split())
    assert "Traceback" not in error


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_missing_file_is_named(tmp_path, command):
    result = run(command, tmp_path / "none.onnx")
    assert result.exit_code == 2
    assert "none.onnx" in result.output.replace("\n", "").replace("│", "").replace(" ", "")


def test_help_is_shown_without_loading_a_runtime():
    code = (
        "import sys; from pytensor_onnx.cli import main\n"
        "try:\n    main(['--help'])\n"
        "finally:\n    assert not {'onnxruntime', 'pytensor_ml', 'sklearn'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "inspect" in done.stdout
