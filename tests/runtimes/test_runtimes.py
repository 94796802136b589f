"""Ten small portable files in the runtimes of the dependency group `runtimes`."""

from importlib.util import find_spec

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import UnsupportedOpError, export_onnx
from tests.runtimes.__main__ import TARGET, page
from tests.runtimes.portable_models import MODELS, numbers, symbol
from tests.runtimes.results import NAMES, Results, run_all
from tests.runtimes.runtime_calls import difference

TEN = (
    *("dense network", "transformer", "training step", "lstm", "masks", "sorting"),
    *("recurrence", "cholesky", "sparse product", "complex numbers"),
)


@pytest.mark.parametrize("runtime", ["openvino", "tract", "cv2"])
def test_ten_models_are_right(runtime, tmp_path):
    if not find_spec(runtime):
        pytest.skip(f"{NAMES[runtime]} is in the dependency group 'runtimes'")
    [answers] = run_all(TEN, [runtime], tmp_path).answers.values()
    known = _failures(runtime)
    assert {name for name, answer in answers.items() if answer} <= known


def _failures(runtime: str) -> set[str]:
    """Return the models that the page does not show as right."""
    rows = [line.split(" | ") for line in TARGET.read_text(encoding="utf-8").splitlines()]
    rows = [[cell.strip("| ") for cell in row] for row in rows if len(row) > 2]
    (column,) = (i for i, cell in enumerate(rows[0]) if cell.startswith(NAMES[runtime]))
    return {row[0] for row in rows[2:] if row[0] in MODELS and row[column] != "right"}


def test_the_page_shows_all_models_and_no_wrong_file_in_onnxruntime():
    text = TARGET.read_text(encoding="utf-8")
    assert all(f"| {name} | right |" in text for name in MODELS)


def test_a_page_tells_right_refused_and_wrong():
    answers = {"tract": {"a": "", "b": "refused: no <Loop>", "c": "wrong: y0 differs"}}
    lines = page(Results({"tract": "1.0"}, answers)).splitlines()
    assert "| a | right |" in lines
    assert "| b | refused |" in lines
    assert "| c | wrong |" in lines
    assert "| **right** | 1 of 3 |" in lines
    assert "- tract, b: refused: no ‹Loop›" in lines


def test_results_of_other_sizes_and_values_are_wrong():
    y = {"y": np.ones(2, "float32")}
    assert difference({"y": np.ones((1, 2))}, y) == ""
    assert difference({"y": np.ones(3)}, y) == "wrong: y has the shape [3], not [2]"
    assert difference({"y": np.zeros(2)}, y) == "wrong: y differs"


def test_a_target_in_float32_takes_float32():
    x = symbol("x", None)
    program = export_onnx([x], pt.exp(x).max(), target="openvino")
    np.testing.assert_allclose(program(numbers(3)), np.exp(numbers(3)).max(), rtol=1e-6)


def test_float64_that_a_runtime_rounds_is_refused_with_the_reason():
    x = pt.dvector("x")
    message = "Exp of float64, for which the runtime returns other numbers"
    with pytest.raises(UnsupportedOpError, match=message):
        export_onnx([x], pt.exp(x), target="openvino", precision="float64")
    assert export_onnx([x], pt.exp(x), target="openvino").inputs[0].dtype.numpy() == np.float32


def test_draws_in_64_bits_are_refused_where_a_runtime_has_32():
    draws = MODELS["uniform draws"]()
    with pytest.raises(UnsupportedOpError, match="uint"):
        draws.export("openvino")
