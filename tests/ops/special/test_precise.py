"""The logarithm of the definitions, in the lowering that it has in files."""

import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import SessionOptions, compile_onnx
from pytensor_onnx.ops.special import precise
from tests.functions.special.accuracy import DTYPES, errors_in_ulp
from tests.operations.regions import linear, logarithmic

inf, nan = np.inf, np.nan
# The C library rounds float64 nearly correctly, and float32 a little less.
BOUND = {"float64": 0.51, "float32": 0.85}


def compiled(dtype, ndim):
    x = pt.tensor("x", dtype=dtype, shape=(None,) * ndim)
    # As other programs run the file: the native library has a logarithm of its own.
    options = SessionOptions(kernels=False)
    return compile_onnx([x], precise.log(x), session_options=options, verify=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_rounded_nearly_correctly(dtype):
    run = compiled(dtype, 1)
    for region in (linear(0.5, 2), linear(0.99, 1.01), logarithmic(0)):
        [x] = region.points(500, dtype)
        with mp.workprec(140):
            exact = [mp.log(mp.mpf(float(v))) for v in x]
        assert errors_in_ulp(run(x), exact).max() <= BOUND[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (9,), (2, 3), (0, 4)])
def test_every_rank_and_the_ends_of_the_domain(dtype, shape):
    ends = np.array([0.0, -0.0, inf, -inf, nan, 1.0, -1.0], dtype)
    for value in ends if shape == () else [None]:
        x = np.asarray(value) if shape == () else np.resize(ends, shape)
        with np.errstate(all="ignore"):
            expected = np.log(x)
        found = compiled(dtype, len(shape))(x)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == dtype


def test_results_do_not_depend_on_the_place_in_an_array():
    run = compiled("float64", 1)
    x = np.random.default_rng(0).uniform(0.5, 2, 60)
    np.testing.assert_array_equal([run(x[i : i + 1])[0] for i in range(len(x))], run(x))
