"""Operations on complex numbers agree with NumPy on drawn arrays of all sizes."""

from functools import cache

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor.conditional import ifelse

from tests.functions.complex.test_functions import FUNCTIONS, WIDER
from tests.properties import holds_for

DTYPES = ("complex128", "complex64")
HALVES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0]
ALL = [*HALVES, np.inf, -np.inf, np.nan]


def arrays(draw, shape, dtype, parts=ALL):
    """Draw complex numbers of the given parts, whose sums and products are exact."""
    count = 2 * int(np.prod(shape))
    drawn = draw(st.lists(st.sampled_from(parts), min_size=count, max_size=count))
    return np.array(drawn, "float64").view("complex128").reshape(shape).astype(dtype)


@cache
def compiled(build, dtype):
    inputs, results = build(dtype)
    return pytensor.function(inputs, results, mode="ONNX", on_unused_input="ignore")


def agree(build, dtype, values, expected):
    """Assert that a graph has the expected values, exactly."""
    for i, (found, wanted) in enumerate(
        zip(compiled(build, dtype)(*values), expected, strict=True)
    ):
        np.testing.assert_array_equal(found.real, np.real(wanted), err_msg=f"result {i}")
        np.testing.assert_array_equal(found.imag, np.imag(wanted), err_msg=f"result {i}")
        assert found.shape == np.shape(wanted)


def of_all_functions(dtype):
    z = pt.vector("z", dtype=dtype)
    return [z], [function(z) for function in FUNCTIONS.values()]


def magnitudes(width):
    """Draw numbers whose exponentials are finite in complex64."""
    return st.floats(2.0**-20, 80.0, width=width).flatmap(lambda x: st.sampled_from([x, -x]))


@st.composite
def vectors(draw):
    dtype = draw(st.sampled_from(DTYPES))
    parts = magnitudes(64 if dtype == "complex128" else 32)
    drawn = draw(st.lists(st.tuples(parts, parts), max_size=5))
    return dtype, np.array(drawn, "float64").reshape(-1, 2).view("complex128")[:, 0].astype(dtype)


@pytest.mark.slow
@holds_for(drawn=vectors())
def test_functions_are_accurate(drawn):
    dtype, values = drawn
    wide, eps = values.astype(WIDER[dtype]), np.finfo(dtype).eps
    for name, found in zip(FUNCTIONS, compiled(of_all_functions, dtype)(values), strict=True):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(wide)
        if name == "log1p":
            with mpmath.workdps(40):
                expected = np.array([complex(mpmath.log1p(mpmath.mpc(complex(v)))) for v in values])
        tolerance = (32 if name == "exp2" else 4) * eps
        assert (abs(found - expected) <= tolerance * abs(expected)).all(), name


def of_reductions(dtype):
    z = pt.tensor3("z", dtype=dtype)
    axes = (None, 0, 2, (0, 2))
    sums = [z.sum(axis=axis) for axis in axes]
    tests = [reduce(z, axis=axis) for reduce in (pt.any, pt.all) for axis in axes]
    return [z], [*sums, *tests, pt.cumsum(z, axis=1), z.conj().sum(axis=-1)]


@st.composite
def boxes(draw, parts=ALL):
    dtype = draw(st.sampled_from(DTYPES))
    shape = [draw(st.integers(0, 3)) for _ in range(3)]
    return dtype, arrays(draw, shape, dtype, parts)


@pytest.mark.slow
@holds_for(drawn=boxes())
def test_sums_and_tests_of_all_numbers(drawn):
    dtype, z = drawn
    axes = (None, 0, 2, (0, 2))
    with np.errstate(all="ignore"):
        expected = [z.sum(axis=axis) for axis in axes]
        expected += [reduce(z, axis=axis) for reduce in (np.any, np.all) for axis in axes]
        expected += [np.cumsum(z, axis=1), z.conj().sum(axis=-1)]
    agree(of_reductions, dtype, [z], expected)


def of_products(dtype):
    z = pt.tensor3("z", dtype=dtype)
    return [z], [*(z.prod(axis=axis) for axis in (None, 0, (0, 2))), pt.cumprod(z, axis=2)]


@pytest.mark.slow
@holds_for(drawn=boxes(HALVES))
def test_products_along_axes(drawn):
    dtype, z = drawn
    expected = [*(z.prod(axis=axis) for axis in (None, 0, (0, 2))), np.cumprod(z, axis=2)]
    for found, wanted in zip(compiled(of_products, dtype)(z), expected, strict=True):
        rtol = 1e-13 if dtype == "complex128" else 1e-5
        np.testing.assert_allclose(found, wanted, rtol=rtol)
        assert found.shape == wanted.shape


def of_moves(dtype):
    z, w = pt.matrix("z", dtype=dtype), pt.matrix("w", dtype=dtype)
    i, j, rows, mask = pt.lscalar("i"), pt.lscalar("j"), pt.lvector("rows"), pt.bvector("mask")
    mask_ = pt.eq(mask, 1)
    results = [
        *(z[i:j], z[:, ::-1], z[j:i:-1], z[rows], z[mask_], z.T, z.ravel()),
        *(z[i:j].set(1j), z[i:j].inc(w[i:j]), z[rows].set(w[rows]), z[rows].inc(w[rows])),
        *(z[mask_].set(2), z[mask_].set(w[mask_]), z[:, ::2].set(w[:, ::2])),
        *(pt.concatenate([z, w], axis=1), pt.stack([z, w], axis=-1)),
        *(pt.eq(z, w), pt.neq(z, w), pt.where(mask_[:, None], z, w)),
        *(z.conj(), z.real, z.imag, -z, z + w, z - w),
    ]
    return [z, w, i, j, rows, mask], results


