"""Ten small portable files in the runtimes of the dependency group `runtimes`."""

from importlib.util import find_spec

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import UnsupportedOpError, export_onnx
from tests.conftest import op_types
from tests.runtimes.__main__ import TARGET, page
from tests.runtimes.portable_models import MODELS, numbers, symbol
from tests.runtimes.results import NAMES, Results, run_all
from tests.runtimes.runtime_calls import RUNTIMES, difference

TEN = (
    *("dense network", "transformer", "training step", "lstm", "masks", "sorting"),
    *("recurrence", "cholesky", "sparse product", "complex numbers"),
)
LOOPS = {"openvino": "Loop", "tract": "Scan"}


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniform draws", "normal draws"])
def test_draws_need_no_integers_of_64_bits(name):
    program, default = (MODELS[name]().export(target) for target in ("openvino", "onnxruntime"))
    np.testing.assert_array_equal(program(), default())


def test_loops_over_sequences_have_the_form_that_a_runtime_has_right():
    operators = [op_types(MODELS["recurrence"]().export(t)) for t in ("openvino", "tract")]
    assert [{"Loop", "Scan"} & set(found) for found in operators] == [
        {LOOPS["openvino"]},
        {LOOPS["tract"]},
    ]


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("runtime", ["openvino", "tract"])
def test_linear_recurrences_run_as_the_loop_that_a_runtime_has(runtime, is_constant, tmp_path):
    x, factors, y0 = symbol("x", None), symbol("factors", None), symbol("y0")
    sequences = [x] if is_constant else [x, factors]
    ys = pytensor.scan(
        lambda u, *rest: (0.5 if is_constant else rest[0]) * rest[-1] + u,
        sequences,
        [y0],
        return_updates=False,
    )
    path = tmp_path / "recurrence.onnx"
    program = export_onnx([*sequences, y0], ys, path, target=runtime)
    assert {"Loop", "Scan"} & set(op_types(program)) == {LOOPS[runtime]}
    if not find_spec(runtime):
        pytest.skip(f"{NAMES[runtime]} is in the dependency group 'runtimes'")
    feed = {"x": numbers(6), "factors": numbers(6) * 2, "y0": np.array(0.5, "float32")}
    feed = {v.name: feed[v.name] for v in program.inputs}
    [result] = RUNTIMES[runtime](str(path), feed, ["output_0"])
    np.testing.assert_allclose(result, program(*feed.values()), rtol=1e-6)


@pytest.mark.parametrize("name", ["loop until a condition", "svd"])
def test_loops_without_a_sequence_are_refused_for_tract(name):
    with pytest.raises(UnsupportedOpError, match="Loop"):
        MODELS[name]().export("tract")


def test_draws_are_refused_for_tract_with_a_way_out():
    with pytest.raises(UnsupportedOpError, match='rng="inputs"'):
        MODELS["uniform draws"]().export("tract")


def test_tract_refuses_products_of_two_vectors(tmp_path):
    tract = pytest.importorskip("tract", reason="tract is in the dependency group 'runtimes'")
    x, y = symbol("x", 3), symbol("y", 3)
    path = tmp_path / "product.onnx"
    export_onnx([x, y], x @ y, path, target="portable")
    with pytest.raises(Exception, match="rank"):
        tract.onnx().load(path).into_model()
    program = export_onnx([x, y], x @ y, path, target="tract")
    assert "MatMul" not in op_types(program)
    result = tract.onnx().load(path).into_model().into_runnable().run([numbers(3), numbers(3)])
    np.testing.assert_allclose(result[0].to_numpy(), numbers(3) @ numbers(3), rtol=1e-5)
