"""Each trap that the profile of ONNX Runtime names is real in the installed version.

A failure means that a newer runtime does better, and that the flag can go.
"""

import platform
import subprocess
import sys

import mpmath
import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from pytensor_onnx.targets import get_profile

PROFILE = get_profile("onnxruntime")
FAILED = "ONNXRuntimeError"
LARGE = 2**53
NAN = np.nan


def test_an_unknown_target_is_refused_with_the_known_names():
    with pytest.raises(ValueError, match=r"'abacus'.*'onnxruntime', 'web', 'node', 'standard'"):
        get_profile("abacus")


REFERENCES = {
    "Sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "Tanh": mpmath.tanh,
    "Sin": mpmath.sin,
    "Cos": mpmath.cos,
    "Softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
}
# From opset 19 on, there is no kernel in double at all.
OPSETS = {"Softplus": 18}


@pytest.mark.parametrize(
    ("op_type", "dtype"),
    [(op_type, dtype) for op_type in REFERENCES for dtype in PROFILE.inaccurate[op_type]],
)
def test_inaccurate_kernels_are_several_ulp_off(run, op_type, dtype):
    x = np.linspace(-10, 0, 2001).astype(dtype.numpy())
    with mpmath.workprec(120):
        expected = [REFERENCES[op_type](mpmath.mpf(float(value))) for value in x]
        exact = np.array([float(value) for value in expected])
        found = run(op_type, x, opset=OPSETS.get(op_type, 21))
        errors = [abs(mpmath.mpf(float(a)) - b) for a, b in zip(found, expected, strict=True)]
    assert np.max(np.array(errors, float) / np.spacing(np.abs(exact.astype(x.dtype)))) > 3


def test_sigmoid_of_minus_thirty_has_three_digits(run):
    assert abs(run("Sigmoid", np.array([-30.0]))[0] / np.exp(-30.0) - 1) > 1e-4


REDUCED = {
    "Einsum": ([LARGE, 1], LARGE + 1, {"equation": "i->"}),
    "ReduceL1": ([LARGE, 1], LARGE + 1, {"keepdims": 0}),
    "ReduceProd": ([LARGE + 1, 3], 3 * LARGE + 3, {"keepdims": 0}),
    "ReduceSum": ([LARGE, 1], LARGE + 1, {"keepdims": 0}),
    "ReduceSumSquare": ([3 * 10**8 + 1, 1], (3 * 10**8 + 1) ** 2 + 1, {"keepdims": 0}),
}


@pytest.mark.parametrize("op_type", sorted(PROFILE.integer_reductions_through_double))
def test_integer_reductions_round_above_2_53(run, op_type):
    values, exact, attributes = REDUCED[op_type]
    assert run(op_type, np.array(values), **attributes) != exact


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceProd"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integer_reductions_saturate(run, op_type, dtype):
    largest = np.iinfo(dtype).max
    assert run(op_type, np.array([largest, 2], dtype), keepdims=0) == largest


def test_integer_matmul_and_cumsum_are_exact_and_wrap_around(run):
    x = np.array([np.iinfo(np.int64).max, 1])
    assert run("MatMul", x, np.ones(2, int)) == np.iinfo(np.int64).min
    assert run("CumSum", x, np.int64(0))[-1] == np.iinfo(np.int64).min
    assert run("MatMul", np.array([LARGE, 1]), np.ones(2, int)) == LARGE + 1


HALVES = [2**31, 7, 2**32 - 1, 2**31 + 1, 3, 2**31 + 2, 5, 2**31 + 9]
COMPARED_BY_HALVES = {
    "Clip": ((np.array(8), np.array(2**40)), np.clip(HALVES, 8, 2**40), {}),
    "Max": ((np.full(8, 8),), np.maximum(HALVES, 8), {}),
    "Min": ((np.full(8, 8),), np.minimum(HALVES, 8), {}),
    "ReduceMax": ((), max(HALVES), {"keepdims": 0}),
    "ReduceMin": ((), min(HALVES), {"keepdims": 0}),
    "Sign": ((), np.ones(8), {}),
}


@pytest.mark.skipif(
    platform.machine().lower() not in {"x86_64", "amd64"}, reason="only SSE2 has no comparison"
)
@pytest.mark.parametrize("op_type", sorted(PROFILE.int64_compared_by_halves))
def test_int64_with_equal_upper_halves_is_compared_by_signed_lower_halves(run, op_type):
    others, right, attributes = COMPARED_BY_HALVES[op_type]
    assert np.any(run(op_type, np.array(HALVES), *others, **attributes) != right)


