"""Products along axes."""

import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.math import Prod, Sum

from tests.conftest import PY, compare_onnx_and_py
from tests.rewriting.complex.test_complex_structure import numbers


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_products_and_means(dtype):
    z = pt.tensor3("z", dtype=dtype)
    results = [z.prod(axis=axis) for axis in (None, 0, 2, (0, 2))]
    results += [z.cumprod(axis=axis) for axis in (0, 1, 2)] + [z.mean(), z.mean(axis=(0, 1))]
    f = pytensor.function([z], results, mode="ONNX")
    for shape in ((3, 2, 5), (1, 4, 0), (4, 1, 1), (0, 0, 2), (2, 2, 9)):
        value = np.random.default_rng(0).normal(size=(*shape, 2)).view("complex128")[..., 0]
        value = value.astype(dtype)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [value.prod(axis=axis) for axis in (None, 0, 2, (0, 2))]
            expected += [value.cumprod(axis=axis) for axis in (0, 1, 2)]
            expected += [value.mean(), value.mean(axis=(0, 1))]
        for found, wanted in zip(f(value), expected, strict=True):
            rtol = 1e-14 if dtype == "complex128" else 1e-5
            np.testing.assert_allclose(found, wanted, rtol=rtol)
            assert found.shape == wanted.shape


def test_means_and_products_at_limits():
    z = pt.zmatrix("z")
    compare_onnx_and_py([z], [z.sum(), z.mean(axis=0)], [numbers((3, 4))])


@pytest.mark.parametrize("op", [Sum, Prod])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128"])
def test_complex_accumulators_and_results(op, dtype):
    """Real numbers are reduced as complex ones, and complex ones to a real result."""
    x, z = pt.fmatrix("x"), pt.matrix("z", dtype="complex64")
    reductions = [op(dtype=dtype, acc_dtype="complex128", axis=axis) for axis in (None, 1)]
    results = [reduction(v) for reduction in reductions for v in (x, z)]
    if dtype.startswith("complex"):
        results.append(op(dtype=dtype, axis=[0])(x))
    f = pytensor.function([x, z], results, mode="ONNX")
    for shape in ((2, 3), (0, 2)):
        drawn = np.random.default_rng(0).normal(size=(*shape, 2)).view("complex128")[..., 0]
        values = drawn.real.astype("float32"), drawn.astype("complex64")
        reference = pytensor.function([x, z], results, mode=PY)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = reference(*values)
        for found, wanted in zip(f(*values), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
