"""Complex numbers are moved as real ones are, with few nodes."""

from itertools import product

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert

from tests.conftest import compare_onnx_and_py, op_types


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
