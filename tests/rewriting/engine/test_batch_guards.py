import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx import export_onnx, nn
from pytensor_onnx.running.linker import ONNX
from tests.conftest import compare_onnx_and_py, op_types


def test_rewrites_of_broadcast_products_end():
    x, y = pt.tensor("x", shape=(None, None, 1)), pt.tensor4("y")
    n, k = pt.lscalars("n", "k")
    product = pt.broadcast_to(x, (n, 4, k, 3)) @ y
    values = [np.arange(8.0).reshape(4, 2, 1), np.ones((2, 4, 3, 2)), np.array(2), np.array(2)]
    compare_onnx_and_py([x, y, n, k], product, values)


def test_products_of_repeated_batches_are_computed_once():
    x, y = pt.matrix("x"), pt.matrix("y")
    n = pt.lscalar("n")
    product = pt.broadcast_to(x, (n, *x.shape)) @ y
    values = [np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4), np.array(5)]
    program = compare_onnx_and_py([x, y, n], product, values)
    operators = op_types(program)
    assert operators.index("MatMul") < operators.index("Expand")


def block(x):
    rng = np.random.default_rng(2)
    weights = [rng.normal(0, 0.3, shape).astype("float32") for shape in [(8, 24), (8, 8), (24,)]]
    y = nn.layer_norm(x) @ weights[0] + weights[2]
    q, k, v = (y[..., i : i + 8].reshape((x.shape[0], x.shape[1], 2, 4)) for i in (0, 8, 16))
    scores = q.transpose(0, 2, 1, 3) @ k.transpose(0, 2, 3, 1)
    mixed = pt.special.softmax(scores, axis=-1) @ v.transpose(0, 2, 1, 3)
    joined = mixed.transpose(0, 2, 1, 3).reshape((x.shape[0], x.shape[1], 8))
    return x + joined @ weights[1]


@pytest.mark.slow
def test_a_batch_of_one_stays_in_products_and_reshapes():
    operators = []
    for batch in (1, None):
        x = pt.tensor("x", shape=(batch, None, 8), dtype="float32")
        program = export_onnx([x], block(x), verify=False)
        operators.append(sorted(op_types(program)))
    assert operators[0] == operators[1]
    assert not {"Squeeze", "Unsqueeze"} & set(operators[0])
    x = pt.tensor("x", shape=(1, None, 8), dtype="float32")
    value = np.random.default_rng(0).normal(size=(1, 5, 8)).astype("float32")
    outputs = [block(x), *pt.grad(block(x).sum(), [x])]
    compare_onnx_and_py([x], outputs, [value], also=[[value[:, :1]]], rtol=1e-4)
    value[0, 2, 1], value[0, 3, 0] = np.nan, np.inf
    compare_onnx_and_py([x], block(x), [value])


def test_batches_that_are_added_before_a_product_are_added_after_it():
    x, w = pt.matrices("xw")
    program = compare_onnx_and_py(
        [x, w], x[None] @ w[None], [np.arange(6.0).reshape(2, 3), np.ones((3, 2))]
    )
    assert op_types(program) == ["MatMul", "Unsqueeze"]


def test_products_of_batches_of_one_and_many_have_the_length_of_both():
    x, y = pt.tensor("x", shape=(1, None, None)), pt.tensor("y", shape=(None, None, None))
    first, *others = (
        [np.ones((1, 2, rows)), np.ones((n, rows, 4))]
        for n, rows in ((3, 2), (3, 0), (0, 2), (1, 0))
    )
    for product in (x @ y, y.mT @ x.mT):
        compare_onnx_and_py([x, y], product, first, also=others)


def test_the_canonical_form_of_dense_layers_takes_one_round():
    x, w, b = pt.matrix("x"), pt.matrix("w"), pt.vector("b")
    graph = FunctionGraph([x, w, b], [pt.exp(pt.exp(x @ w + b) @ w + b)], clone=False)
    optimizer = ONNX.optimizer
    profiles = optimizer.rewrite(graph)[6]
    [rounds] = [
        profile[1]
        for rewriter, profile in zip(optimizer.data, profiles, strict=True)
        if rewriter.name == "canonicalize"
    ]
    assert len(rounds) == 1
