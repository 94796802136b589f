"""Ops made by their definitions."""

import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scalar.basic import sign

from pytensor_onnx import operation
from pytensor_onnx.functions.linalg.bidiagonal import bidiagonal_vectors
from pytensor_onnx.functions.operation import Operation
from tests.conftest import compare_onnx_and_py


@operation("(m,n),(n)->(m)", reference=lambda a, x, shift: a @ x + shift)
def shifted_product(a, x, *, shift=0.0):
    return (a * x[..., None, :]).sum(axis=-1) + shift


@operation("(n)->(n),()")
def centred(x):
    mean = x.mean(axis=-1)
    return [x - mean[..., None], mean]


@operation(
    reference=lambda x, y: x / (1 + abs(y)),
    pullback=lambda op, inputs, outputs, gradients: [
        gradients[0] / (1 + abs(inputs[1])),
        -gradients[0] * outputs[0] * sign(inputs[1]) / (1 + abs(inputs[1])),
    ],
)
def damped(x, y):
    return x / (1 + abs(y))


def test_the_op_is_computed_by_the_reference_and_in_onnx_by_the_definition():
    a, x = pt.matrix("a"), pt.vector("x")
    values = [np.arange(6.0).reshape(2, 3), np.arange(3.0)]
    program = compare_onnx_and_py([a, x], shifted_product(a, x, shift=2.0), values)
    assert [node.op_type for node in program.model.graph] == ["ShiftedProduct_shift_2.0_float64"]


def test_operands_with_more_axes_are_a_batch():
    a, x = pt.tensor3("a"), pt.vector("x")
    values = [np.arange(12.0).reshape(2, 2, 3), np.arange(3.0)]
    compare_onnx_and_py([a, x], shifted_product(a, x), values)


def test_without_a_reference_pytensor_evaluates_the_definition():
    x = pt.vector("x")
    compare_onnx_and_py([x], centred(x), [np.array([1.0, 2.0, 6.0])])
    rest, mean = centred(x)
    found = pytensor.function([x], [rest, mean], mode="FAST_COMPILE")([1.0, 2.0, 6.0])
    np.testing.assert_array_equal(found[0], [-2.0, -1.0, 3.0])
    assert found[1] == 3.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_have_the_dtype_and_the_sizes_of_the_operands(dtype):
    a, x = pt.tensor("a", dtype=dtype, shape=(5, None)), pt.tensor("x", dtype=dtype, shape=(3,))
    result = shifted_product(a, x)
    assert (result.type.dtype, result.type.shape) == (dtype, (5,))
    rows = pt.tensor("rows", dtype=dtype, shape=(None, None))
    size = pytensor.function([rows, x], shifted_product(rows, x).shape[0], mode="FAST_RUN")
    assert size(np.ones((4, 3), dtype), np.ones(3, dtype)) == 4
    assert not any(node.op == shifted_product.op() for node in size.maker.fgraph.toposort())


def test_the_gradient_is_the_pullback():
    x, y = pt.vectors("xy")
    gradients = pytensor.grad(damped(x, y).sum(), [x, y])
    values = [np.array([1.0, -2.0]), np.array([0.5, -3.0])]
    compare_onnx_and_py([x, y], [damped(x, y), *gradients], values)
    found = pytensor.function([x, y], gradients, mode="FAST_COMPILE")(*values)
    np.testing.assert_allclose(found[1], [-1 / 1.5**2, -2 / 16])


def test_attributes_without_a_default_are_required_and_others_refused():
    with pytest.raises(TypeError, match="attributes"):
        bidiagonal_vectors.op()
    with pytest.raises(TypeError, match="attributes"):
        shifted_product.op(scale=2.0)
    assert shifted_product.op() == shifted_product.op(shift=0.0) != shifted_product.op(shift=1.0)


def test_an_elementwise_operation_needs_a_reference():
    with pytest.raises(ValueError, match="no reference"):
        operation()(lambda x: x)


@pytest.mark.parametrize("made", [shifted_product, damped, bidiagonal_vectors])
def test_operations_and_ops_are_pickled_by_name(made: Operation):
    assert pickle.loads(pickle.dumps(made)) is made
    op = made.op(with_left=True) if made is bidiagonal_vectors else made.op()
    assert pickle.loads(pickle.dumps(op)) == op
