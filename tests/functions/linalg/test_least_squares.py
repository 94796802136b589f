"""Pseudo-inverses and least squares."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.linalg.solvers.lstsq import lstsq

from pytensor_onnx import export_onnx
from tests.conftest import PY, compare_onnx_and_py
from tests.functions.linalg.matrices import generator, symmetric


@pytest.mark.slow
def test_pseudo_inverses_are_pytensors_for_any_shape():
    x = pt.tensor3("x")
    results = [pt.linalg.pinv(x), pt.linalg.pinv(pt.matmul(x, x.mT), hermitian=True)]
    a = generator(1).normal(size=(2, 4, 3))
    # The product has a rank of three; its fourth singular value is a rounding error.
    a[:, 3] = 0.0
    program = compare_onnx_and_py([x], results, [a], rtol=1e-10, atol=1e-12)
    for shape in ((2, 3, 5), (0, 2, 2), (2, 0, 3), (2, 3, 0)):
        value = generator(2).normal(size=shape)
        np.testing.assert_allclose(program(value)[0], np.linalg.pinv(value), rtol=0, atol=1e-13)


@pytest.mark.slow
def test_pseudo_inverses_of_singular_and_non_finite_matrices():
    x = pt.matrix("x")
    regular = generator(3).normal(size=(4, 3))
    program = compare_onnx_and_py([x], [pt.linalg.pinv(x)], [regular], rtol=1e-11)

    def invert(value):
        return program(value)[0]

    a = generator(4).normal(size=(6, 2)) @ generator(5).normal(size=(2, 6))
    np.testing.assert_allclose(invert(a), np.linalg.pinv(a, rcond=1e-12), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(invert(np.zeros((2, 3))), np.zeros((3, 2)))
    np.testing.assert_allclose(invert(np.full((1, 1), 1e-150)), 1e150, rtol=1e-15)
    assert np.isnan(invert(np.array([[1.0, np.nan]]))).all()


@pytest.mark.parametrize("rcond", [-1.0, pytest.param(0.5, marks=pytest.mark.slow)])
def test_least_squares_are_numpys(rcond):
    x, y, bound = pt.matrix("x"), pt.matrix("y"), pt.scalar("bound")
    results = lstsq(x, y, bound)
    values = [generator(1).normal(size=shape) for shape in ((5, 3), (5, 2))]
    program = compare_onnx_and_py(
        [x, y, bound], results, [*values, rcond], rtol=1e-11, atol=1e-13, reference=PY
    )
    dependent = np.ones((5, 3))
    for a in (generator(2).normal(size=(3, 3)), generator(2).normal(size=(2, 4)), dependent):
        b = generator(3).normal(size=(len(a), 2))
        for found, expected in zip(program(a, b, rcond), np.linalg.lstsq(a, b, rcond), strict=True):
            assert found.shape == np.shape(expected)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("rcond", [-1.0, 0.0, 0.3, 1.0, 2.0, np.nan])
def test_rcond_is_lapacks(rcond, solve_vector):
    # Singular values in exact powers of two, one on each side of LAPACK's rounding error.
    a = np.diag([1.0, 2.0**-3, 2.0**-52, 2.0**-54])
    expected = np.linalg.lstsq(a, np.ones(4), rcond)
    for x, y in zip(solve_vector(a, np.ones(4), rcond), expected, strict=True):
        assert x.shape == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14 * np.max(y, initial=0))


@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (2, 4), (1, 1), (3, 0)])
def test_vectors_have_vectors_for_solutions(shape, solve_vector):
    a, b = generator(1).normal(size=shape), generator(2).normal(size=shape[0])
    for found, expected in zip(solve_vector(a, b, -1.0), np.linalg.lstsq(a, b, -1), strict=True):
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


@pytest.fixture(scope="module")
def solve_vector():
    x, y, rcond = pt.matrix("x"), pt.vector("y"), pt.scalar("rcond")
    return export_onnx([x, y, rcond], lstsq(x, y, rcond), verify=False)


def test_float32_has_the_cutoff_of_float64():
    x, y = pt.fmatrix("x"), pt.fvector("y")
    a = np.diag([1.0, 1e-9]).astype("float32")
    solution, _, rank, _ = pytensor.function([x, y], lstsq(x, y, -1.0), mode="ONNX")(
        a, np.ones(2, "float32")
    )
    np.testing.assert_allclose(solution, np.linalg.lstsq(a, np.ones(2, "float32"), -1)[0], 1e-7)
    assert rank == 2


@pytest.mark.slow
def test_gradients_are_pytensors():
    x = pt.matrix("x")
    value = (pt.linalg.pinv(x) ** 2).sum()
    a = symmetric(generator(4).normal(size=(3, 3)))
    compare_onnx_and_py([x], pt.grad(value, x), [a], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.few(1)
def test_least_squares_of_complex_matrices(dtype):
    x, y, rcond = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype), pt.scalar("rcond")
    program = export_onnx([x, y, rcond], lstsq(x, y, rcond), verify=False)
    parts = generator(6).normal(size=(2, 5, 5))
    whole = (parts[0] + 1j * parts[1]).astype(dtype)
    tolerance = 1e-11 if dtype == "complex128" else 1e-4
    for a, bound in ((whole[:, :3], -1.0), (whole[:3], 0.5), (whole[:, [0, 0]], 1e-6)):
        b = whole[: len(a), 3:]
        for found, expected in zip(program(a, b, bound), np.linalg.lstsq(a, b, bound), strict=True):
            assert (found.shape, found.dtype) == (np.shape(expected), np.asarray(expected).dtype)
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    v = pt.vector("v", dtype=dtype)
    solution = export_onnx([x, v], lstsq(x, v, -1.0)[0], verify=False)(whole[:, :3], whole[:, 4])
    expected = np.linalg.lstsq(whole[:, :3], whole[:, 4], -1)[0]
    np.testing.assert_allclose(solution, expected, rtol=tolerance)
