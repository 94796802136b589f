import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special

from pytensor_onnx import export_onnx
from pytensor_onnx.nn import activations as act
from tests.conftest import compare_onnx_and_py, evaluate_reference, op_types

RNG = np.random.default_rng(0)
SLOPES = np.array([0.25, 1.5, -0.5])
SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-30, -1e-30, 88.0, -88.0, 700.0, -700.0]
ROOT = np.sqrt(2 / np.pi)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def gelu_tanh(x):
    return x * special.expit(2 * ROOT * (x + 0.044715 * x**3))


# The function, its definition in NumPy and SciPy, and the operators in float32.
CASES = {
    "relu": (act.relu, lambda x: np.maximum(x, 0), ["Relu"]),
    "leaky_relu": (
        lambda x: act.leaky_relu(x, 0.1),
        lambda x: np.where(x < 0, 0.1 * x, x),
        ["LeakyRelu"],
    ),
    "prelu": (
        lambda x: act.prelu(x, SLOPES),
        lambda x: np.where(x < 0, SLOPES[:, None] * x, x),
        ["PRelu"],
    ),
    "elu": (lambda x: act.elu(x, 1.3), lambda x: elu(x, 1.3), ["Elu"]),
    "selu": (
        act.selu,
        lambda x: act.SELU_GAMMA * elu(x, act.SELU_ALPHA),
        ["Selu"],
    ),
    "celu": (
        lambda x: act.celu(x, 0.7),
        lambda x: np.where(x > 0, x, 0.7 * np.expm1(np.minimum(x, 0) / 0.7)),
        ["Celu"],
    ),
    "gelu": (act.gelu, lambda x: x * special.ndtr(x), ["Gelu"]),
    "gelu, tanh": (lambda x: act.gelu(x, "tanh"), gelu_tanh, ["Gelu"]),
    "sigmoid": (act.sigmoid, special.expit, ["Sigmoid"]),
    "silu": (act.silu, lambda x: x * special.expit(x), ["Mul", "Sigmoid"]),
    "swish": (
        lambda x: act.swish(x, 1.702),
        lambda x: x * special.expit(1.702 * x),
        ["Mul", "Mul", "Sigmoid"],
    ),
    "mish": (act.mish, lambda x: x * np.tanh(np.logaddexp(0, x)), ["Mish"]),
    "hard_sigmoid": (
        lambda x: act.hard_sigmoid(x, 0.3, 0.4),
        lambda x: np.clip(0.3 * x + 0.4, 0, 1),
        ["HardSigmoid"],
    ),
    "hard_swish": (act.hard_swish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), ["HardSwish"]),
    "hard_tanh": (lambda x: act.hard_tanh(x, -2, 3), lambda x: np.clip(x, -2, 3), ["Clip"]),
    "softplus": (act.softplus, lambda x: np.logaddexp(0, x), ["Softplus"]),
    "softsign": (act.softsign, lambda x: x / (1 + np.abs(x)), ["Softsign"]),
    "thresholded_relu": (
        lambda x: act.thresholded_relu(x, 0.3),
        lambda x: np.where(x > 0.3, x, 0),
        ["ThresholdedRelu"],
    ),
    "prelu, one slope": (
        lambda x: act.prelu(x, 0.2),
        lambda x: np.where(x < 0, 0.2 * x, x),
        ["PRelu"],
    ),
    "softmax, first axis": (
        lambda x: act.softmax(x, 0),
        lambda x: special.softmax(x, axis=0),
        ["Softmax"],
    ),
    "softmax": (act.softmax, lambda x: special.softmax(x, axis=-1), ["Softmax"]),
    "log_softmax": (
        lambda x: act.log_softmax(x, 1),
        lambda x: special.log_softmax(x, axis=1),
        ["LogSoftmax"],
    ),
}


def symbol(dtype):
    return pt.tensor("x", shape=(None, 3, None), dtype=dtype)


