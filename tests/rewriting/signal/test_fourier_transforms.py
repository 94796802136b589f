"""PyTensor's Fourier transforms over all axes, sizes and norms, with gradients."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.fft import irfft, irfft_op, rfft, rfft_op
from pytensor.tensor.fourier import fft

from pytensor_onnx import UnsupportedOpError, export_onnx
from tests import coverage_recorder
from tests.conftest import compare_onnx_and_py

CLOSE = {"rtol": 1e-11, "atol": 1e-11}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


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


@pytest.mark.slow
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


@pytest.mark.few(1)
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


@pytest.mark.slow
def test_gradients():
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


@pytest.mark.slow
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
