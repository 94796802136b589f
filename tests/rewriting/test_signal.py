"""Convolutions of signals and images in every mode and dtype, with gradients."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor.xtensor as px
import pytest
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.fft import irfft, irfft_op, rfft, rfft_op
from pytensor.tensor.fourier import fft
from pytensor.tensor.signal import convolve1d, convolve2d
from pytensor.tensor.signal.conv import Convolve1d
from scipy.signal import convolve

from pytensor_onnx import UnsupportedOpError, compile_onnx, export_onnx
from tests import coverage_recorder
from tests.conftest import compare_onnx_and_py

MODES = ("full", "valid", "same")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


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


def test_modes_batches_and_mixed_dtypes():
    x, y, z = pt.matrix("x"), pt.vector("y", dtype="float32"), pt.vector("z", shape=(3,))
    results = [convolve1d(x, y, mode=mode) for mode in MODES] + [convolve1d(z, x, mode="full")]
    values = [normal(2, 7), normal(4).astype("float32"), normal(3)]
    compare_onnx_and_py([x, y, z], results, values, atol=1e-14)


def test_signals_with_named_dimensions():
    x, y = px.xtensor("x", dims=("row", "time")), px.xtensor("y", dims=("tap",))
    results = [px.signal.convolve1d(x, y, mode=mode, dims=("time", "tap")) for mode in MODES]
    f = compile_onnx([x, y], results, verify=False)
    a, b = normal(2, 9), normal(4, seed=1)
    for found, mode in zip(f(a, b), MODES, strict=True):
        expected = [np.convolve(row, b, mode) for row in a]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_images():
    x, y = pt.tensor3("x"), pt.matrix("y", shape=(3, 2))
    results = [convolve2d(x, y, mode=mode, method="direct") for mode in MODES]
    for sizes in ((2, 6, 7), (2, 40, 33)):
        compare_onnx_and_py([x, y], results, [normal(*sizes), normal(3, 2)], atol=1e-13)


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


@pytest.mark.parametrize("dtypes", [("complex128", "complex128"), ("complex64", "float32")])
def test_complex_signals_and_images(dtypes):
    x, y = (pt.matrix(name, dtype=dtype) for name, dtype in zip("xy", dtypes, strict=True))
    results = [convolve1d(x, y), convolve1d(x, y, mode="valid"), convolve2d(y, x)]
    a, b = (normal(2, n, 2).view("complex128")[..., 0].astype("complex64") for n in (30, 40))
    values = [a.astype(dtypes[0]), (b.real if dtypes[1] == "float32" else b).astype(dtypes[1])]
    compare_onnx_and_py([x, y], results, values, atol=1e-12 if "128" in dtypes[0] else 1e-4)


def test_gradients():
    x, y = pt.vector("x"), pt.vector("y")
    costs = [(convolve1d(x, y, mode=mode) ** 2).sum() for mode in ("full", "valid")]
    results = [gradient for cost in costs for gradient in pt.grad(cost, [x, y])]
    compare_onnx_and_py([x, y], results, [normal(9), normal(4)], atol=1e-12)


@pytest.mark.parametrize("kernel", [pt.matrix("k"), pt.vector("k")], ids=["matrix", "vector"])
@pytest.mark.few(1)
def test_gradients_of_batches(kernel):
    x = pt.matrix("x")
    costs = [(convolve1d(x, kernel, mode=mode) ** 2).sum() for mode in MODES]
    gradients = [g for cost in costs for g in pt.grad(cost, [x, kernel])]
    for n, k in ((7, 3), (3, 7), (4, 4)):
        shape = (3, k)[2 - kernel.type.ndim :]
        compare_onnx_and_py([x, kernel], gradients, [normal(3, n), normal(*shape)], atol=1e-13)


def test_a_batch_has_one_mode():
    x, y, modes = pt.matrix("x"), pt.matrix("y"), pt.vector("modes", dtype="bool")
    f = pytensor.function([x, y, modes], Blockwise(Convolve1d())(x, y, modes), mode="ONNX")
    assert f(np.ones((2, 4)), np.ones((2, 3)), [True, True]).shape == (2, 6)
    assert f(np.ones((0, 4)), np.ones((0, 3)), []).shape[0] == 0
    with pytest.raises(ValueError, match="a batch of convolutions has one mode"):
        f(np.ones((2, 4)), np.ones((2, 3)), [True, False])


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


CLOSE = {"rtol": 1e-11, "atol": 1e-11}


@pytest.mark.parametrize(
    ("shape", "known"),
    [
        ((2, 7), True),
        ((1, 8), False),
        ((2, 4, 6), True),
        ((2, 3, 5, 4), True),
        pytest.param((2, 3, 5), False, marks=pytest.mark.slow),
    ],
)
def test_real_transforms_there_and_back(shape, known):
    x = pt.tensor("x", dtype="float64", shape=shape if known else (None,) * len(shape))
    spectrum = rfft(x, norm="ortho")
    back = irfft(spectrum, norm="ortho", is_odd=bool(shape[-1] % 2))
    value = normal(*shape)
    program = compare_onnx_and_py([x], [spectrum, rfft(x), back], [value], **CLOSE)
    np.testing.assert_allclose(program(value)[2], value, atol=1e-13)


@pytest.mark.parametrize("norm", [None, "ortho", "no_norm"])
def test_norms(norm):
    x, z = pt.matrix("x", shape=(None, 9)), pt.tensor3("z", shape=(None, 5, 2))
    results = [rfft(x, norm=norm), irfft(z, norm=norm), irfft(z, norm=norm, is_odd=True)]
    compare_onnx_and_py([x, z], results, [normal(2, 9), normal(2, 5, 2)], **CLOSE)


@pytest.mark.slow
def test_other_sizes_cut_arrays_or_continue_them_by_zeros():
    x, z, n = pt.tensor3("x"), pt.tensor4("z"), pt.lscalar("n")
    sizes = [(4, 6), (3, 9), (8, n)]
    results = [rfft_op(x, pt.stack(size)) for size in sizes]
    results += [irfft_op(z, pt.stack(size)) for size in sizes]
    compare_onnx_and_py([x, z, n], results, [normal(2, 5, 7), normal(2, 5, 4, 2), 5], **CLOSE)


def test_float32():
    x = pt.matrix("x", dtype="float32", shape=(2, 1000))
    result = rfft(x)
    value = normal(2, 1000).astype("float32")
    program = compare_onnx_and_py([x], [result, irfft(result)], [value], rtol=1e-4, atol=1e-4)
    assert {v.dtype.name for v in program.model.graph.outputs} == {"FLOAT"}


def functions_of(program):
    return {function.name for function in program.model.functions.values()}


@pytest.mark.parametrize("change", [lambda z: z, lambda z: z[:, 2:4].set(0) * 0.5])
def test_inverses_of_spectra_have_the_known_sizes(change):
    x = pt.matrix("x", shape=(None, 9))
    program = export_onnx([x], irfft(change(rfft(x)), is_odd=True), verify=False)
    forward, inverse = (f"FourierTransform_size_9{way}_float64_batch1" for way in ("", "_inverse"))
    assert functions_of(program) == {forward, inverse}


@pytest.mark.parametrize("n", [131, 1009, 10007])
def test_inverses_of_sizes_that_only_the_runtime_knows(n):
    """ONNX Runtime ends the process, or refuses the model, if a chosen part has a third choice."""
    x = pt.matrix("x", dtype="float32", shape=(2, n))
    spectrum = rfft(x)
    joined = pt.join(1, spectrum[:, :1], spectrum[:, 1:])
    program = export_onnx([x], irfft(joined, is_odd=True), verify=False)
    assert "FourierTransform_inverse_float32_batch1" in functions_of(program)
    value = normal(2, n).astype("float32")
    np.testing.assert_allclose(program(value), value, atol=1e-4)


def test_gradients_fourier_transforms():
    x, z = pt.matrix("x", shape=(2, 8)), pt.tensor3("z", shape=(2, 5, 2))
    costs = [(rfft(x) ** 2).sum(), (irfft(z) ** 3).sum(), (irfft(z, is_odd=True) ** 3).sum()]
    results = [pt.grad(costs[0], x), pt.grad(costs[1], z), pt.grad(costs[2], z)]
    compare_onnx_and_py([x, z], results, [normal(2, 8), normal(2, 5, 2)], **CLOSE)


@pytest.mark.slow
def test_complex_transforms_along_any_axis():
    n, graph, values, expected = pt.lscalar("n"), [], {}, []
    whole = 10 * (normal(3, 7) + 1j * normal(3, 7, seed=1))
    for dtype in ("complex128", "complex64", "float64", "int8"):
        z = pt.matrix(f"z_{dtype}", dtype=dtype)
        x = whole.astype(dtype) if dtype.startswith("complex") else whole.real.astype(dtype)
        values[z] = x
        graph += [fft(z, None, None), fft(z, None, 0), fft(z, 4, 1), fft(z, 9, 1), fft(z, n, 0)]
        expected += [np.fft.fft(x), np.fft.fft(x, axis=0), np.fft.fft(x, 4), np.fft.fft(x, 9)]
        expected += [np.fft.fft(x, 5, axis=0)]
    inputs, arguments = [*values, n], [*values.values(), 5]
    found = pytensor.function(inputs, graph, mode="ONNX")(*arguments)
    exported = export_onnx(inputs, graph, verify=False)(*arguments)
    for results in (found, exported):
        for y, a, b in zip(graph, results, expected, strict=True):
            assert a.dtype == "complex128"
            tolerance = 1e-4 if y.owner.inputs[0].type.dtype == "complex64" else 1e-12
            np.testing.assert_allclose(a, b, atol=tolerance, err_msg=str(y.owner.inputs))
    coverage_recorder.record_rewritten(graph)


def test_a_low_pass_filter_is_verified():
    x = pt.matrix("x", shape=(None, 1000))
    spectrum = rfft(x)
    program = export_onnx([x], irfft(spectrum[:, :100].set(0) * 0.5))
    assert "equal to PyTensor" in str(program.verification)


def test_an_axis_that_only_a_run_knows_is_refused():
    z, axis = pt.zmatrix("z"), pt.lscalar("axis")
    with pytest.raises(UnsupportedOpError, match="Fourier"):
        export_onnx([z, axis], fft(z, None, axis))


@pytest.mark.slow
def test_sizes_of_zero_are_errors():
    x, z, c, n = pt.matrix("x"), pt.tensor3("z"), pt.zmatrix("c"), pt.lscalar("n")
    a, pairs = np.ones((2, 5)), np.ones((2, 5, 2))
    program = export_onnx([x, n], rfft_op(x, pt.stack([n])), verify=False)
    in_mode = [
        ([z], irfft_op(z, np.array([0])), [pairs]),
        # The even size of a spectrum of one number is zero.
        ([z], irfft(z), [pairs[:, :1]]),
        ([c], fft(c, None, 1), [a[:, :0] * 1j]),
    ]
    runs = [(pytensor.function(x, y, mode="ONNX"), values) for x, y, values in in_mode]
    for run, values in [(program, [a, 0]), *runs]:
        with pytest.raises(ValueError, match="Invalid number of FFT data points"):
            run(*values)
