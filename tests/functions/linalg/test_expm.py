"""The matrix exponential."""

import mpmath
import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.linalg.matrices import generator


@pytest.fixture(scope="module")
def exponential():
    x = pt.matrix("x")
    return compile_onnx([x], pt.linalg.expm(x), verify=False)


@pytest.mark.slow
def test_exponentials_of_a_batch_are_pytensors_and_so_are_gradients():
    x = pt.tensor3("x")
    scales = np.array([0.0, 1e-8, 1.0, 30.0])[:, None, None]
    a = scales * generator(1).normal(size=(4, 3, 3))
    y = pt.linalg.expm(x)
    compare_onnx_and_py([x], [y, pt.grad(pt.log1p(y**2).sum(), x)], [a], rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_errors_are_small_beside_mpmath(exponential):
    for scale in (1e-3, 0.5, 3.0, 20.0):
        a = scale * generator(2).normal(size=(4, 4))
        with mpmath.workdps(60):
            exact = np.array(mpmath.expm(mpmath.matrix(a.tolist())).tolist(), dtype=float)
        bound = 50 * np.finfo(float).eps * max(np.linalg.norm(a), 1)
        assert np.linalg.norm(exponential(a) - exact) <= bound * np.linalg.norm(exact)


def test_empty_extreme_and_non_finite_matrices(exponential):
    assert exponential(np.zeros((0, 0))).shape == (0, 0)
    np.testing.assert_array_equal(exponential(np.zeros((3, 3))), np.eye(3))
    np.testing.assert_allclose(exponential([[-700.0]]), np.exp(-700.0), rtol=1e-11)
    np.testing.assert_array_equal(exponential(np.diag([-1e300, 0.0])), np.diag([0.0, 1.0]))
    assert np.isnan(exponential(np.array([[1.0, np.nan], [0.0, 1.0]]))).all()
    with pytest.raises(ValueError, match="square"):
        exponential(np.ones((2, 3)))
