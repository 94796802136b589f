"""Gates of recurrent cells are computed in few operations, with the same values."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops import scan
from tests.rewriting.loops.test_products import operators_in_loop

N_UNITS = 3
LENGTHS = [0, 6]


def lstm(dtype, n_batch_axes=0):
    """Return the inputs, states and gradients of a cell whose bias is added last."""
    x = pt.tensor("x", dtype=dtype, shape=(None,) * (2 + n_batch_axes))
    h, c = (pt.tensor(name, dtype=dtype, shape=(None,) * (1 + n_batch_axes)) for name in "hc")
    w, u, b = pt.matrix("w", dtype=dtype), pt.matrix("u", dtype=dtype), pt.vector("b", dtype=dtype)

    def step(e, h, c, w, u, b):
        i, f, g, o = pt.split(e @ w + h @ u + b, [N_UNITS] * 4, n_splits=4, axis=-1)
        c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
        return pt.sigmoid(o) * pt.tanh(c), c

    states = scan(step, sequences=[x], outputs_info=[h, c], non_sequences=[w, u, b])
    return [x, h, c, w, u, b], states


def values(dtype, length, *batch):
    rng = np.random.default_rng(length)
    sizes = [(2, 4 * N_UNITS), (N_UNITS, 4 * N_UNITS), (4 * N_UNITS,)]
    shapes = [(length, *batch, 2), (*batch, N_UNITS), (*batch, N_UNITS), *sizes]
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_lstm_in_double_precision(batch, length):
    inputs, states = lstm("float64", len(batch))
    arrays = values("float64", length, *batch)
    program = compare_onnx_and_py(inputs, states, arrays, rtol=1e-11)
    operators = operators_in_loop(program)
    assert operators.count("Sigmoid_float64") == 0
    # Three by gates, and two of tanh.
    assert operators.count("Div") == 5


def test_a_step_in_single_precision_has_few_nodes():
    inputs, states = lstm("float32")
    program = compare_onnx_and_py(inputs, states, values("float32", 6), rtol=1e-5)
    gates = ["Gemm", "Exp", "Add", "Split"]
    memory = ["Gemm", "Tanh", "Div", "Div", "Add"]
    # The first loop serves long sequences only, and has the gates of all steps before it.
    assert operators_in_loop(program) == ["Mul", "Add", *gates, *memory, "Tanh", "Div"]


def test_weights_that_are_constant_are_parted_at_export():
    inputs, (h, _) = lstm("float32", 1)
    arrays = values("float32", 6, 2)
    weights = dict(zip(inputs[3:], map(pt.constant, arrays[3:]), strict=True))
    program = compare_onnx_and_py(
        inputs[:3], clone_replace(h, weights), arrays[:3], rtol=1e-5, atol=1e-6
    )
    operators = [node.op_type for node in program.model.graph]
    assert {"Split", "Neg", "Transpose"}.isdisjoint(operators)
    assert operators_in_loop(program).count("Gemm") == 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gates_that_are_zero_or_one_and_states_that_are_not_finite(dtype):
    """A sigmoid is zero where its divisor overflows, at -89 and -710."""
    inputs, states = lstm(dtype)
    arrays = values(dtype, 5)
    arrays[0][1:] *= np.array([[50], [300], [2000], [1e30]], dtype)
    arrays[2][:] = [np.inf, -0.0, 1e30]
    compare_onnx_and_py(inputs, states, arrays, rtol=1e-4 if dtype == "float32" else 1e-11)


def test_gates_with_other_uses():
    """A gate is a reciprocal where other operations than products use it."""
    x, w, h = pt.matrix("x"), pt.matrix("w"), pt.vector("h")

    def step(e, h, w):
        z, r = pt.split(e + h @ w, [2, 2], n_splits=2)
        z, r = pt.sigmoid(z), pt.sigmoid(r)
        return (1 - z) * h + z * pt.tanh(r * r * h) + r

    arrays = [np.linspace(-3, 3, 12).reshape(3, 4), np.full((2, 4), 0.5), np.array([1.0, -2.0])]
    program = compare_onnx_and_py([x, w, h], scan(step, [x], [h], [w]), arrays, rtol=1e-11)
    assert operators_in_loop(program).count("Sigmoid_float64") == 0


def test_gates_of_a_vector_that_is_no_product_have_one_sigmoid():
    x, h = pt.matrix("x"), pt.vector("h")

    def step(e, h):
        keep, add, new = pt.split(e * h.sum(), [2, 2, 2], n_splits=3)
        return pt.sigmoid(keep) * h + pt.sigmoid(add) * new

    arrays = [np.linspace(-3, 3, 18).reshape(3, 6), np.array([1.0, -2.0])]
    program = compare_onnx_and_py([x, h], scan(step, [x], [h]), arrays, rtol=1e-11)
    assert operators_in_loop(program).count("Sigmoid_float64") == 1


def test_sequences_and_weights_that_are_used_elsewhere_are_parted_too():
    inputs, (h, _) = lstm("float32")
    x, _, _, w, u, _ = inputs
    arrays = values("float32", 4)
    outputs = [h, x @ w, u.sum(), pt.tanh(x @ w)[0]]
    compare_onnx_and_py(inputs, outputs, arrays, rtol=1e-5)


def test_gradients():
    inputs, (h, _) = lstm("float64")
    gradients = pt.grad((h[-1] ** 2).sum(), [inputs[0], *inputs[3:]])
    compare_onnx_and_py(inputs, gradients, values("float64", 5), rtol=1e-9)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(number):
    inputs, states = lstm("float64")
    arrays = values("float64", 4)
    arrays[0][2, 0] = number
    compare_onnx_and_py(inputs, states, arrays, rtol=1e-11)


def test_sums_keep_their_dtype_and_shape():
    x, h, b = pt.vector("x"), pt.matrix("h"), pt.lscalar("b")
    wide = scan(lambda e, h, b: b + (h.sum() + e) * 0 + (h + b) + e, [x], [h], [b])
    whole = scan(lambda e, n: n + b + e, [pt.cast(x, "int64")], [b])
    until = scan(lambda e, h, b: h.exp() + e + b, [x], [pt.constant(0.5, dtype="float64")], [b])
    arrays = [np.array([1.5, -2.0]), np.ones((2, 3)), np.array(3)]
    compare_onnx_and_py([x, h, b], [wide, whole, until], arrays)


def test_operands_that_a_state_changes_stay_in_the_loop():
    x, h, b = pt.matrix("x"), pt.vector("h"), pt.vector("b")
    both = scan(lambda e, h, b: (pt.tanh(h + e + b), (h + b + e) * (h + b)), [x], [h, None], [b])
    arrays = [np.ones((3, 2)), np.array([0.5, -0.5]), np.array([0.0, 2.0])]
    compare_onnx_and_py([x, h, b], both, arrays)


def test_large_matrices_of_doubles_are_not_copied_in_each_step():
    """ONNX Runtime copies a matrix that a vector of float64 on its left is multiplied by."""
    for n_units, is_row in ((8, True), (256, False)):
        x, u = pt.matrix("x", shape=(None, n_units)), pt.matrix("u", shape=(n_units, n_units))
        h = scan(lambda e, h, u: pt.exp(e - h @ u), [x], [pt.zeros(n_units)], [u])
        arrays = [np.ones((2, n_units)), np.full((n_units, n_units), 0.1)]
        program = compare_onnx_and_py([x, u], h, arrays)
        assert ("Unsqueeze" not in operators_in_loop(program)) == is_row