@st.composite
def pairs_of_matrices(draw):
    dtype = draw(st.sampled_from(DTYPES))
    shape = m, _ = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    i, j = (np.int64(draw(st.integers(-5, 5))) for _ in range(2))
    count = draw(st.integers(0, 4)) if m else 0
    rows = draw(st.lists(st.integers(-m, max(m - 1, 0)), min_size=count, max_size=count))
    mask = draw(st.lists(st.integers(0, 1), min_size=m, max_size=m))
    z, w = (arrays(draw, shape, dtype) for _ in range(2))
    return dtype, [z, w, i, j, np.array(rows, "int64"), np.array(mask, "int8")]


@pytest.mark.slow
@holds_for(drawn=pairs_of_matrices())
def test_indices_setters_and_joins(drawn):
    dtype, values = drawn
    z, w, i, j, rows, mask = values
    mask = mask == 1

    def changed(index, new, add=False):
        result = z.copy()
        if add:
            np.add.at(result, index, new)
        else:
            result[index] = new
        return result

    every = (slice(None), slice(None, None, 2))
    with np.errstate(all="ignore"):
        expected = [
            *(z[i:j], z[:, ::-1], z[j:i:-1], z[rows], z[mask], z.T, z.ravel()),
            *(changed(slice(i, j), 1j), changed(slice(i, j), w[i:j], add=True)),
            *(changed(rows, w[rows]), changed(rows, w[rows], add=True)),
            *(changed(mask, 2), changed(mask, w[mask]), changed(every, w[every])),
            *(np.concatenate([z, w], axis=1), np.stack([z, w], axis=-1)),
            *(z == w, z != w, np.where(mask[:, None], z, w)),
            *(z.conj(), z.real, z.imag, -z, z + w, z - w),
        ]
    agree(of_moves, dtype, values, expected)


def of_matrix_products(dtype):
    z, w, v = pt.matrix("z", dtype=dtype), pt.matrix("w", dtype=dtype), pt.vector("v", dtype=dtype)
    t = pt.tensor3("t", dtype=dtype)
    results = [z @ w, pt.dot(z, v), pt.dot(v, w), pt.einsum("ij,jk->ki", z, w), t @ w]
    return [z, w, v, t], [*results, z @ w.real, pt.tensordot(t, w, axes=[[2], [0]])]


def by_parts(subscripts, x, y):
    """Return a product of complex arrays by real products, in which infinities stay in a part."""
    product = np.einsum
    return (product(subscripts, x.real, y.real) - product(subscripts, x.imag, y.imag)) + _imaginary(
        product(subscripts, x.real, y.imag) + product(subscripts, x.imag, y.real)
    )


def _imaginary(x):
    pairs = np.zeros((*x.shape, 2), x.dtype)
    pairs[..., 1] = x
    return pairs.view("complex64" if x.dtype == "float32" else "complex128")[..., 0]


@st.composite
def factors(draw):
    dtype = draw(st.sampled_from(DTYPES))
    m, k, n = (draw(st.integers(0, 3)) for _ in range(3))
    return dtype, [arrays(draw, shape, dtype) for shape in ((m, k), (k, n), (k,), (2, m, k))]


@pytest.mark.slow
@holds_for(drawn=factors())
def test_matrix_products(drawn):
    dtype, (z, w, v, t) = drawn
    cases = [("ij,jk", z, w), ("ij,j", z, v), ("j,jk", v, w), ("ij,jk->ki", z, w)]
    cases += [("bij,jk", t, w), ("ij,jk", z, w.real + 0j), ("bij,jk", t, w)]
    with np.errstate(all="ignore"):
        expected = [by_parts(*case) for case in cases]
        # A real factor has no imaginary part that makes an infinity NaN.
        parts = (z.real @ w.real, z.imag @ w.real)
        expected[5] = parts[0] + _imaginary(parts[1])
    agree(of_matrix_products, dtype, [z, w, v, t], expected)


def of_loops(dtype):
    z, x, choice = pt.vector("z", dtype=dtype), pt.matrix("x", dtype=dtype), pt.bscalar("choice")
    steps = pytensor.scan(
        lambda x, z: pt.switch(pt.eq(z, 0), x, z + x.conj()),
        sequences=[x],
        outputs_info=[z],
        return_updates=False,
    )
    return [z, x, choice], [steps[-1], ifelse(choice, z, -z), ifelse(choice, x.sum(), z[0])]


@st.composite
def sequences(draw):
    dtype = draw(st.sampled_from(DTYPES))
    n, steps = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    values = [arrays(draw, shape, dtype, HALVES) for shape in ((n,), (steps, n))]
    return dtype, [*values, np.int8(draw(st.integers(0, 1)))]


@pytest.mark.slow
@holds_for(drawn=sequences())
def test_loops_and_branches(drawn):
    dtype, (z, x, choice) = drawn
    state = z
    for row in x:
        state = np.where(state == 0, row, state + row.conj())
    expected = [state, z if choice else -z, x.sum() if choice else z[0]]
    agree(of_loops, dtype, [z, x, choice], expected)
