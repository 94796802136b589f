"""Properties and equal sizes in the entries of operators hold for the runtime."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper
from pytensor.ifelse import ifelse

from pytensor_onnx import export_onnx, nn
from pytensor_onnx.graph.bounds import Bounds
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.entries import ELEMENTWISE, OPERATORS, equal_sizes
from pytensor_onnx.operators.inference import signature
from tests.graph.conftest import run

HOLDS = {
    "numbers": lambda x: ~np.isnan(x),
    "finite": np.isfinite,
    "sign": lambda x: ~(x < 0),
}
NUMBERS = np.array(
    [0, -0.0, 0.5, 1, -1, 7, -7, 1e20, -1e20, np.inf, -np.inf, np.nan], dtype="float32"
)
PROPERTIES = [
    (fact, op_type)
    for fact in HOLDS
    for op_type, entry in OPERATORS.items()
    if getattr(entry, fact) is not None and (op_type in ELEMENTWISE or op_type[:6] == "Reduce")
]


@pytest.mark.few(13)
@pytest.mark.parametrize(("fact", "op_type"), PROPERTIES)
def test_results_have_the_properties_of_operands(fact, op_type):
    build = Builder(ModelScope(21))
    types, entry = signature(op_type, 21), OPERATORS[op_type]
    count = 1 if op_type.startswith("Reduce") else max(types.required, 1 + types.variadic)
    operands = [NUMBERS] * count
    for i in range(count)[getattr(entry, fact)]:
        operands[i] = NUMBERS[HOLDS[fact](NUMBERS)]
    grids = list(np.meshgrid(*operands, indexing="ij"))
    if op_type == "Where":
        grids[0] = grids[0] > 0
    xs = [
        ir.val(f"x{i}", dtype=ir.DataType.from_numpy(grid.dtype), shape=grid.shape)
        for i, grid in enumerate(grids)
    ]
    y = build.op(op_type, *xs, **({"to": ir.DataType.FLOAT16} if op_type == "Cast" else {}))
    (result,) = run(build, xs, [y], **{x.name: grid for x, grid in zip(xs, grids, strict=True)})
    assert HOLDS[fact](result).all()


@pytest.mark.parametrize(
    "emit",
    [
        lambda build, x: build.Compress(x, np.array([True, False])),
        lambda build, x: build.ReverseSequence(x, build.ints([1, 2])),
        lambda build, x: build.Split(x, num_outputs=2, outputs=2)[1],
        lambda build, x: build.Where(np.array(True), x, build.ints([2])),
    ],
)
def test_moved_integers_have_the_bounds_of_the_operands(emit):
    build = Builder(ModelScope(21))
    flags = ir.val("x", dtype=ir.DataType.BOOL, shape=(2, 2))
    assert Bounds().of(emit(build, build.cast(flags, "int64"))) in ((0, 1), (0, 2))


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RECURRENT = [(5, 2, 3), (1, 16, 3), (1, 16, 4), (1, 32), None, (1, 2, 4), (1, 2, 4)]
CASES = {
    "MatMul": ([(2, 3), (3, 4)], {}),
    "Gemm": ([(3, 2), (4, 3)], {"transA": 1, "transB": 1}),
    "Conv": ([(2, 6, 5, 5), (4, 3, 3, 3), (4,)], {"group": 2}),
    "ConvTranspose": ([(2, 6, 5, 5), (6, 2, 3, 3), (4,)], {"group": 2}),
    "Concat": ([(2, 3, 4), (2, 5, 4), (2, 1, 4)], {"axis": 1}),
    "BatchNormalization": ([(2, 3, 4), (3,), (3,), (3,), (3,)], {}),
    "InstanceNormalization": ([(2, 3, 4), (3,), (3,)], {}),
    "GroupNormalization": ([(2, 6, 4), (6,), (6,)], {"num_groups": 2}),
    "LSTM": (RECURRENT, {"hidden_size": 4}),
    "ScatterElements": ([(3, 4), (2, 3), (2, 3)], {}),
    "ScatterND": ([(3, 4, 5), (2, 3, 1), (2, 3, 4, 5)], {}),
    "GatherND": ([(2, 3, 4), (2, 5, 1)], {"batch_dims": 1}),
    "NonMaxSuppression": ([(2, 3, 4), (2, 1, 3)], {}),
}


def session_of(op_type, shapes, attributes):
    names = ["" if shape is None else f"x{i}" for i, shape in enumerate(shapes)]
    types = [INT64 if is_index(op_type, i) else FLOAT for i in range(len(shapes))]
    inputs = [
        helper.make_tensor_value_info(name, dtype, [None] * len(shape))
        for name, dtype, shape in zip(names, types, shapes, strict=True)
        if shape is not None
    ]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    output = INT64 if op_type == "NonMaxSuppression" else FLOAT
    graph = helper.make_graph(
        [node], "graph", inputs, [helper.make_tensor_value_info("y", output, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def is_index(op_type, position):
    return op_type in ("ScatterElements", "ScatterND", "GatherND") and position == 1


def feed_of(op_type, shapes):
    return {
        f"x{i}": np.zeros(shape, "int64" if is_index(op_type, i) else "float32")
        for i, shape in enumerate(shapes)
        if shape is not None
    }


@pytest.mark.parametrize("op_type", CASES)
def test_operators_refuse_other_sizes_than_those_of_the_table(op_type):
    shapes, attributes = CASES[op_type]
    values = [s and ir.val(f"x{i}", shape=s) for i, s in enumerate(shapes)]
    pairs = list(equal_sizes(op_type, values, attributes))
    assert pairs
    assert all(first == second for first, second in pairs)
    session = session_of(op_type, shapes, attributes)
    session.run(None, feed_of(op_type, shapes))
    named = [
        s and ir.val(f"x{i}", shape=[f"{i}.{axis}" for axis in range(len(s))])
        for i, s in enumerate(shapes)
    ]
    if op_type == "ScatterND":
        named[1].shape = ir.Shape(["1.0", "1.1", 1])
    pairs = equal_sizes(op_type, named, attributes)
    for name in {str(dim).split("*")[-1] for pair in pairs for dim in pair if "." in str(dim)}:
        position, axis = map(int, name.split("."))
        other = [s and list(s) for s in shapes]
        other[position][axis] += attributes.get("group", attributes.get("num_groups", 1))
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            session.run(None, feed_of(op_type, other))


IMAGES, SEQUENCES = pt.ftensor4("x"), pt.ftensor3("x")
ROWS, MATRIX, VECTOR = pt.fmatrix("x"), pt.fmatrix("y"), pt.fvector("z")
NUMBERS = np.random.default_rng(0).normal(size=(6, 6, 3, 3)).astype("float32")


def input_dims(inputs, outputs, **options):
    program = export_onnx(inputs, outputs, **options)
    assert "equal to PyTensor" in str(program.verification)
    return [tuple(map(str, value.shape)) for value in program.inputs]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("inputs", "output", "expected"),
    [
        ([IMAGES], nn.conv2d(IMAGES, NUMBERS[:2, :4]), [("x_dim0", "4", "x_dim2", "x_dim3")]),
        (
            [IMAGES],
            nn.conv2d(IMAGES, NUMBERS[:4, :2], groups=2),
            [("x_dim0", "4", "x_dim2", "x_dim3")],
        ),
        ([ROWS], ROWS @ NUMBERS[:, :, 0, 0], [("x_dim0", "6")]),
        (
            [ROWS, MATRIX],
            pt.concatenate([ROWS, MATRIX], axis=1),
            [("x_dim0", "x_dim1"), ("x_dim0", "y_dim1")],
        ),
        (
            [ROWS, VECTOR],
            pt.linalg.solve(ROWS @ ROWS.T, VECTOR, assume_a="pos"),
            [("x_dim0", "x_dim1"), ("z_dim0",)],
        ),
        ([ROWS], list(pt.linalg.lu(ROWS)), [("x_dim0", "x_dim0")]),
    ],
)
def test_inputs_take_the_sizes_that_operators_need(inputs, output, expected):
    assert input_dims(inputs, output) == expected


def test_sizes_that_only_a_branch_needs_stay_open():
    use = pt.bscalar("use")
    filtered = nn.conv2d(IMAGES, NUMBERS[:2, :4]).sum()
    y = ifelse(use, filtered, IMAGES.sum())
    program = export_onnx([use, IMAGES], y, verify=False)
    assert str(program.inputs[1].shape[1]) == "x_dim1"
    np.testing.assert_allclose(program(0, np.ones((1, 3, 2, 2), "float32")), 12)
