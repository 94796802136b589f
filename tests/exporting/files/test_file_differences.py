import json

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from click.testing import CliRunner

from pytensor_onnx import PyTensorONNXError, diff_onnx, export_onnx
from pytensor_onnx.cli.app import app

WEIGHT = np.arange(9.0).reshape(3, 3) / 9


def write(path, weight, name="x", function=pt.tanh, **options):
    x = pt.fmatrix(name)
    w = pytensor.shared(np.array(weight, "float32"), name="w")
    export_onnx([x], function(x @ w).copy("y"), path, verify=False, **options)
    return path


@pytest.fixture
def first(tmp_path):
    return write(tmp_path / "first.onnx", WEIGHT)


def test_a_file_equals_itself(first):
    assert not diff_onnx(first, first)
    assert diff_onnx(first, first).sample == "sampled inputs (x [3, 3])"


def test_other_weights_give_other_results(first, tmp_path):
    found = diff_onnx(first, write(tmp_path / "second.onnx", WEIGHT * [1, 1, 2]))
    assert found.weights == ("w: 3 of 9 values differ, by at most 0.889",)
    assert len(found.results) == 1
    assert found.results[0].startswith("y: largest difference")
    assert found.interface == found.operators == ()


def test_differences_within_rounding_are_none(first, tmp_path):
    found = diff_onnx(first, write(tmp_path / "second.onnx", WEIGHT * (1 + 1e-6)))
    assert found.weights
    assert found.results == ()


def test_operators_and_names_of_axes_are_compared(first, tmp_path):
    second = write(
        tmp_path / "second.onnx", WEIGHT, function=pt.exp, dynamic_axes={"x": {0: "row"}}
    )
    found = diff_onnx(first, second)
    assert found.operators == ("Tanh: 1 -> 0", "Exp: 0 -> 1")
    assert found.interface[0] == "input x: float32[x_dim0, 3] -> float32[row, 3]"
    assert found.sample


def test_other_inputs_are_not_run(first, tmp_path):
    found = diff_onnx(first, write(tmp_path / "second.onnx", np.ones((2, 3)), name="z"))
    assert found.sample == ""
    assert found.weights == ("w: float32[3, 3] -> float32[2, 3]",)
    assert "input z: none -> float32[z_dim0, 2]" in found.interface


def test_nan_equals_nan_in_weights(tmp_path):
    files = [write(tmp_path / f"{i}.onnx", [[np.nan, 1.0]]) for i in range(2)]
    assert not diff_onnx(*files)


def test_missing_weights_are_an_error(first, tmp_path):
    ir.save(ir.load(first), tmp_path / "b.onnx", external_data="b.data", size_threshold_bytes=0)
    assert not diff_onnx(first, tmp_path / "b.onnx")
    (tmp_path / "b.data").unlink()
    with pytest.raises(PyTensorONNXError, match="and there is no such file"):
        diff_onnx(first, tmp_path / "b.onnx")


def test_the_command_ends_with_1_where_files_differ(first, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(app, ["diff", *map(str, arguments)])

    equal = run(first, first)
    assert equal.exit_code == 0
    assert equal.output.splitlines()[:3] == [
        f"{k}: equal" for k in ("interface", "operators", "weights")
    ]
    second = write(tmp_path / "second.onnx", np.ones((2, 3)), name="z")
    result = run(first, second)
    assert result.exit_code == 1
    assert "  w: float32[3, 3] -> float32[2, 3]\n" in result.output
    assert result.output.endswith("results: not compared, as the inputs differ\n")
    found = json.loads(run(first, second, "--json").output)
    assert found["weights"] == ["w: float32[3, 3] -> float32[2, 3]"]
