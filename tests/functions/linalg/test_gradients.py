"""Gradients of linear algebra, of matrices of every size."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.functions.linalg.matrices import generator, random_positive

L = pt.linalg
MODES = ("ONNX", "FAST_COMPILE")
DIFFERENTIABLE = {
    "cholesky": lambda a, b: L.cholesky(a),
    "solve": lambda a, b: L.solve(a, b, b_ndim=2),
    "solve, positive definite": lambda a, b: L.solve(a, b, assume_a="pos", b_ndim=2),
    "solve_triangular": lambda a, b: L.solve_triangular(a, b, lower=True, b_ndim=2),
    "inv": lambda a, b: L.inv(a),
    "det": lambda a, b: L.det(a),
    "slogdet": lambda a, b: L.slogdet(a)[1],
    "expm": lambda a, b: L.expm(a / 4),
}


@pytest.fixture(scope="module")
def gradients():
    a, b = pt.matrix("a"), pt.matrix("b")
    losses = [(f(a, b) ** 2).sum() for f in DIFFERENTIABLE.values()]
    found = [pt.grad(loss, a) for loss in losses]
    return [pytensor.function([a, b], found, mode=m, on_unused_input="ignore") for m in MODES]


@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_gradients_are_pytensors(n, gradients):
    a, b = random_positive(n), generator(n).normal(size=(n, 2))
    for name, found, expected in zip(DIFFERENTIABLE, *(f(a, b) for f in gradients), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10, err_msg=name)
