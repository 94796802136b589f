import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types

VALUE = np.array([-9, -3, -0.5, -1e-3, -0.0, 0, 1e-3, 0.5, 2, 9, np.inf, -np.inf, np.nan])
X = pt.vector("x", dtype="float32")


def f32(number):
    return np.float32(number)


def gelu(x):
    return f32(0.5) * x * (f32(1) + pt.erf(x / f32(np.sqrt(2))))


def gelu_tanh(x, cube=lambda x: x**3):
    inner = f32(np.sqrt(2 / np.pi)) * (x + f32(0.044715) * cube(x))
    return f32(0.5) * x * (f32(1) + pt.tanh(inner))


CASES = {
    "maximum": (pt.maximum(X, 0), "Relu"),
    "zero where negative": (pt.switch(X < 0, f32(0), X), "Relu"),
    "zero where not positive": (pt.switch(X <= 0, f32(0), X), "Relu"),
    "x where positive": (pt.switch(X > 0, X, f32(0)), "ThresholdedRelu"),
    "leaky": (pt.switch(X > 0, X, f32(0.1) * X), "LeakyRelu"),
    "leaky, the other way": (pt.switch(X < 0, X * f32(0.1), X), "LeakyRelu"),
    "leaky, divided": (pt.switch(X < 0, X / f32(4), X), "LeakyRelu"),
}


def test_a_choice_by_sign_is_one_operator_with_the_same_nan():
    program = compare_onnx_and_py(
        [X], [graph for graph, _ in CASES.values()], [VALUE.astype("float32")]
    )
    assert set(op_types(program)) - {"Identity"} == {"Relu", "ThresholdedRelu", "LeakyRelu"}
    for name, (graph, operator) in CASES.items():
        assert op_types(export_onnx([X], graph, verify=False)) == [operator], name


@pytest.mark.parametrize(
    ("graph", "definition"),
    [
        (gelu(X), lambda x: x * special.ndtr(x)),
        (X * f32(0.5) * (f32(1) + pt.erf(X * f32(np.sqrt(0.5)))), lambda x: x * special.ndtr(x)),
        (
            gelu_tanh(X),
            lambda x: x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)),
        ),
        (
            gelu_tanh(X, lambda x: x * x * x),
            lambda x: x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)),
        ),
    ],
)
def test_gelu_is_one_operator_as_good_as_the_formula(graph, definition):
    program = export_onnx([X], graph, verify=False)
    assert op_types(program) == ["Gelu"]
    value = np.linspace(-20, 20, 401).astype("float32")
    with np.errstate(all="ignore"):
        expected = definition(value.astype("float64"))
        error = np.abs(program(value) - expected) / np.maximum(np.abs(value), 1e-30)
    assert np.max(error) < 2e-7
    np.testing.assert_array_equal(
        np.isnan(program(VALUE.astype("f"))), np.isnan(VALUE) | np.isneginf(VALUE)
    )


def written_out(graph):
    return not {"Gelu", "LeakyRelu", "ThresholdedRelu", "Relu"} & set(
        op_types(export_onnx([X], graph, verify=False))
    )


def test_other_functions_are_unchanged():
    assert written_out(f32(0.5) * X * (f32(1) + pt.erf(X / f32(1.4))))
    assert written_out(f32(0.6) * X * (f32(1) + pt.erf(X / f32(np.sqrt(2)))))
    assert written_out(gelu_tanh(X, lambda x: x**2))
    assert written_out(pt.switch(X > 1, X, f32(0)))
    assert written_out(pt.switch(X > 0, X, f32(-0.1) * X))
    assert written_out(pt.switch(X > 0, f32(0.1) * X, X))
    assert written_out((X + pt.abs(X)) / f32(2))


def test_a_choice_by_a_mask_is_left():
    mask = pt.vector("mask", dtype="int64")
    y = pt.switch(mask.astype("bool"), X * f32(2), f32(0))
    with pytensor.config.change_flags(on_opt_error="raise"):
        program = compare_onnx_and_py([X, mask], y, [VALUE.astype("float32"), np.int64(VALUE > 0)])
    assert "Where" in op_types(program)


def test_float64_keeps_its_accuracy():
    x = pt.vector("x")
    half = 0.5 * x * (1 + pt.erf(x / np.sqrt(2)))
    value = np.linspace(-20, 20, 101)
    program = compare_onnx_and_py([x], [pt.switch(x > 0, x, 0.1 * x)], [value])
    assert "LeakyRelu" not in op_types(program)
    found = pytensor.function([x], half, mode="ONNX")(value)
    np.testing.assert_allclose(found, value * special.ndtr(value), rtol=1e-12)


def test_a_gradient_shares_what_its_function_computes():
    graph = gelu_tanh(X)
    gradient = pytensor.grad(graph.sum(), X)
    names = op_types(export_onnx([X], [graph, gradient], verify=False))
    assert names.count("Tanh") == 1
    assert "Gelu" not in names


@pytest.mark.slow
def test_activations_of_pytensor_ml_are_operators():
    ml = pytest.importorskip("pytensor_ml.activations")
    operators = {
        ml.ReLU(): ["Relu"],
        ml.LeakyReLU(0.2): ["LeakyRelu"],
        ml.GELU(): ["Gelu"],
        ml.GELU(approximate=False): ["Gelu"],
        ml.Softmax(): ["Softmax"],
        ml.SoftPlus(): ["Softplus"],
        ml.Tanh(): ["Tanh"],
    }
    x = pt.matrix("x", dtype="float32")
    value = np.random.default_rng(0).normal(0, 2, (3, 4)).astype("float32")
    graphs = [layer(x) for layer in [*operators, ml.Sigmoid(), ml.Swish(), ml.QuickGELU()]]
    gradients = [pytensor.grad((y**2).sum(), x) for y in graphs]
    compare_onnx_and_py([x], [*graphs, *gradients], [value], rtol=1e-4, atol=1e-6)
    for graph, names in zip(graphs, operators.values(), strict=False):
        assert op_types(export_onnx([x], graph, verify=False)) == names
