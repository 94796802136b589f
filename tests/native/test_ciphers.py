"""Kernels of ciphers have the bits of the functions in whose place they run."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import SessionOptions, compile_onnx, export_onnx, native, prng
from pytensor_onnx.functions.random.ciphers import philox_4x32, threefry_2x32
from pytensor_onnx.kernels.regions import fuse

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built")

STATE = pt.vector("state", dtype="int64", shape=(2,))
N = pt.lscalar("n")
SIZES = (0, 1, 2, 3, 255, 256, 257, 1000, 10_001)
STATES = ([0, 0], [3, 2**31 + 5], [2**32 - 1, 2**32 - 2])


def _calls(inputs, outputs):
    """Return the graph by kernels, and by the bodies of its functions."""
    settings = [SessionOptions(threads=1, kernels=x) for x in (True, False)]
    return [compile_onnx(inputs, outputs, session_options=x, verify=False) for x in settings]


@pytest.fixture(params=[False, True], ids=["wide", "narrow"])
def _vectors(request):
    native.handle().pytensor_onnx_use_narrow_vectors(request.param)
    yield
    native.handle().pytensor_onnx_use_narrow_vectors(False)


@pytest.mark.usefixtures("_vectors")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("draw", [prng.random_uniform, prng.random_normal])
def test_draws_have_the_bits_of_the_body(draw, dtype):
    by_kernel, by_body = _calls([STATE, N], list(draw(STATE, (N,), dtype=dtype)))
    for state in STATES:
        for n in SIZES:
            for found, expected in zip(
                by_kernel(np.array(state), n), by_body(np.array(state), n), strict=True
            ):
                np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.usefixtures("_vectors")
def test_blocks_of_all_counters_have_the_bits_of_the_body():
    rng = np.random.default_rng(1)
    key, counters = pt.vector("key", dtype="uint64"), pt.vector("counters", dtype="uint64")
    by_kernel, by_body = _calls([key, counters], threefry_2x32()(key, counters))
    for n in (0, 1, 7, 1000):
        given = (
            rng.integers(2**32, size=2, dtype="uint64"),
            rng.integers(2**64, size=n, dtype="uint64"),
        )
        np.testing.assert_array_equal(by_kernel(*given), by_body(*given), strict=True)
    given = np.zeros(2, "uint64"), np.array([0, 2**32, 2**64 - 1], "uint64")
    np.testing.assert_array_equal(by_kernel(*given), by_body(*given))
    rows = pt.matrix("rows", dtype="int64", shape=(None, 4))
    by_kernel, by_body = _calls([STATE, rows], philox_4x32()(STATE, rows))
    for n in (0, 1, 7, 1000):
        given = rng.integers(2**32, size=2), rng.integers(2**32, size=(n, 4))
        np.testing.assert_array_equal(by_kernel(*given), by_body(*given), strict=True)


def test_a_file_names_the_functions_that_have_kernels():
    drawn = prng.random_normal(STATE, (N,))
    program = export_onnx([STATE, N], drawn.values, verify=False)
    functions = {f.name for f in program.proto.functions if f.domain == "pytensor.standard"}
    assert {"Threefry2x32", "ThreefryNormal_float32"} <= functions
    assert functions <= set(native.function_kernels())


def test_a_tape_draws_as_many_numbers_as_an_array_has():
    x = pt.fmatrix("x")
    drawn = prng.random_normal(STATE, x.shape)
    program = export_onnx([STATE, x], drawn.values + x, verify=False)
    fusion = fuse(program.proto.SerializeToString(), every_size=True)
    assert fusion.is_whole, fusion.lines()
    options = SessionOptions(threads=1, reproducible=True)
    by_tape = compile_onnx([STATE, x], drawn.values + x, session_options=options, verify=False)
    for shape in ((0, 3), (1, 1), (30, 20)):
        given = np.array(STATES[1]), np.zeros(shape, "float32")
        np.testing.assert_array_equal(by_tape(*given), program(*given), strict=True)
