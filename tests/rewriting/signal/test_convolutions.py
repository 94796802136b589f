"""Convolutions of signals and images in every mode and dtype, with gradients."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor.xtensor as px
import pytest
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.signal import convolve1d, convolve2d
from pytensor.tensor.signal.conv import Convolve1d
from scipy.signal import convolve

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py

MODES = ("full", "valid", "same")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint16", "bool"])
def test_signals_of_all_sizes(dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    f = pytensor.function([x, y], [convolve1d(x, y, mode=mode) for mode in MODES[:2]], mode="ONNX")
    for n, k in ((1, 1), (9, 4), (4, 9), (5, 5), (40, 30), (30, 99), (700, 300)):
        a, b = (5 * normal(n)).astype(dtype), (5 * normal(k, seed=1)).astype(dtype)
        for found, mode in zip(f(a, b), MODES, strict=False):
            expected = np.convolve(a, b, mode)
            if a.dtype.kind == "f":
                # The runtime adds in another order.
                error = 2 * np.finfo(dtype).eps * np.convolve(abs(a), abs(b), mode)
                assert np.all(abs(found - expected) <= error)
            else:
                np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.slow
def test_modes_batches_and_mixed_dtypes():
    x, y, z = pt.matrix("x"), pt.vector("y", dtype="float32"), pt.vector("z", shape=(3,))
    results = [convolve1d(x, y, mode=mode) for mode in MODES] + [convolve1d(z, x, mode="full")]
    values = [normal(2, 7), normal(4).astype("float32"), normal(3)]
    compare_onnx_and_py([x, y, z], results, values, atol=1e-14)


@pytest.mark.slow
def test_signals_with_named_dimensions():
    x, y = px.xtensor("x", dims=("row", "time")), px.xtensor("y", dims=("tap",))
    results = [px.signal.convolve1d(x, y, mode=mode, dims=("time", "tap")) for mode in MODES]
    f = compile_onnx([x, y], results, verify=False)
    a, b = normal(2, 9), normal(4, seed=1)
    for found, mode in zip(f(a, b), MODES, strict=True):
        expected = [np.convolve(row, b, mode) for row in a]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_images():
    x, y = pt.tensor3("x"), pt.matrix("y", shape=(3, 2))
    results = [convolve2d(x, y, mode=mode, method="direct") for mode in MODES]
    for sizes in ((2, 6, 7), (2, 40, 33)):
        compare_onnx_and_py([x, y], results, [normal(*sizes), normal(3, 2)], atol=1e-13)


@pytest.mark.slow
def test_images_with_many_weights():
    x, y = pt.tensor3("x"), pt.tensor3("y")
    results = [convolve2d(x, y, mode=mode, method="direct") for mode in MODES[:2]]
    f = compile_onnx([x, y], results, verify=False)
    for one, other in (
        ((2, 40, 33), (2, 7, 5)),
        ((2, 7, 5), (2, 40, 33)),
        ((1, 9, 300), (1, 2, 290)),
    ):
        a, b = normal(*one), normal(*other, seed=1)
        for found, mode in zip(f(a, b), MODES, strict=False):
            expected = [
                convolve(i, j, method="direct", mode=mode) for i, j in zip(a, b, strict=True)
            ]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, strict=True)


def test_an_image_that_no_other_covers_has_no_valid_part():
    x, y = pt.matrix("x"), pt.matrix("y")
    f = compile_onnx([x, y], convolve2d(x, y, mode="valid"), verify=False)
    with pytest.raises(ValueError, match="at least as large as the other"):
        f(normal(3, 5), normal(4, 2))


@pytest.mark.slow
@pytest.mark.parametrize("dtypes", [("complex128", "complex128"), ("complex64", "float32")])
def test_complex_signals_and_images(dtypes):
    x, y = (pt.matrix(name, dtype=dtype) for name, dtype in zip("xy", dtypes, strict=True))
    results = [convolve1d(x, y), convolve1d(x, y, mode="valid"), convolve2d(y, x)]
    a, b = (normal(2, n, 2).view("complex128")[..., 0].astype("complex64") for n in (30, 40))
    values = [a.astype(dtypes[0]), (b.real if dtypes[1] == "float32" else b).astype(dtypes[1])]
    compare_onnx_and_py([x, y], results, values, atol=1e-12 if "128" in dtypes[0] else 1e-4)


@pytest.mark.slow
def test_gradients():
    x, y = pt.vector("x"), pt.vector("y")
    costs = [(convolve1d(x, y, mode=mode) ** 2).sum() for mode in ("full", "valid")]
    results = [gradient for cost in costs for gradient in pt.grad(cost, [x, y])]
    compare_onnx_and_py([x, y], results, [normal(9), normal(4)], atol=1e-12)


@pytest.mark.parametrize("kernel", [pt.matrix("k"), pt.vector("k")], ids=["matrix", "vector"])
@pytest.mark.slow
def test_gradients_of_batches(kernel):
    x = pt.matrix("x")
    costs = [(convolve1d(x, kernel, mode=mode) ** 2).sum() for mode in MODES]
    gradients = [g for cost in costs for g in pt.grad(cost, [x, kernel])]
    first, *others = (
        [normal(3, n), normal(*(3, k)[2 - kernel.type.ndim :])] for n, k in ((7, 3), (3, 7), (4, 4))
    )
    compare_onnx_and_py([x, kernel], gradients, first, also=others, atol=1e-13)


def test_a_batch_has_one_mode():
    x, y, modes = pt.matrix("x"), pt.matrix("y"), pt.vector("modes", dtype="bool")
    f = pytensor.function([x, y, modes], Blockwise(Convolve1d())(x, y, modes), mode="ONNX")
    assert f(np.ones((2, 4)), np.ones((2, 3)), [True, True]).shape == (2, 6)
    assert f(np.ones((0, 4)), np.ones((0, 3)), []).shape[0] == 0
    with pytest.raises(ValueError, match="a batch of convolutions has one mode"):
        f(np.ones((2, 4)), np.ones((2, 3)), [True, False])


@pytest.mark.slow
def test_infinities_reach_the_results_that_use_them():
    x, y = pt.vector("x"), pt.vector("y")
    result = convolve1d(x, y, mode="full")
    compare_onnx_and_py([x, y], result, [np.array([1.0, np.inf, 2.0, 3.0]), [1.0, np.nan, 1.0]])
    many = normal(60)
    many[20] = -np.inf
    compare_onnx_and_py([x, y], result, [many, normal(30, seed=1)], atol=1e-13)


def test_empty_signals_are_errors():
    x, y = pt.vector("x"), pt.vector("y")
    f = pytensor.function([x, y], convolve1d(x, y, mode="full"), mode="ONNX")
    for sizes in ((0, 2), (2, 0), (0, 0)):
        with pytest.raises(ValueError, match="an array to convolve is empty"):
            f(*map(np.ones, sizes))
