"""Transposes of symmetric matrices are dropped, and networks are not asked for symmetry."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.elemwise import DimShuffle

from pytensor_onnx import nn
from pytensor_onnx.running.linker import ONNX

CASES = {
    "gram matrix": lambda x, s: (x @ x.T).T,
    "function of a gram matrix": lambda x, s: pt.exp(2 * (x @ x.T)).T,
    "inverse of a gram matrix": lambda x, s: pt.linalg.inv(x @ x.T).T,
    "congruence": lambda x, s: (x @ assume(s, symmetric=True) @ x.T).T,
    "matrices of a batch": lambda x, s: (x @ x.T)[None].repeat(2, 0)[1:].mT,
    "reshaped": lambda x, s: pt.specify_shape((x @ x.T).reshape((3, 3)), (3, 3)).T,
    "declared": lambda x, s: assume(s, symmetric=True).T,
    "diagonal": lambda x, s: pt.diag(s[0]).T,
    "operand of a symmetric solve": lambda x, s: pt.linalg.solve(s, x, assume_a="sym").sum() * s.T,
}


def transposes(y, inputs):
    graph = FunctionGraph(inputs, [y], clone=False)
    ONNX.optimizer.rewrite(graph)
    return [
        node
        for node in graph.apply_nodes
        if isinstance(node.op, DimShuffle) and node.op.is_matrix_transpose
    ], graph


@pytest.mark.parametrize("name", CASES)
def test_as_many_transposes_are_dropped_as_by_pytensor(name):
    x, s = pt.matrix("x", shape=(3, 3)), pt.matrix("s", shape=(3, 3))
    y = CASES[name](x, s)
    ours, _ = transposes(y, [x, s])
    x, s = pt.matrix("x", shape=(3, 3)), pt.matrix("s", shape=(3, 3))
    f = pytensor.function([x, s], CASES[name](x, s), mode="NUMBA", on_unused_input="ignore")
    theirs = [
        node
        for node in f.maker.fgraph.apply_nodes
        if isinstance(node.op, DimShuffle) and node.op.is_matrix_transpose
    ]
    assert len(ours) <= len(theirs)


def test_gradients_of_networks_are_not_asked_for_symmetry():
    x = pt.matrix("x")
    weights = [pt.matrix(f"w{i}") for i in range(3)]
    h = x
    for w in weights:
        h = pt.tanh(h @ w)
    graph = FunctionGraph([x, *weights], pt.grad(h.sum(), weights), clone=False)
    ONNX.optimizer.rewrite(graph)
    assert not hasattr(graph, "assumption_feature")


@pytest.mark.parametrize(
    "result",
    [
        lambda x: nn.layer_norm(x, pt.ones(4), pt.zeros(4)),
        lambda x: pt.concatenate([x, pt.exp(x)])[1:],
        lambda x: pt.cumsum(x, axis=0).reshape((-1, 4)),
        lambda x: pt.sqr(x[0])[None] * x.sum(axis=1)[:, None],
    ],
)
def test_results_of_operations_without_a_rule_of_symmetry_are_not_asked_for_it(result):
    x = pt.matrix("x")
    graph = FunctionGraph([x], [result(x).T], clone=False)
    ONNX.optimizer.rewrite(graph)
    assert not hasattr(graph, "assumption_feature")


def test_a_matrix_that_is_not_symmetric_is_transposed():
    x = pt.matrix("x")
    f = pytensor.function([x], pt.exp(x @ x).T, mode="ONNX")
    value = np.arange(4.0).reshape(2, 2)
    np.testing.assert_allclose(f(value), np.exp(value @ value).T, rtol=1e-15)
