import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.basic import Eye
from pytensor.tensor.math import Dot

from tests.conftest import compare_onnx_and_py

CASES = {
    "diag(v) @ x": lambda v, x: pt.diag(v) @ x,
    "x @ diag(v)": lambda v, x: x @ pt.diag(v),
    "diag(v) @ x @ diag(v)": lambda v, x: pt.diag(v) @ x @ pt.diag(v),
    "diag(v) @ diag(v)": lambda v, x: pt.diag(v) @ pt.diag(v),
    "(2 * diag(v)) @ x": lambda v, x: (2 * pt.diag(v)) @ x,
    "(eye * v) @ x": lambda v, x: (pt.eye(4) * v) @ x,
    "inv(diag(v)) @ x": lambda v, x: pt.linalg.inv(pt.diag(v)) @ x,
    "x @ eye[:, i]": lambda v, x: x @ pt.eye(4)[:, [2, 0, 2]],
    "eye[:, i].T @ x": lambda v, x: pt.eye(4)[:, [2, 0, 2]].T @ x,
}


@pytest.mark.parametrize("name", CASES)
def test_no_matrix_product_is_left(name):
    v, x = pt.vector("v", shape=(4,)), pt.matrix("x", shape=(4, 4))
    y = CASES[name](v, x)
    f = pytensor.function([v, x], y, mode="ONNX", on_unused_input="ignore")
    assert not any(isinstance(node.op, Dot | Eye) for node in f.maker.fgraph.toposort())
    values = np.array([1.5, -2.0, 0.5, 3.0]), np.arange(16.0).reshape(4, 4)
    compare_onnx_and_py([v, x], y, values)
