"""Complex numbers are moved as real ones are, with few nodes."""

import warnings
from itertools import product

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert
from pytensor.tensor.math import Argmax, Max, Min, Prod, Sum

from tests.conftest import PY, compare_onnx_and_py, op_types


def numbers(shape, seed=0, dtype="complex128"):
    """Return numbers with zeros of both signs, infinities and NaN among them."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(*shape, 2))
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], size=parts.shape)
    parts = np.where(rng.uniform(size=parts.shape) < 0.3, special, parts)
    return parts.view("complex128")[..., 0].astype(dtype)


ONE_NODE = {
    "slices": lambda z: z[1:, ::-1],
    "an index": lambda z: z[:, 0],
    "gathers": lambda z: z[[1, 0, 0]],
    "transposition": lambda z: z.T,
    "ravel": lambda z: z.reshape((-1,)),
    "new axes": lambda z: z[:, None, :, None],
    "joins": lambda z: pt.concatenate([z, z[::-1]], axis=1),
    "parts": lambda z: z.imag,
}


@pytest.mark.parametrize("name", ONE_NODE)
def test_an_input_is_moved_by_one_node(name):
    z = pt.zmatrix("z")
    program = compare_onnx_and_py([z], ONE_NODE[name](z), [numbers((3, 4))], signed_zeros=True)
    assert len(op_types(program)) <= 2


def moves(z, w, x, i):
    """Return what moves two matrices, ``z`` of an input and ``w`` of known parts."""
    for m in (z, w):
        yield from (m[1:, ::-1], m[i], m[x > 0], m[[0, 0], [0, 1]], m[:, [1, 0]], m[x[:, 0] > 0])
        yield from (m.T, m[None, :, None], m.reshape((-1,)), m.reshape((m.shape[1], m.shape[0])))
        yield from (pt.concatenate([m, z], axis=1), pt.concatenate([x, m]), pt.stack([m, x]))
        yield from (m[1:].set(m[:1]), m[:, 0].set(x[:, 0]), m[0].set(2j), m[:, :1].inc(m[:, 1:2]))
        yield from (m[[0, 0]].inc(m[0]), m[[0], [1]].set(m[0, 0]), x[0].set(m[0].real))
        yield from (pt.alloc(m, 2, m.shape[0], m.shape[1]), pt.zeros_like(m), pt.ones_like(m))
        yield from (pt.specify_shape(m, (None, 2)), m.repeat(2, axis=0), pt.tile(m, (1, 2)))
        yield from (pt.roll(m, 1, axis=0), pt.flip(m, 1), pt.diagonal(m), pt.diag(m[0]))
        yield from (pt.switch(x > 0, m, 1j), pt.where(x > 0, x, m), pt.tril(m), m.flatten())
        yield from (Assert("no rows")(m, m.shape[0] > 0), pt.eye(2) * m[0], pt.expand_dims(m, 0))
        yield from (*pt.split(m, [1, 1], n_splits=2, axis=1), pt.stack([m[0, 0], m[0, 1], x[0, 0]]))
        yield from (m.size, m.shape[0], pt.eq(m, z[::-1]), pt.neq(m, x), pt.isnan(m), pt.isinf(m))
        yield from (pt.any(m, axis=0), pt.all(m), m.conj(), -m, pt.complex(x, m.imag), m.real)
        yield from (m.astype("complex64"), pt.real(x), m.sum(axis=0), pt.cumsum(m, axis=1))
        yield from pt.nonzero(m)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_all_moves(dtype):
    z, x, i = pt.matrix("z", dtype=dtype), pt.matrix("x", dtype="float32"), pt.lscalar("i")
    w = z.conj()
    real = np.array([[1.0, -1.0], [0.0, 2.0], [-3.0, np.nan]], "float32")
    compare_onnx_and_py([z, x, i], list(moves(z, w, x, i)), [numbers((3, 2), 1, dtype), real, -1])


def test_empty_and_short_axes():
    z, w = pt.zmatrix("z"), pt.zmatrix("w")
    results = [z.sum(0), z.sum(), z[:1], z.T, z * w[:, ::-1]]
    f = pytensor.function([z, w], results, mode="ONNX")
    for shape in product((0, 1, 3), repeat=2):
        a, b = numbers(shape, 1), numbers(shape, 2)
        with np.errstate(all="ignore"):
            expected = [a.sum(0), a.sum(), a[:1], a.T, a * b[:, ::-1]]
        for found, wanted in zip(f(a, b), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13, strict=True)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_choices_between_and_by_complex_numbers(dtype):
    z, w, n = pt.matrix("z", dtype=dtype), pt.vector("w", dtype=dtype), pt.lmatrix("n")
    results = [pt.choose(n, [z, 2 * z]), pt.choose(n, z), pt.switch(z, w, z), pt.switch(z, n, w)]
    values = numbers((2, 3), 3, dtype)
    values[0] = 0, 1j, complex(np.nan, 0)
    index = np.array([[0, 1, 1], [1, 0, 1]])
    compare_onnx_and_py([z, w, n], results, [values, numbers((3,), 4, dtype), index])


DTYPES = ("complex128", "complex64")
FINITE = (0.0, -0.0, 1.0, -1.0, 2.0)
ALL = (*FINITE, np.inf, -np.inf, np.nan, np.nan)


def numbers_complex_order(shape, parts, seed, dtype):
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


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("parts", [FINITE, ALL], ids=["finite", "all"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting_is_stable_and_puts_nan_last(dtype, parts):
    z = pt.tensor3("z", dtype=dtype)
    axes = (0, 1, -1, None)
    results = [pt.sort(z, axis=axis, stable=True) for axis in axes]
    results += [pt.argsort(z, axis=axis, kind="stable") for axis in axes]
    shapes = ((3, 4, 5), (1, 2, 30), (0, 2, 3), (2, 0, 1), (1, 1, 1))
    agree(
        [z], results, [[numbers_complex_order(shape, parts, len(shape), dtype)] for shape in shapes]
    )


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
    samples = [
        [numbers_complex_order(shape, parts, seed, dtype)] for shape in shapes for seed in range(4)
    ]
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


def test_loops_and_medians():
    z = pt.zmatrix("z")
    rows = pytensor.scan(lambda row: pt.sort(row)[::-1], sequences=[z], return_updates=False)
    values = np.random.default_rng(0).normal(size=(3, 5, 2)).view("complex128")[..., 0]
    compare_onnx_and_py([z], [rows, pt.median(z, axis=1), rows.max()], [values])


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