@pytest.mark.parametrize(
    ("op_type", "compare"), [("Less", np.less), ("Greater", np.greater), ("Equal", np.equal)]
)
def test_int64_comparisons_are_right(run, op_type, compare):
    x, y = np.repeat(HALVES, 8), np.tile(HALVES, 8)
    np.testing.assert_array_equal(run(op_type, x, y), compare(x, y))


def test_int64_topk_is_right(run):
    values, _ = run("TopK", np.array(HALVES), np.array([8]), outputs=2)
    assert list(values) == sorted(HALVES, reverse=True)


def test_sign_of_nan_in_half_precision_is_zero(run):
    assert PROFILE.computed_wider == {"Sign": frozenset({ir.DataType.FLOAT16})}
    assert run("Sign", np.array([NAN, 1], "float16"))[0] == 0
    assert np.isnan(run("Sign", np.array([NAN, 1], "float32"))[0])


def test_integer_pow_rounds_above_2_53(run):
    assert PROFILE.integer_pow_through_double
    assert run("Pow", np.array([3, 3]), np.array([39, 39]))[0] != 3**39


def test_integer_pow_does_not_wrap_around(run):
    x = np.array([2**31 - 1, 3], np.int32)
    assert run("Pow", x, np.array([2, 2], np.int32))[0] != 1


def test_integer_fmod_rounds_above_2_53(run):
    assert PROFILE.integer_fmod_through_double
    assert run("Mod", np.array([LARGE + 1]), np.array([2]), fmod=1) != 1
    assert run("Mod", np.array([LARGE + 1]), np.array([2]), fmod=0) == 1


def test_integer_range_miscounts_above_2_53(run):
    assert PROFILE.integer_range_through_double
    assert run("Range", np.int64(LARGE + 1), np.int64(LARGE + 3), np.int64(1)).size != 2


