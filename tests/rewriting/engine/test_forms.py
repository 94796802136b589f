"""Common expressions have the form that an expert would have written."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor import blas
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx import ONNXLinker
from pytensor_onnx.running.linker import ONNX
from tests.conftest import compare_onnx_and_py, op_types

X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]])


def test_mean_divides_by_a_number():
    x = pt.matrix("x")
    program = compare_onnx_and_py([x], x.mean(axis=1), [X])
    assert sorted(op_types(program)) == ["Cast", "Div", "ReduceSum", "Shape", "Squeeze"]


def test_layer_norm_adds_no_axes():
    x = pt.matrix("x")
    mean = x.mean(-1, keepdims=True)
    variance = pt.sqr(x - mean).mean(-1, keepdims=True)
    program = compare_onnx_and_py([x], (x - mean) / pt.sqrt(variance + 1e-5), [X])
    assert "Unsqueeze" not in op_types(program)
    assert op_types(program).count("Shape") == 1


def test_cross_entropy_checks_no_size_that_its_inputs_share():
    x, y = pt.matrix("x"), pt.lvector("y")
    p = pt.sigmoid(x[:, 0])
    loss = -(y * pt.log(p) + (1 - y) * pt.log(1 - p)).mean()
    program = compare_onnx_and_py([x, y], loss, [X, np.array([0, 1])])
    assert "If" not in op_types(program)
    with pytest.raises(ValueError, match=r"'x_dim0'|'y_dim0'"):
        program(X, np.array([1]))
    in_mode = pytensor.function([x, y], loss, mode="ONNX")
    with pytest.raises(ValueError, match="is 2 in x and 1 in y"):
        in_mode(X, np.array([1]))


def test_sizes_of_other_values_are_still_checked():
    x, y, i = pt.matrix("x"), pt.lvector("y"), pt.lscalar("i")
    loss = (x[i:, 0] * y).mean()
    values = [np.ones((3, 1)), np.array([1, 2]), np.array(1)]
    program = compare_onnx_and_py([x, y, i], loss, values)
    with pytest.raises((AssertionError, ValueError), match=r"."):
        program(np.ones((3, 1)), np.array([1]), np.array(1))


def test_log_sum_exp_copies_nothing():
    x = pt.matrix("x")
    first, *others = ([np.ones(shape)] for shape in [(2, 3), (2, 0), (0, 2), (0, 0)])
    program = compare_onnx_and_py([x], pt.logsumexp(x, axis=1), first, also=others)
    assert "Concat" not in op_types(program)


def test_log_sum_exp_of_special_values():
    x = pt.matrix("x")
    first, *others = (
        [np.array([[value, 0.5], [value, value]])] for value in [-np.inf, np.inf, np.nan]
    )
    compare_onnx_and_py([x], pt.logsumexp(x, axis=1), first, also=others)


@pytest.mark.parametrize(
    ("expression", "operators"),
    [
        (lambda x: x**2, ["Mul"]),
        (lambda x: x**3, ["Mul", "Mul"]),
        (lambda x: x**0.5, ["Sqrt"]),
        (lambda x: x**-1.0, ["Reciprocal"]),
        (lambda x: x / 3.0, ["Mul"]),
        (lambda x: 2.0 * x * 3.0, ["Mul"]),
        (lambda x: pt.maximum(x, 0), ["Relu"]),
        (lambda x: pt.special.softmax(x, axis=-1), ["Softmax"]),
        (lambda x: pt.log1p(pt.exp(x)), ["Softplus_float64"]),
        (lambda x: (x @ x.T) @ x, ["Gemm", "MatMul"]),
        (lambda x: pt.exp(x).astype("float64").reshape(x.shape), ["Exp"]),
    ],
)
def test_number_of_operators(expression, operators):
    x = pt.matrix("x")
    program = compare_onnx_and_py([x], expression(x), [X])
    assert op_types(program) == operators


def heavy(x):
    """Return what other modes would compute in place, by BLAS or fused."""
    y = pt.exp(x) + 1
    y = pt.set_subtensor(y[0], 0.0)
    return pt.tanh(2 * (y @ x.T) + x.sum()) * pt.exp(x @ x.T)


def test_graphs_hold_no_inplace_no_blas_and_no_fused_operation():
    x = pt.matrix("x")
    modes = [ONNX, pytensor.compile.mode.Mode(ONNXLinker(), "fast_run")]
    for mode in modes:
        f = pytensor.function([x], heavy(x), mode=mode)
        for node in f.maker.fgraph.apply_nodes:
            op = node.op
            assert not op.destroy_map
            assert not isinstance(op, blas.Gemm | blas.Gemv | blas.Dot22 | blas.Dot22Scalar)
            if isinstance(op, Elemwise):
                assert type(op.scalar_op).__name__ != "Composite"
        np.testing.assert_allclose(f(X), pytensor.function([x], heavy(x), mode="FAST_COMPILE")(X))


@pytest.mark.parametrize("inplace", [True, False])
def test_caller_keeps_the_arrays_it_gave(inplace):
    x = pt.matrix("x")
    given = pytensor.In(x, mutable=True) if inplace else x
    f = pytensor.function([given], pt.set_subtensor(x[0], 0.0), mode="ONNX")
    a = X.copy()
    f(a)
    np.testing.assert_array_equal(a, X)
