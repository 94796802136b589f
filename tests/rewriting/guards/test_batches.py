import numpy as np
import pytensor.tensor as pt

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