@pytest.mark.parametrize("op_type", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64"])
def test_integer_division_by_zero_fails(run, op_type, dtype):
    assert PROFILE.integer_division_by_zero_fails
    with pytest.raises(Exception, match=r"(?i)onnxruntimeerror.*zero"):
        run(op_type, np.array([1, 2], dtype), np.array([0, 1], dtype))


traps_on_x86 = pytest.mark.skipif(
    platform.machine().lower() not in {"x86_64", "amd64"}, reason="only x86 traps on this division"
)


def status_without_traceback(script, *arguments):
    """Return how a process ends, which it must not do by an exception of Python."""
    command = [sys.executable, "-c", script, *arguments]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "Traceback" not in result.stderr
    return result.returncode


KILLER = """
import sys
import numpy, onnx.helper as h, onnxruntime
op_type, dtype = sys.argv[1:]
x = numpy.array([numpy.iinfo(dtype).min], dtype)
info = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(x.dtype), (1,)) for n in "xyz"]
graph = h.make_graph([h.make_node(op_type, ["x", "y"], ["z"])], "g", info[:2], info[2:])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString())
session.run(None, {"x": x, "y": -numpy.ones_like(x)})
"""


@pytest.mark.slow
@traps_on_x86
@pytest.mark.parametrize("op_type", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integer_division_that_overflows_ends_the_process(op_type, dtype):
    assert PROFILE.integer_division_overflow_kills
    assert status_without_traceback(KILLER, op_type, dtype) != 0


KILLER_OF_EMPTY_SLICES = """
import numpy, onnx.helper as h, onnxruntime
x = numpy.zeros((3, 0), "int64")
info = h.make_tensor_value_info("x", h.np_dtype_to_tensor_dtype(x.dtype), x.shape)
node = h.make_node("Unique", ["x"], ["y"], axis=0)
graph = h.make_graph([node], "g", [info], [h.make_empty_tensor_value_info("y")])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
"""


@pytest.mark.slow
def test_unique_of_empty_slices_ends_the_process():
    assert PROFILE.unique_of_empty_slices_kills
    assert status_without_traceback(KILLER_OF_EMPTY_SLICES) < 0


KILLER_OF_PRODUCTS_WITHOUT_ROWS = """
import numpy, onnx.helper as h, onnxruntime
x, y = numpy.zeros((0, 2, 3), "float32"), numpy.zeros((2, 3, 4), "float32")
info = [h.make_tensor_value_info(n, 1, [None] * 3) for n in "xyz"]
nodes = [h.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), h.make_node("MatMul", "ty", "z")]
graph = h.make_graph(nodes, "g", info[:2], info[2:])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x, "y": y})
"""


@pytest.mark.slow
@traps_on_x86
def test_products_of_no_rows_moved_behind_the_batch_end_the_process():
    assert PROFILE.fuses_products
    assert status_without_traceback(KILLER_OF_PRODUCTS_WITHOUT_ROWS) < 0


@pytest.mark.parametrize("op_type", sorted(PROFILE.reductions_ignore_nan))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reductions_ignore_nan(run, op_type, dtype):
    x = np.array([[1, NAN, 3], [4, NAN, 2]], dtype)
    if op_type.startswith("Arg"):
        assert np.any(run(op_type, x, axis=1, keepdims=0) != 1)
    else:
        assert not np.all(np.isnan(run(op_type, x, np.array([1]), keepdims=0)))


@pytest.mark.parametrize("dtype", list(PROFILE.log_softmax_loses_nan))
def test_log_softmax_loses_nan(run, dtype):
    x = np.array([1, NAN, 3], dtype.numpy())
    assert not np.all(np.isnan(run("LogSoftmax", x)))


def test_log_softmax_of_nan_is_nan_in_float32(run):
    assert np.all(np.isnan(run("LogSoftmax", np.array([1, NAN, 3], "float32"))))


def test_topk_does_not_sort_around_nan(run):
    assert "TopK" in PROFILE.loses_nan
    values, _ = run("TopK", np.array([1, NAN, 3, 2, NAN, 5, 4, 0]), np.array([8]), outputs=2)
    numbers = values[~np.isnan(values)]
    assert np.any(np.diff(numbers) > 0)


def test_unique_drops_nan(run):
    assert "Unique" in PROFILE.loses_nan
    assert not np.any(np.isnan(run("Unique", np.array([1, NAN, 2]))))


def test_maxpool_ignores_nan(run):
    assert "MaxPool" in PROFILE.loses_nan
    x = np.array([[[1, NAN, 3]]])
    assert run("MaxPool", x, kernel_shape=[3]) == 3


def test_gelu_in_float64_has_float32_constants(run):
    assert "Gelu" in PROFILE.inaccurate
    x = np.array([1.0])
    expected = (1 + np.tanh(np.sqrt(2 / np.pi) * 1.044715)) / 2
    assert abs(run("Gelu", x, approximate="tanh") - expected) > 1e-10


def test_group_normalization_cancels_where_the_mean_is_large(run):
    assert "GroupNormalization" in PROFILE.inaccurate
    x = 1000 + np.array([[[-1, 1, -1, 1]]], "float32").repeat(64, axis=2)
    one = np.ones(1, "float32")
    found = run("GroupNormalization", x, one, 0 * one, num_groups=1)
    assert np.max(np.abs(found - (x - 1000))) > 1e-3


def test_global_max_pool_ignores_nan(run):
    assert "GlobalMaxPool" in PROFILE.loses_nan
    assert run("GlobalMaxPool", np.array([[[1, NAN, 3]]], "float32")) == 3


def test_clip_ignores_bounds_that_are_nan(run):
    assert PROFILE.clip_ignores_nan_bounds
    assert list(run("Clip", np.array([1.0, 5.0]), np.array(NAN), np.array(2.0))) == [1, 2]


SCALAR = np.array(2.0)
ZERO = np.array(0)
ZERO_DIM_CALLS = {
    "ArgMax": (SCALAR,),
    "ArgMin": (SCALAR,),
    "Compress": (SCALAR, np.array([True])),
    "Concat": (SCALAR, SCALAR),
    "CumProd": (SCALAR, ZERO),
    "CumSum": (SCALAR, ZERO),
    "Gather": (SCALAR, ZERO),
    "GatherElements": (SCALAR, ZERO),
    "GatherND": (SCALAR, np.array([0])),
    "Hardmax": (np.float32(2),),
    "LogSoftmax": (SCALAR,),
    "LpNormalization": (SCALAR,),
    "MatMul": (SCALAR, np.ones(1)),
    "OneHot": (ZERO, np.array(3), np.array([0, 1])),
    "Pad": (SCALAR, np.zeros(0, int)),
    "ScatterElements": (SCALAR, ZERO, SCALAR),
    "ScatterND": (SCALAR, np.array([0]), SCALAR),
    "Slice": (SCALAR, np.array([0]), np.array([1])),
    "Softmax": (SCALAR,),
    "Split": (SCALAR, np.array([1])),
    "TopK": (SCALAR, np.array([1])),
}


@pytest.mark.parametrize("op_type", sorted(PROFILE.refuses_zero_dim))
def test_operators_along_a_dimension_refuse_to_have_none(run, op_type):
    attributes = {"axis": 0} if op_type == "Concat" else {}
    outputs = 2 if op_type == "TopK" else 1
    with pytest.raises(Exception, match=FAILED):
        run(op_type, *ZERO_DIM_CALLS[op_type], outputs=outputs, opset=26, **attributes)


@pytest.mark.parametrize("op_type", sorted(PROFILE.refuses_empty - {"Scan"}))
def test_operators_refuse_an_empty_dimension(run, op_type):
    x = np.zeros((2, 0))
    operands = (x, np.zeros(0)) if op_type == "LayerNormalization" else (x.T,)
    with pytest.raises(Exception, match=FAILED):
        run(op_type, *operands)


@pytest.mark.parametrize("op_type", sorted(PROFILE.refuses_empty_booleans))
def test_reductions_refuse_to_reduce_no_booleans(run, op_type):
    with pytest.raises(Exception, match="empty set with bool"):
        run(op_type, np.zeros(0, bool))
    assert np.isinf(run(op_type, np.zeros(0), keepdims=0))


def test_scan_refuses_length_zero(run_graph):
    assert "Scan" in PROFILE.refuses_empty
    names = ("state", "element", "next", "row")
    infos = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, (3,)) for name in names]
    steps = [("element", "next"), ("state", "row")]
    nodes = [helper.make_node("Identity", [a], [b]) for a, b in steps]
    body = helper.make_graph(nodes, "body", infos[:2], infos[2:])
    scan = helper.make_node("Scan", ["i", "x"], ["y", "z"], body=body, num_scan_inputs=1)
    with pytest.raises(Exception, match="Scan"):
        run_graph([scan], {"i": np.ones(3), "x": np.ones((0, 3))}, ["y", "z"])


