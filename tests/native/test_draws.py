"""Kernels of draws have the bits of the functions in whose place they run."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import SessionOptions, compile_onnx, export_onnx, native
from pytensor_onnx.kernels.regions import fuse
from pytensor_onnx.ops.random.draws import (
    NormalPairs,
    OpenUniform,
    RandomBits,
    StandardNormal,
    StandardUniform,
    state_variable,
)

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built")

STATE, N = state_variable("state"), pt.lscalar("n")
DRAWS = [
    op(dtype)
    for op in (StandardUniform, OpenUniform, StandardNormal, NormalPairs)
    for dtype in ("float32", "float64")
]
SIZES = (-5, 0, 1, 2, 3, 127, 128, 255, 256, 257, 511, 513, 1023, 10_001)
KEYS = ((0, 0), (3, 2**63 + 5), (2**64 - 1, 2**64 - 2))
COUNTERS = (0, 1, 2, 255, 2**63, 2**64 - 1, 2**64 - 300)


@pytest.fixture(params=[False, True], ids=["wide", "narrow"])
def _vectors(request):
    native.handle().pytensor_onnx_use_narrow_vectors(request.param)
    yield
    native.handle().pytensor_onnx_use_narrow_vectors(False)


def _calls(inputs, outputs):
    """Return the graph by kernels, and by the bodies of its functions."""
    settings = [SessionOptions(threads=1, kernels=x) for x in (True, False)]
    return [compile_onnx(inputs, outputs, session_options=x, verify=False) for x in settings]


@pytest.mark.usefixtures("_vectors")
@pytest.mark.parametrize("draw", [RandomBits(), *DRAWS], ids=str)
def test_draws_have_the_bits_of_the_body(draw):
    by_kernel, by_body = _calls([STATE, N], list(draw(STATE, N)))
    for key, counter in zip(KEYS * 3, COUNTERS, strict=False):
        state = np.array([*key, counter], "uint64")
        for n in SIZES:
            for found, expected in zip(by_kernel(state, n), by_body(state, n), strict=True):
                np.testing.assert_array_equal(found, expected, strict=True)
                np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("draw", [RandomBits(), *DRAWS], ids=str)
def test_a_file_names_functions_that_have_kernels(draw):
    program = export_onnx([STATE, N], list(draw(STATE, N)), verify=False)
    [called] = {node.op_type for node in program.proto.graph.node}
    [function] = [f for f in program.proto.functions if f.name == called]
    assert function.domain == "pytensor.standard"
    assert native.has_kernel(called)
    assert called in native.function_kernels()


def test_a_tape_draws_in_loops():
    x = pt.matrix("x", dtype="float64")

    def step(row, state, total):
        after, noise = StandardNormal("float64")(state, row.shape[0])
        return after, total + noise * row

    state, totals = pytensor.scan(step, [x], [STATE, pt.zeros_like(x[0])], return_updates=False)
    outputs = [state[-1], totals]
    program = export_onnx([STATE, x], outputs, verify=False)
    fusion = fuse(program.proto.SerializeToString(), every_size=True)
    assert fusion.is_whole, fusion.lines()
    options = SessionOptions(threads=1, reproducible=True)
    by_tape = compile_onnx([STATE, x], outputs, session_options=options, verify=False)
    plain = SessionOptions(threads=1, kernels=False)
    by_body = compile_onnx([STATE, x], outputs, session_options=plain, verify=False)
    for shape in ((1, 1), (4, 3), (5, 301)):
        given = np.array([1, 2, 2**64 - 3], "uint64"), np.full(shape, 0.5)
        for found, expected in zip(by_tape(*given), by_body(*given), strict=True):
            np.testing.assert_array_equal(found, expected, strict=True)


def test_a_length_of_short_integers_is_made_int64():
    state = pt.constant(np.array([1, 0, 0], dtype="uint64"))
    steps = pt.scalar("steps", dtype="int8")
    for length in (steps * 6, pt.constant(30, dtype="int8")):
        node = StandardUniform("float64").make_node(state, length)
        assert node.inputs[1].type.dtype == "int64"
    draw = compile_onnx([steps], StandardUniform("float64")(state, steps * 6)[1])
    assert draw(np.int8(5)).shape == (30,)
