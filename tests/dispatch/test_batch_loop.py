"""Ops that do not batch by themselves are looped over the batch."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph import Apply, Op
from pytensor.tensor.blockwise import Blockwise

from pytensor_onnx import onnx_funcify
from tests.conftest import compare_onnx_and_py, op_types


class Scaled(Op):
    """Rows of a matrix times a vector, and the sum of the vector; for single matrices only."""

    __props__ = ()
    gufunc_signature = "(m,n),(n)->(m,n),()"

    def make_node(self, x, v):
        x, v = pt.as_tensor(x), pt.as_tensor(v)
        return Apply(self, [x, v], [pt.dmatrix(), pt.dscalar()])

    def perform(self, node, inputs, outputs):
        x, v = inputs
        assert x.ndim == 2
        outputs[0][0] = x * v
        outputs[1][0] = np.asarray(v.sum())


@onnx_funcify.register(Scaled)
def lower_scaled(op, node, onnx, x, v):
    return [onnx.Mul(x, v), onnx.ReduceSum(v, keepdims=0)]


@pytest.mark.parametrize(
    ("x_batch", "v_batch"), [((3,), (3,)), ((2, 3), (3,)), ((3,), ()), ((2, 1), (1, 4))]
)
def test_batches_broadcast(x_batch, v_batch):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(*x_batch, 2, 5)), rng.normal(size=(*v_batch, 5))
    x = pt.tensor("x", dtype="float64", shape=[1 if n == 1 else None for n in a.shape])
    v = pt.tensor("v", dtype="float64", shape=[1 if n == 1 else None for n in b.shape])
    compare_onnx_and_py([x, v], Blockwise(Scaled())(x, v), [a, b])


def test_operand_without_batch_is_not_copied_for_it():
    x, v = pt.tensor3("x"), pt.vector("v")
    program = compare_onnx_and_py(
        [x, v], Blockwise(Scaled())(x, v), [np.ones((3, 2, 4)), np.arange(4.0)]
    )
    assert op_types(program).count("Loop") == 1
    assert op_types(program).count("Expand") <= 1
