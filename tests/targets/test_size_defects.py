"""Missing axes, empty ones and short ones that the installed runtime gets wrong."""

import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession

from tests.targets.conftest import on_x86, operators, repaired, status_without_traceback

FAILED = "ONNXRuntimeError"

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


@pytest.mark.parametrize("op_type", ZERO_DIM_CALLS)
def test_operators_along_a_dimension_refuse_to_have_none(run, op_type):
    attributes = {"axis": 0} if op_type == "Concat" else {}
    outputs = 2 if op_type == "TopK" else 1
    with pytest.raises(Exception, match=FAILED):
        run(op_type, *ZERO_DIM_CALLS[op_type], outputs=outputs, opset=26, **attributes)


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin", "LayerNormalization"])
def test_operators_refuse_an_empty_dimension(run, op_type):
    x = np.zeros((2, 0))
    operands = (x, np.zeros(0)) if op_type == "LayerNormalization" else (x.T,)
    with pytest.raises(Exception, match=FAILED):
        run(op_type, *operands)


@pytest.mark.parametrize("op_type", operators("extrema of no booleans"))
def test_reductions_refuse_to_reduce_no_booleans(run, op_type):
    with pytest.raises(Exception, match="empty set with bool"):
        run(op_type, np.zeros(0, bool))
    assert np.isinf(run(op_type, np.zeros(0), keepdims=0))


def test_scan_refuses_length_zero(run_graph):
    names = ("state", "element", "next", "row")
    infos = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, (3,)) for name in names]
    steps = [("element", "next"), ("state", "row")]
    nodes = [helper.make_node("Identity", [a], [b]) for a, b in steps]
    body = helper.make_graph(nodes, "body", infos[:2], infos[2:])
    scan = helper.make_node("Scan", ["i", "x"], ["y", "z"], body=body, num_scan_inputs=1)
    with pytest.raises(Exception, match="Scan"):
        run_graph([scan], {"i": np.ones(3), "x": np.ones((0, 3))}, ["y", "z"])


def test_loop_of_no_steps_forgets_the_shape_of_its_rows(run_graph):
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@repaired("1.32")
def test_a_matrix_without_rows_is_not_multiplied_by_a_vector(run, dtype):
    with pytest.raises(Exception, match="left operand"):
        run("MatMul", np.ones((0, 3), dtype), np.ones(3, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_without_rows_is_multiplied_by_a_column(run, dtype):
    assert run("MatMul", np.ones((0, 3), dtype), np.ones((3, 1), dtype)).shape == (0, 1)


@pytest.mark.parametrize("operator", ["ReduceLogSum", "ReduceMax", "ReduceSum"])
@repaired("1.32")
def test_reductions_keep_single_axes_of_empty_arrays(run, operator):
    assert run(operator, np.ones((0, 3, 1)), np.array([-1]), keepdims=0).shape == (0, 3, 1)


def test_mean_of_nothing_is_zero(run):
    assert run("ReduceMean", np.zeros(0), keepdims=0) == 0


@repaired("1.32")
def test_products_of_empty_matrices_are_not_written(run_graph):
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


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_empty_products_of_unsigned_integers_fail(run, dtype):
    with pytest.raises(Exception, match="mismatch"):
        run("MatMul", np.ones((2, 0), dtype), np.ones((4, 0, 3), dtype))


def test_expand_to_a_constant_shape_with_a_zero_is_dropped(run_graph):
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Constant", [], ["shape"], value_ints=[0]),
        helper.make_node("Expand", ["a", "shape"], ["b"]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    [y] = run_graph(nodes, {"x": np.ones(1)}, ["y"])
    assert y.shape == (1,)


@pytest.mark.parametrize("op_type", operators("window on a short axis"))
def test_a_pool_finds_a_window_where_less_than_a_stride_is_missing(run, op_type):
    pool = {"kernel_shape": [3], "strides": [2]}
    x = np.ones((1, 1, 4), "float32")
    assert run(op_type, x[..., :2], **pool).shape == (1, 1, 1)
    assert run(op_type, x[..., :1], **pool).shape == (1, 1, 0)
    assert run(op_type, x[..., :2], **pool, ceil_mode=1).shape == (1, 1, 1)
    with pytest.raises(Exception, match="Calculated output dimension is negative"):
        run(op_type, x[..., :1], **pool | {"kernel_shape": [6]})


def test_a_convolution_without_taps_does_not_return():
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
    nodes = [
        helper.make_node("Range", ["start", "limit", "step"], ["i"]),
        helper.make_node("Gather", ["x", "i"], ["y"]),
    ]
    feeds = {"x": np.arange(3.0), "start": np.array(0), "step": np.array(1)}
    [beyond] = run_graph(nodes, feeds | {"limit": np.array(5)}, ["y"])
    np.testing.assert_array_equal(beyond, [0, 1, 2])
    [negative] = run_graph(nodes, feeds | {"start": np.array(-2), "limit": np.array(1)}, ["y"])
    assert negative.shape == (0,)


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
    assert status_without_traceback(KILLER_OF_EMPTY_SLICES) < 0


KILLER_OF_EMPTY_CHANNELS = """
import numpy, onnx.helper as h, onnxruntime
x, s = numpy.zeros((1, 1, 0), "float32"), numpy.ones(1, "float32")
info = [h.make_tensor_value_info("x", 1, [None] * 3), h.make_tensor_value_info("s", 1, [1])]
nodes = [h.make_node("Exp", "x", "y"), h.make_node("InstanceNormalization", "yss", "z")]
graph = h.make_graph(nodes, "g", info, [h.make_tensor_value_info("z", 1, [None] * 3)])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x, "s": s})
"""


@pytest.mark.slow
def test_normalisation_of_empty_channels_ends_the_process():
    assert status_without_traceback(KILLER_OF_EMPTY_CHANNELS) < 0


KILLER_OF_NESTED_CHOICES = """
import onnx.parser, onnxruntime
text = '''<ir_version: 10, opset_import: ["" : 21]> graph (double[40] x) => (double[n] y) {
    size = Shape(x)
    least = Constant<value = int64[1] {5}>()
    small = Less(size, least)
    is_small = Squeeze(small)
    y = If (is_small) <
        then_branch = a () => (double[n] p) { p = Neg(x) },
        else_branch = b () => (double[n] q) {
            q = If (is_small) <
                then_branch = c () => (double[n] r) { r = Neg(x) },
                else_branch = d () => (double[n] s) {
                    steps = Constant<value = int64 {3}>()
                    go = Constant<value = bool {1}>()
                    s = Loop (steps, go, x) <
                        body = e (int64 i, bool f, double[n] t) => (bool g, double[n] u) {
                            g = Identity(f)
                            u = Add(t, x)
                        }
                    >
                }
            >
        }
    >
}'''
onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
"""


@pytest.mark.slow
def test_a_loop_in_nested_choices_that_are_known_ends_the_process():
    assert status_without_traceback(KILLER_OF_NESTED_CHOICES) < 0


KILLER_OF_PRODUCTS_WITHOUT_ROWS = """
import numpy, onnx.helper as h, onnxruntime
x, y = numpy.zeros((0, 2, 3), "float32"), numpy.zeros((2, 3, 4), "float32")
info = [h.make_tensor_value_info(n, 1, [None] * 3) for n in "xyz"]
nodes = [h.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), h.make_node("MatMul", "ty", "z")]
graph = h.make_graph(nodes, "g", info[:2], info[2:])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x, "y": y})
"""


@repaired("1.32")
@pytest.mark.slow
@on_x86
def test_products_of_no_rows_moved_behind_the_batch_end_the_process():
    assert status_without_traceback(KILLER_OF_PRODUCTS_WITHOUT_ROWS) < 0


def resize_between_transposes(sizes, **attributes):
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Resize", ["t", "", "", "sizes"], ["r"], mode="linear", **attributes),
        helper.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 3, 1]),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * 4) for n in "xy")
    constant = numpy_helper.from_array(np.array(sizes), "sizes")
    graph = helper.make_graph(nodes, "resize", [x], [y], [constant])
    opset = helper.make_opsetid("", 21)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    return InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_sizes_of_some_axes_between_transposes_are_refused():
    with pytest.raises(Exception, match="does not match the number of axes"):
        resize_between_transposes([6, 6], axes=[2, 3])
    images = np.ones((1, 3, 3, 2), "float32")
    (resized,) = resize_between_transposes([1, 2, 6, 6]).run(None, {"x": images})
    assert resized.shape == (1, 6, 6, 2)


