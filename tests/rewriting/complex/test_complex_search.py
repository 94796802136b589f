"""Unique, searched and ranged complex numbers are NumPy's, NaN and ties included."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.conftest import PY
from tests.rewriting.complex.test_complex_order import ALL, DTYPES, FINITE, agree, numbers

COMPLEX = pytest.mark.parametrize("dtype", DTYPES)
PARTS = pytest.mark.parametrize("parts", [FINITE, ALL], ids=["finite", "all"])
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero")


@pytest.mark.few(1)
@PARTS
@COMPLEX
def test_searches_in_sorted_numbers(dtype, parts):
    x, v = pt.vector("x", dtype=dtype), pt.matrix("v", dtype=dtype)
    order, r = pt.lvector("order"), pt.dvector("r")
    results = [pt.searchsorted(x, v, side=side) for side in ("left", "right")]
    results += [pt.searchsorted(x[order], x[0], sorter=pt.argsort(order))]
    results += [pt.searchsorted(r, v, side="right"), pt.searchsorted(x, r)]
    samples = []
    for shape, size in (((4, 5), 30), ((1, 2), 1), ((0, 3), 4)):
        sorted_numbers = np.sort(numbers((size,), parts, size, dtype))
        reals = np.sort(np.random.default_rng(1).choice(parts, 7))
        permutation = np.random.default_rng(2).permutation(size)
        values = [sorted_numbers, numbers(shape, parts, 3, dtype), permutation, reals]
        samples.append(values)
    agree([x, v, order, r], results, samples)


def test_searches_in_no_numbers_and_in_batches():
    x, v = pt.zvector("x"), pt.zmatrix("v")
    agree([x, v], [pt.searchsorted(x, v)], [[np.empty(0, complex), np.ones((2, 3), complex)]])
    rows = pt.vectorize(lambda a, b: pt.searchsorted(a, b, side="right"), "(n),(m)->(m)")
    sorted_rows = np.sort(numbers((2, 9), FINITE, 5, "complex128"), axis=1)
    w = pt.zmatrix("w")
    agree([w, v], [rows(w, v)], [[sorted_rows, numbers((2, 4), FINITE, 6, "complex128")]])


@PARTS
@COMPLEX
def test_unique_numbers(dtype, parts):
    z = pt.matrix("z", dtype=dtype)
    results = [*pt.unique(z, True, True, True), pt.unique(z, return_index=True)[0]]
    shapes = ((5, 7), (1, 1), (1, 2), (0, 3))
    agree([z], results, [[numbers(shape, parts, sum(shape), dtype)] for shape in shapes])


def test_unique_numbers_alone():
    """NumPy leaves it open which of several NaN it returns where no positions are wanted."""
    z = pt.zvector("z")
    values = [*np.repeat(numbers((9,), FINITE, 1, "complex128"), 2), np.nan]
    agree([z], [abs(pt.unique(z))], [[np.array(values)]])


@PARTS
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_unique_slices(axis, parts):
    z = pt.tensor3("z", dtype="complex128")
    results = pt.unique(z, True, True, True, axis=axis)
    size = [2, 1, 2]
    size[axis] = 40
    shapes = (size, (1, 1, 1), (3, 0, 2), (0, 2, 2))
    agree([z], results, [[numbers(tuple(s), parts[:7], sum(s), "complex128")] for s in shapes])


@pytest.mark.parametrize(
    "bounds",
    [
        (0, 3 + 3j, 1 + 0j),
        (0.1, 5 + 4j, 1),
        (1 + 1j, -4 - 9.5j, -0.3 - 0.4j),
        (0, 1 + 1j, 0.1 + 0j),
        (3j, 1j, 2),
        (0, 10, 1 + 1j),
        (0, 10 + 1j, 1 - 1j),
    ],
)
@pytest.mark.slow
def test_ranges(bounds):
    start, stop, step = (pt.zscalar(name) for name in ("start", "stop", "step"))
    real = pt.dscalar("real")
    results = [pt.arange(start, stop, step), pt.arange(start, stop, step, dtype="complex64")]
    results += [pt.arange(stop), pt.arange(real, stop), pt.arange(real, dtype="complex128")]
    inputs, values = [start, stop, step, real], [*map(complex, bounds), 2.5]
    f, reference = (pytensor.function(inputs, results, mode=mode) for mode in ("ONNX", PY))
    for found, wanted in zip(f(*values), reference(*values), strict=True):
        assert found.dtype == wanted.dtype
        eps = np.finfo(found.dtype).eps
        np.testing.assert_allclose(found, wanted, rtol=2 * eps, atol=2 * eps)


def test_a_range_without_a_length_is_refused():
    step = pt.zscalar("step")
    f = pytensor.function([step], pt.arange(0, 1 + step, step), mode="ONNX")
    for value in (0.0, np.nan):
        with pytest.raises(ValueError, match="cannot compute length"):
            f(value)