def test_products_of_empty_matrices_are_not_written(run_graph):
    assert PROFILE.empty_products_unwritten
    nodes = [  # the product takes the buffer of `used`, which has its size and is read no more
        helper.make_node("Neg", ["a"], ["used"]),
        helper.make_node("ReduceSum", ["used"], ["total"], keepdims=0),
        helper.make_node("Mul", ["total", "x"], ["scaled"]),
        helper.make_node("MatMul", ["scaled", "y"], ["product"]),
        helper.make_node("Identity", ["product"], ["z"]),
    ]
    feeds = {"a": np.ones((4, 2, 3)), "x": np.ones((2, 0)), "y": np.ones((4, 0, 3))}
    [z] = run_graph(nodes, feeds, ["z"])
    assert np.all(z[1:] == -1.0)
    assert not z[0].any()
    operands = {name: feeds[name].astype("uint32") for name in ("x", "y")}
    with pytest.raises(Exception, match="mismatch"):
        run_graph([helper.make_node("MatMul", ["x", "y"], ["z"])], operands, ["z"])


def test_mean_of_nothing_is_zero(run):
    assert PROFILE.empty_mean_is_zero
    assert run("ReduceMean", np.zeros(0), keepdims=0) == 0


def test_expand_to_a_constant_shape_with_a_zero_is_dropped(run_graph):
    assert PROFILE.expand_to_nothing_is_dropped
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Constant", [], ["shape"], value_ints=[0]),
        helper.make_node("Expand", ["a", "shape"], ["b"]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    [y] = run_graph(nodes, {"x": np.ones(1)}, ["y"])
    assert y.shape == (1,)


@pytest.mark.parametrize("op_type", ["AveragePool", "LpPool", "MaxPool"])
def test_a_pool_finds_a_window_where_less_than_a_stride_is_missing(run, op_type):
    assert PROFILE.finds_window_on_short_axis
    pool = {"kernel_shape": [3], "strides": [2]}
    x = np.ones((1, 1, 4), "float32")
    assert run(op_type, x[..., :2], **pool).shape == (1, 1, 1)
    assert run(op_type, x[..., :1], **pool).shape == (1, 1, 0)
    assert run(op_type, x[..., :2], **pool, ceil_mode=1).shape == (1, 1, 1)
    with pytest.raises(Exception, match="Calculated output dimension is negative"):
        run(op_type, x[..., :1], **pool | {"kernel_shape": [6]})


def test_a_convolution_without_taps_does_not_return():
    assert PROFILE.hangs_without_taps
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Conv", ["x", "w"], ["y"])],
            "hangs",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * 3) for n in ("x", "w")],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 3)],
        ),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    lines = [
        "import sys, numpy as np, onnxruntime",
        "session = onnxruntime.InferenceSession(sys.stdin.buffer.read())",
        "run = lambda taps: session.run(None, {'x': np.ones((1, 1, 5), 'float32'), 'w': taps})",
        "run(np.ones((1, 1, 1), 'float32'))",
        "print('started', flush=True)",
        "run(np.ones((1, 1, 0), 'float32'))",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(model.SerializeToString())
        process.stdin.close()
        assert process.stdout.readline() == b"started\n"
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.0)
        finally:
            process.kill()


