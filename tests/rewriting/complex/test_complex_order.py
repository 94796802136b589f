"""Sorted complex numbers and their extremes are NumPy's, NaN and ties included."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.math import Argmax, Max, Min

from tests.conftest import PY, compare_onnx_and_py

DTYPES = ("complex128", "complex64")
FINITE = (0.0, -0.0, 1.0, -1.0, 2.0)
ALL = (*FINITE, np.inf, -np.inf, np.nan, np.nan)


def numbers(shape, parts, seed, dtype):
    """Return numbers of few different parts, many of them equal."""
    drawn = np.random.default_rng(seed).choice(parts, size=(*shape, 2))
    return drawn.view("complex128")[..., 0].astype(dtype)


def agree(inputs, results, samples):
    """Assert that results are PyTensor's, signs of zeros and kinds of NaN included."""
    f, reference = (pytensor.function(inputs, results, mode=mode) for mode in ("ONNX", PY))
    for values in samples:
        for found, wanted in zip(f(*values), reference(*values), strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            for part in (np.real, np.imag):
                np.testing.assert_array_equal(part(found), part(wanted))
                np.testing.assert_array_equal(1 / part(found), 1 / part(wanted))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("parts", [FINITE, ALL], ids=["finite", "all"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting_is_stable_and_puts_nan_last(dtype, parts):
    z = pt.tensor3("z", dtype=dtype)
    axes = (0, 1, -1, None)
    results = [pt.sort(z, axis=axis, stable=True) for axis in axes]
    results += [pt.argsort(z, axis=axis, kind="stable") for axis in axes]
    shapes = ((3, 4, 5), (1, 2, 30), (0, 2, 3), (2, 0, 1), (1, 1, 1))
    agree([z], results, [[numbers(shape, parts, len(shape), dtype)] for shape in shapes])


@pytest.mark.parametrize("kind", ["quicksort", "mergesort", "heapsort", "stable"])
def test_all_kinds_of_sorting(kind):
    z = pt.zvector("z")
    results = [pt.sort(z, kind=kind), pt.argsort(z, kind=kind), pt.argsort(pt.argsort(z))]
    values = np.random.default_rng(0).normal(size=(20, 2)).view("complex128")[:, 0]
    compare_onnx_and_py([z], results, [values])


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("parts", [FINITE, ALL], ids=["finite", "all"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.few(1)
def test_extremes_are_the_first_ones(dtype, parts):
    z = pt.tensor3("z", dtype=dtype)
    axes = ((0,), (1,), (2,), (0, 2), (1, 2), None, ())
    results = [op(axis)(z) for op in (Max, Min) for axis in axes]
    results += [Argmax(axis)(z) for axis in axes if axis != ()]
    results += [op((1,), initial=True)(z) for op in (Max, Min)]
    results += [pt.max(z, axis=-1, keepdims=True), *pt.max_and_argmax(z, axis=1)]
    shapes = ((3, 4, 5), (1, 2, 7), (2, 1, 1))
    samples = [[numbers(shape, parts, seed, dtype)] for shape in shapes for seed in range(4)]
    agree([z], results, samples)


def test_extremes_of_one_number():
    z = pt.zscalar("z")
    compare_onnx_and_py([z], [pt.max(z), pt.argmax(z), Min(None)(z)], [1 + 2j])


def test_extremes_of_nothing():
    z = pt.zmatrix("z")
    empty = np.empty((2, 0), "complex128")
    starts = [Max((1,), initial=True)(z), Min((1,), initial=True)(z)]
    compare_onnx_and_py([z], [*starts, pt.max(z, axis=0), pt.argmax(z, axis=0)], [empty])
    for op, message in ((Max, "maximum"), (Min, "minimum"), (Argmax, "argmax of an empty")):
        f = pytensor.function([z], op((1,))(z), mode="ONNX")
        with pytest.raises(ValueError, match=message):
            f(empty)


@pytest.mark.slow
def test_loops_and_medians():
    z = pt.zmatrix("z")
    rows = pytensor.scan(lambda row: pt.sort(row)[::-1], sequences=[z], return_updates=False)
    values = np.random.default_rng(0).normal(size=(3, 5, 2)).view("complex128")[..., 0]
    compare_onnx_and_py([z], [rows, pt.median(z, axis=1), rows.max()], [values])
