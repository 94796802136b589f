"""Logarithms of distribution functions by the incomplete beta function, as PyMC writes them."""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.stats
from pytensor.tensor.variable import TensorVariable

from tests.conftest import compare_onnx_and_py

Logcdf = Callable[..., TensorVariable]


def beta(value, alpha, beta):
    inner = pt.switch(pt.lt(value, 1), pt.log(pt.betainc(alpha, beta, value)), 0)
    return pt.switch(pt.lt(value, 0), -np.inf, inner)


def student_t(value, nu, mu, sigma):
    t = (value - mu) / sigma
    root = pt.sqrt(t**2 + nu)
    return pt.log(pt.betainc(nu / 2, nu / 2, (t + root) / (2 * root)))


def binomial(value, n, p):
    inner = pt.switch(pt.lt(value, n), pt.log(pt.betainc(n - value, value + 1, 1 - p)), 0)
    return pt.switch(pt.lt(value, 0), -np.inf, inner)


# A distribution, SciPy's, and a value with parameters.
DISTRIBUTIONS: dict[str, tuple[Logcdf, Callable, list[Sequence[float]]]] = {
    "Beta": (
        beta,
        scipy.stats.beta.logcdf,
        [[0.1, 0.5, 0.97], [0.7, 20.0, 3.0], [2.0, 30.0, 0.4]],
    ),
    "StudentT": (
        student_t,
        scipy.stats.t.logcdf,
        [[-3.0, 0.2, 4.0], [1.5, 4.0, 30.0], [0.1, 0.0, -1.0], [1.0, 0.5, 2.0]],
    ),
    "Binomial": (
        binomial,
        scipy.stats.binom.logcdf,
        [[2, 11, 40], [10, 20, 100], [0.3, 0.4, 0.45]],
    ),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.few(1)
def test_logarithms_and_gradients_by_all_float_parameters(name):
    logcdf, reference, numbers = DISTRIBUTIONS[name]
    values = [np.array(v) for v in numbers]
    inputs = [pt.tensor(f"x{i}", dtype=v.dtype, shape=(None,)) for i, v in enumerate(values)]
    result = logcdf(*inputs)
    floats = [x for x in inputs if x.type.dtype == "float64"]
    gradients = pt.grad(result.sum(), floats)
    program = compare_onnx_and_py(inputs, [result, *gradients], values, rtol=1e-9)
    found, *_ = program(*values)
    np.testing.assert_allclose(found, reference(*values), rtol=1e-11)
    assert "Loop" not in {node.op_type for node in program.model.graph}
