"""Ops that do not batch by themselves are looped over the batch."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.graph import Apply, Op
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.blockwise import Blockwise

from pytensor_onnx import compile_onnx, onnx_funcify
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.loops.loop_cases import scan


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
def lower_scaled(op, node, build, x, v):
    return [build.Mul(x, v), build.ReduceSum(v, keepdims=0)]


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


@pytest.mark.parametrize("shape", [(0, 2), (3, 0, 2), (0, 0)])
def test_empty_batches_keep_the_size_of_a_result(shape):
    x = pt.tensor("x", dtype="float64", shape=(None,) * len(shape))
    run = compile_onnx([x], pt.vectorize(pt.sort, "(n)->(n)")(x), verify=False)
    np.testing.assert_array_equal(run(np.zeros(shape)), np.zeros(shape))


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 3)])
def test_branch_for_each_element_of_a_batch(shape):
    def signed(row):
        return ifelse(row.sum() > 0, row, -row)

    x = pt.tensor("x", dtype="float64", shape=(None,) * len(shape))
    run = compile_onnx([x], pt.vectorize(signed, "(n)->(n)")(x), verify=False)
    values = np.array([[1.0, 1.0, -1.0], [-1.0, -2.0, 1.0]]).reshape(shape)
    positive = values.sum(axis=-1, keepdims=True) > 0
    np.testing.assert_array_equal(run(values), np.where(positive, values, -values))


@pytest.mark.each_value
@pytest.mark.parametrize("batch", [(3,), (2, 3), (1, 2, 2)])
@pytest.mark.parametrize(
    "function",
    [
        lambda row: scan(lambda e, y: e + 0.5 * y, sequences=[row], outputs_info=[pt.zeros(())]),
        lambda row: OpFromGraph([row], [pt.exp(row).sum() * row])(row),
        lambda row: pt.sort(row)[::-1],
    ],
    ids=["loop", "function", "sort"],
)
def test_graphs_within_graphs_in_batches(function, batch):
    row, x = pt.vector("row"), pt.tensor("x", dtype="float64", shape=(None,) * (len(batch) + 1))
    y = vectorize_graph(function(row), {row: x})
    values = np.random.default_rng(0).normal(size=(*batch, 4))
    for options in ({}, {"inline_functions": True}):
        compare_onnx_and_py([x], y, [values], **options)


@pytest.mark.parametrize(
    ("x_batch", "v_batch", "batch"),
    [((0, 1), (4,), (0, 4)), ((2, 0), (1, 1), (2, 0)), ((0,), (), (0,)), ((1, 0), (3, 1), (3, 0))],
)
def test_empty_batches_broadcast(x_batch, v_batch, batch):
    x = pt.tensor("x", dtype="float64", shape=[*(1 if n == 1 else None for n in x_batch), 2, 5])
    v = pt.tensor("v", dtype="float64", shape=[*(1 if n == 1 else None for n in v_batch), 5])
    run = compile_onnx([x, v], Blockwise(Scaled())(x, v), verify=False)
    product, total = run(np.ones((*x_batch, 2, 5)), np.ones((*v_batch, 5)))
    assert (product.shape, total.shape) == ((*batch, 2, 5), batch)