KILLER_OF_NO_SEQUENCES = """
import sys, numpy, onnx.helper as h, onnxruntime
gates = {"GRU": 3, "LSTM": 4}[sys.argv[1]]
arrays = {"x": (3, 0, 1), "w": (1, gates, 1), "r": (1, gates, 1)}
values = {name: numpy.ones(shape, "float32") for name, shape in arrays.items()}
info = [h.make_tensor_value_info(name, 1, [None] * 3) for name in arrays]
node = h.make_node(sys.argv[1], list("xwr"), ["y"], hidden_size=1)
graph = h.make_graph([node], "g", info, [h.make_tensor_value_info("y", 1, [None] * 4)])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
onnxruntime.InferenceSession(model.SerializeToString()).run(None, values)
"""


@pytest.mark.slow
@pytest.mark.parametrize("op_type", ["GRU", "LSTM"])
def test_recurrent_cells_of_no_sequences_end_the_process(op_type):
    assert status_without_traceback(KILLER_OF_NO_SEQUENCES, op_type) < 0


def test_recurrent_cells_of_no_steps_forget_the_state(run_graph):
    shapes = {"x": (0, 1, 1), "w": (1, 1, 1), "r": (1, 1, 1), "h": (1, 1, 1)}
    node = helper.make_node("RNN", ["x", "w", "r", "", "", "h"], ["y", "last"], hidden_size=1)
    inputs = {name: np.ones(shape, "float32") for name, shape in shapes.items()}
    _, last = run_graph([node], inputs, ["y", "last"])
    assert last.item() == 0


def test_max_pools_in_ceil_mode_have_other_sizes_than_inferred():
    window = {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}
    graph = helper.make_graph(
        [helper.make_node("MaxPool", ["x"], ["y"], **window)],
        "pool",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = InferenceSession(model.SerializeToString())
    (result,) = session.run(None, {"x": np.zeros((1, 1, 4, 4), "float32")})
    assert session.get_outputs()[0].shape == [1, 1, 3, 3]
    assert result.shape == (1, 1, 2, 2)