def test_gather_by_a_range_becomes_a_slice(run_graph):
    assert PROFILE.range_indices_become_slice
    nodes = [
        helper.make_node("Range", ["start", "limit", "step"], ["i"]),
        helper.make_node("Gather", ["x", "i"], ["y"]),
    ]
    feeds = {"x": np.arange(3.0), "start": np.array(0), "step": np.array(1)}
    [beyond] = run_graph(nodes, feeds | {"limit": np.array(5)}, ["y"])
    np.testing.assert_array_equal(beyond, [0, 1, 2])
    [negative] = run_graph(nodes, feeds | {"start": np.array(-2), "limit": np.array(1)}, ["y"])
    assert negative.shape == (0,)


def test_loop_of_no_steps_forgets_the_shape_of_its_rows(run_graph):
    assert PROFILE.empty_loop_forgets_shape
    step = helper.make_tensor_value_info("step", TensorProto.INT64, ())
    going, goes_on = (helper.make_tensor_value_info(n, TensorProto.BOOL, ()) for n in ("c", "d"))
    names = ("state", "next", "row", "x")
    state, following, row, x = (
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ("n",)) for name in names
    )
    copies = [("c", "d"), ("state", "next"), ("state", "row")]
    nodes = [helper.make_node("Identity", [a], [b]) for a, b in copies]
    body = helper.make_graph(nodes, "body", [step, going, state], [goes_on, following, row])
    loop = helper.make_node("Loop", ["m", "c0", "x"], ["y", "rows"], body=body)
    inputs = {"m": np.array(0), "c0": np.array(True), "x": np.ones(3)}
    types = [
        helper.make_tensor_value_info("m", TensorProto.INT64, ()),
        helper.make_tensor_value_info("c0", TensorProto.BOOL, ()),
        x,
    ]
    _, rows = run_graph([loop], inputs, ["y", "rows"], types=types)
    assert rows.shape == (0, 0)


@pytest.mark.skipif(
    platform.machine().lower() not in {"x86_64", "amd64"}, reason="conversions differ by processor"
)
def test_casts_to_integers_do_not_saturate(run):
    assert not PROFILE.float_to_integer_saturates
    assert run("Cast", np.array([1e20]), to=ir.DataType.INT32)[0] == np.iinfo(np.int32).min


def test_the_runtime_refuses_a_newer_opset(run):
    run("Neg", np.ones(1), opset=PROFILE.max_opset)
    with pytest.raises(Exception, match="opset"):
        run("Neg", np.ones(1), opset=PROFILE.max_opset + 1)


def test_the_runtime_refuses_a_newer_file_format(run):
    run("Neg", np.ones(1), ir_version=PROFILE.max_ir_version)
    with pytest.raises(Exception, match="IR version"):
        run("Neg", np.ones(1), ir_version=PROFILE.max_ir_version + 1)


def scaled_product(factor):
    """Return a session of a float64 product that is multiplied by a constant."""
    product = helper.make_node("MatMul", ["a", "b"], ["p"])
    scaled = helper.make_node("Mul", ["p", "c"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [1, 1]) for name in "aby"]
    constant = helper.make_tensor("c", TensorProto.DOUBLE, [], [factor])
    graph = helper.make_graph([product, scaled], "g", values[:2], values[2:], [constant])
    opset = helper.make_opsetid("", 21)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    return ort.InferenceSession(model.SerializeToString())


def test_constant_factors_of_products_are_narrowed_and_have_to_be_finite():
    assert PROFILE.fuses_products
    one = np.ones((1, 1))
    assert scaled_product(0.1).run(None, {"a": one, "b": one})[0] != 0.1
    with pytest.raises(Exception, match="finite"):
        scaled_product(np.inf)