def assert_close(found, expected, x):
    """Compare; in float32 by the largest of 1, the argument and the result."""
    assert found.dtype == x.dtype
    if x.dtype == np.float64:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
        return
    scale = np.maximum(np.abs(x), np.maximum(np.abs(expected), 1))
    scale = np.where(np.isfinite(scale), scale, 1)
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=4e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations_are_as_defined(dtype):
    value = np.concatenate([RNG.normal(0, 1, 90), RNG.normal(0, 20, 90)]).astype(dtype)
    value = value.reshape(4, 3, 15)
    x = symbol(dtype)
    graphs = [function(x) for function, _, _ in CASES.values()]
    found = pytensor.function([x], graphs, mode="ONNX")(value)
    for y, (_, definition, _) in zip(found, CASES.values(), strict=True):
        assert_close(y, definition(value.astype("float64")), value)


@pytest.mark.few(1)
@pytest.mark.each_value
@pytest.mark.parametrize("target", ["onnxruntime", "web", "standard"])
@pytest.mark.parametrize("opset", [18, 19, 20, 26])
def test_attributes_and_bodies_of_operators_do_not_round_float64(opset, target):
    value = np.array([-30, -2, -1e-3, -1e-9, 0, 1e-9, 0.7, 1, 4, 20, 40, 1e3])
    value = value.reshape(2, 3, 2)
    x = symbol("float64")
    # ONNX Runtime lacks kernels in float64; the evaluator takes the logarithm of a softmax.
    standard = target == "standard"
    cases = [case for name, case in CASES.items() if not (standard and name == "log_softmax")]
    graphs = [function(x) for function, _, _ in cases]
    options = {"opset_version": opset, "target": target, "precision": "float64"}
    program = export_onnx([x], graphs, verify=False, **options)
    found = evaluate_reference(program, value) if standard else program(value)
    for y, (_, definition, _) in zip(found, cases, strict=True):
        assert_close(y, definition(value), value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations_of_nan_infinities_and_zeros_are_as_defined(dtype):
    value = np.tile(np.array(SPECIAL, dtype)[:, None, None], (1, 3, 1))
    x = symbol(dtype)
    graphs = [function(x) for function, _, _ in CASES.values()]
    found = pytensor.function([x], graphs, mode="ONNX")(value)
    with np.errstate(all="ignore"):
        for y, (_, definition, _) in zip(found, CASES.values(), strict=True):
            assert_close(y, definition(value.astype("float64")), value)


@pytest.mark.slow
def test_definitions_agree_with_the_exported_operators():
    value = np.array([*SPECIAL, *RNG.normal(0, 5, 13)]).reshape(4, 3, 2)
    x = symbol("float64")
    graphs = [function(x) for function, _, _ in CASES.values()]
    compare_onnx_and_py([x], graphs, [value], atol=1e-300)


def test_an_activation_is_one_operator_in_float32():
    x = symbol("float32")
    for name, (function, _, operators) in CASES.items():
        program = export_onnx([x], function(x), verify=False)
        assert sorted(op_types(program)) == operators, name


def test_activations_of_an_empty_batch_and_of_float16():
    x = symbol("float16")
    graphs = [function(x) for function, _, _ in CASES.values()]
    function = pytensor.function([x], graphs, mode="ONNX")
    assert {y.shape for y in function(np.ones((0, 3, 2), "float16"))} == {(0, 3, 2)}
    value = RNG.normal(0, 2, (4, 3, 2)).astype("float16")
    for y, (_, definition, _) in zip(function(value), CASES.values(), strict=True):
        assert y.dtype == np.float16
        np.testing.assert_allclose(y, definition(value.astype("float64")), rtol=4e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_are_those_of_finite_differences(dtype):
    value = np.array([-8, -2.8, -1.1, -0.4, 0.1, 0.5, 1.2, 2.9, 8]).reshape(3, 3, 1)
    x = symbol(dtype)
    weight = RNG.normal(size=(3, 3, 1))
    graphs = [
        pytensor.grad((function(x) * weight.astype(dtype)).sum(), x)
        for function, _, _ in CASES.values()
    ]
    found = pytensor.function([x], graphs, mode="ONNX")(value.astype(dtype))
    for gradient, (name, (_, definition, _)) in zip(found, CASES.items(), strict=True):
        expected = np.empty_like(value)
        for index in np.ndindex(*value.shape):
            step = np.zeros_like(value)
            step[index] = 1e-5
            rise = (definition(value + step) - definition(value - step)) * weight
            expected[index] = rise.sum() / 2e-5
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_gradients_far_from_zero_are_finite():
    x = symbol("float32")
    value = np.array([-1e4, -200, 200, 1e4], "float32").reshape(4, 1, 1).repeat(3, axis=1)
    graphs = [pytensor.grad(function(x).sum(), x) for function, _, _ in CASES.values()]
    for gradient in pytensor.function([x], graphs, mode="ONNX")(value):
        assert np.all(np.isfinite(gradient))


def test_gradient_of_relu_at_zero_is_zero():
    x = pt.vector("x")
    gradient = pytensor.grad(act.relu(x).sum(), x)
    program = compare_onnx_and_py([x], gradient, [np.array([-1.0, -0.0, 0.0, 1.0])])
    np.testing.assert_array_equal(program([-1.0, 0.0, 2.0])[0], [0, 0, 1])


@pytest.mark.compiled
def test_activations_run_in_numba():
    x = symbol("float64")
    value = RNG.normal(size=(2, 3, 4))
    graphs = [function(x) for function, _, _ in CASES.values()]
    found = pytensor.function([x], graphs, mode="NUMBA")(value)
    for y, (_, definition, _) in zip(found, CASES.values(), strict=True):
        assert_close(y, definition(value), value)


def test_arguments_that_do_not_fit_are_named():
    with pytest.raises(TypeError, match="relu takes an array of floats; got one of int64"):
        act.relu(pt.lvector("x"))
    with pytest.raises(ValueError, match="approximate='erf' must be"):
        act.gelu(pt.vector("x"), "erf")
    with pytest.raises(ValueError, match="prelu takes one slope, or a vector"):
        act.prelu(pt.vector("x"), [1.0, 2.0])


def test_an_operand_may_be_computed_from_another():
    x = pt.matrix("x")
    value = RNG.normal(size=(3, 4))
    slope = pt.sqr(x).sum(axis=0)
    gradient = pytensor.grad(act.prelu(x, slope).sum(), x)
    written_out = pytensor.grad(pt.switch(x < 0, slope * x, x).sum(), x)
    program = compare_onnx_and_py([x], [gradient, written_out], [value])
    np.testing.assert_allclose(*program(value), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_silu_has_four_operators_and_is_right_for_large_numbers(dtype):
    x, g = pt.vector("x", dtype=dtype), pt.vector("g", dtype=dtype)
    y = act.silu(x)
    gradient = pt.grad(None, x, known_grads={y: g})
    large = [1e30, -1e30, 300, -300, 88, -88, 20, -20]
    value = np.array([*large, *np.linspace(-6, 6, 25), 0.0, -0.0, np.nan], dtype)
    cotangent = np.linspace(-2, 2, value.size).astype(dtype)
    program = export_onnx([x, g], [y, gradient], verify=False)
    assert len(program.model.graph) == 6 or dtype == "float64"
    wide = value.astype("float64")
    with np.errstate(invalid="ignore"):
        s = special.expit(wide)
        expected = s + wide * s * special.expit(-wide)
    result = program(value, cotangent)[1]
    tolerance = 3e-7 if dtype == "float32" else 1e-15
    np.testing.assert_allclose(
        result, cotangent * expected, rtol=0, atol=20 * tolerance, equal_nan=True
    )
    np.testing.assert_array_equal(result[:2], [cotangent[0], 0])
    infinite = np.array([np.inf, -np.inf], dtype)
    compare_onnx_and_py([x, g], gradient, [infinite, np.ones(2, dtype)])
    compare_onnx_and_py([x, g], gradient, [infinite[:0], infinite[:0]])


def test_second_derivatives_and_batches_of_silu_are_those_of_the_formula():
    x = pt.matrix("x")
    second = [pt.grad(pt.grad((y**2).sum(), x).sum(), x) for y in (act.silu(x), x * act.sigmoid(x))]
    value = np.random.default_rng(0).normal(size=(3, 4))
    first, other = (graph.eval({x: value}, mode="ONNX") for graph in second)
    np.testing.assert_allclose(first, other, rtol=1e-12)
    looped = pytensor.map(act.silu, [x], return_updates=False)
    compare_onnx_and_py([x], looped, [value])
