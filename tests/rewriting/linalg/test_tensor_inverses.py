"""Inverses and solutions of tensors are NumPy's."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py

RNG = np.random.default_rng(6)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize(("shape", "ind"), [((2, 3, 6), 2), ((6, 2, 3), 1), ((2, 2, 4, 1), 2)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_inverses_of_tensors(shape, ind, dtype):
    x = pt.tensor("x", shape=(None,) * len(shape), dtype=dtype)
    value = RNG.standard_normal(shape).astype(dtype)
    rtol = 1e-10 if dtype == "float64" else 1e-3  # of the condition of the matrix
    compare_onnx_and_py([x], [pt.linalg.tensorinv(x, ind=ind)], [value], rtol=rtol)


@pytest.mark.parametrize(
    ("shape", "axes", "known"),
    [((4, 2, 2), None, (4,)), ((2, 4, 2), (0,), (4,)), ((2, 3, 2, 3), None, (2, 3))],
)
def test_solutions_of_tensors(shape, axes, known):
    x, y = pt.tensor("x", shape=(None,) * len(shape)), pt.tensor("y", shape=(None,) * len(known))
    values = [RNG.standard_normal(shape), RNG.standard_normal(known)]
    compare_onnx_and_py([x, y], [pt.linalg.tensorsolve(x, y, axes=axes)], values, rtol=1e-10)


def test_inverses_and_solutions_of_complex_tensors():
    x, y = pt.ztensor4("x"), pt.zmatrix("y")
    values = [RNG.standard_normal((2, 2, 2, 2)) + 1j * RNG.standard_normal((2, 2, 2, 2))]
    values.append(values[0][0, 1])
    results = [pt.linalg.tensorinv(x), pt.linalg.tensorsolve(x, y)]
    compare_onnx_and_py([x, y], results, values, rtol=1e-10)


@pytest.mark.slow
def test_tensors_that_are_not_square_are_an_error():
    x = pt.tensor3("x")
    function = pytensor.function([x], pt.linalg.tensorinv(x, ind=2), mode="ONNX")
    with pytest.raises(ValueError, match="must be square"):
        function(np.ones((2, 3, 5)))
