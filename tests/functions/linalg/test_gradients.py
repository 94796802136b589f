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


@pytest.mark.few(3)
@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_gradients_are_pytensors(n, gradients):
    a, b = random_positive(n), generator(n).normal(size=(n, 2))
    for name, found, expected in zip(DIFFERENTIABLE, *(f(a, b) for f in gradients), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10, err_msg=name)


@pytest.mark.slow
def test_gradients_of_empty_matrices_are_empty():
    a = pt.matrix("a")
    u, s, vt = L.svd(a, full_matrices=False)
    values, vectors = L.eigh(a)
    # PyTensor's own mode has no solution of Sylvester's equation for empty matrices.
    x = L.solve_sylvester(a, a.T + pt.eye(a.shape[0]), a)
    results = (u, s, vt, values, vectors, L.pinv(a), x)
    gradient = pt.grad(sum((result**4).sum() for result in results), a)
    find = pytensor.function([a], gradient, mode="ONNX")
    assert find(np.zeros((0, 0))).shape == (0, 0)
    assert np.isfinite(find(random_positive(3))).all()
