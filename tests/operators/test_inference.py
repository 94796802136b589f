"""The types that are inferred for operators are those of ONNX's own inference."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import assume, given, settings, strategies as st

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.dims import broadcast, dims_of
from pytensor_onnx.operators.entries import OPERATORS, output_dims
from pytensor_onnx.targets.kernel_tables import allowed_dtypes

Draw = Callable[..., Any]
SIZES = st.sampled_from([0, 1, 2, 3, 5])
SHAPES = st.lists(SIZES, min_size=0, max_size=4).map(tuple)
NOT_SCALAR = st.lists(SIZES, min_size=1, max_size=4).map(tuple)
COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
BINARY = {
    *COMPARISONS,
    *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Mean"),
    *("Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Xor"),
}
ATTRIBUTES = {
    "BitCast": {"to": ir.DataType.INT64},
    "BitShift": {"direction": "LEFT"},
    "Cast": {"to": ir.DataType.INT8},
}


class Operand:
    """An input of the model: a shape, some of whose sizes may be hidden behind names."""

    def __init__(self, shape: tuple[int, ...], dtype: str | None = None) -> None:
        self.shape = shape
        self.dtype = dtype


def subset(draw: Draw, rank: int) -> list[int]:
    axes = draw(st.lists(st.sampled_from(range(rank)), unique=True)) if rank else []
    return [draw(st.sampled_from([axis, axis - rank])) for axis in axes]


def an_axis(draw: Draw, rank: int) -> int:
    return draw(st.integers(-rank, rank - 1))


def unary(draw: Draw) -> tuple[list, dict]:
    return [Operand(draw(SHAPES))], {}


def along_axis(draw: Draw) -> tuple[list, dict]:
    shape = draw(NOT_SCALAR)
    return [Operand(shape)], {"axis": an_axis(draw, len(shape))}


def broadcast_shapes(draw: Draw, count: int) -> list[tuple[int, ...]]:
    whole = draw(SHAPES)
    shapes = []
    for _ in range(count):
        rank = draw(st.integers(0, len(whole)))
        tail = whole[len(whole) - rank :]
        shapes.append(tuple(draw(st.sampled_from([1, size])) for size in tail))
    return shapes


def binary(draw: Draw) -> tuple[list, dict]:
    return [Operand(shape) for shape in broadcast_shapes(draw, 2)], {}


def where(draw: Draw) -> tuple[list, dict]:
    condition, x, y = broadcast_shapes(draw, 3)
    return [Operand(condition, "bool"), Operand(x), Operand(y)], {}


def clip(draw: Draw) -> tuple[list, dict]:
    return [Operand(draw(SHAPES)), Operand(()), Operand(())], {}


def transpose(draw: Draw) -> tuple[list, dict]:
    shape = draw(SHAPES)
    if draw(st.booleans()):
        return [Operand(shape)], {}
    return [Operand(shape)], {"perm": draw(st.permutations(range(len(shape))))}


def flatten(draw: Draw) -> tuple[list, dict]:
    shape = draw(NOT_SCALAR)
    attributes = st.integers(-len(shape), len(shape)).map(lambda axis: {"axis": axis})
    return [Operand(shape)], draw(st.one_of(st.just({}), attributes))


def unsqueeze(draw: Draw) -> tuple[list, dict]:
    shape = draw(SHAPES)
    rank = len(shape) + draw(st.integers(1, 2))
    axes = draw(st.permutations(range(rank)))[: rank - len(shape)]
    return [Operand(shape), np.array(axes) - draw(st.sampled_from([0, rank]))], {}


def squeeze(draw: Draw) -> tuple[list, dict]:
    shape = list(draw(NOT_SCALAR))
    axes = subset(draw, len(shape)) or [0]
    for axis in axes:
        shape[axis] = 1
    return [Operand(tuple(shape)), np.array(axes)], {}


def reduction(draw: Draw) -> tuple[list, dict]:
    shape = draw(SHAPES)
    operands: list = [Operand(shape)]
    axes = subset(draw, len(shape))
    if axes or draw(st.booleans()):
        operands.append(np.array(axes, "int64"))
    return operands, draw(
        st.sampled_from([{}, {"keepdims": 0}, {"keepdims": 1, "noop_with_empty_axes": 1}])
    )


def arg_reduction(draw: Draw) -> tuple[list, dict]:
    operands, attributes = along_axis(draw)
    return operands, attributes | draw(st.sampled_from([{}, {"keepdims": 0}]))


def matmul(draw: Draw) -> tuple[list, dict]:
    first, second = broadcast_shapes(draw, 2)
    n, k, m = (draw(SIZES) for _ in range(3))
    a, b = draw(st.sampled_from([((n, k), (k, m)), ((k,), (k, m)), ((n, k), (k,)), ((k,), (k,))]))
    return [
        Operand(first + a if len(a) == 2 else a),
        Operand(second + b if len(b) == 2 else b),
    ], {}


def gemm(draw: Draw) -> tuple[list, dict]:
    n, k, m = (draw(SIZES) for _ in range(3))
    flags = {name: draw(st.sampled_from([0, 1])) for name in ("transA", "transB")}
    first = (k, n) if flags["transA"] else (n, k)
    second = (m, k) if flags["transB"] else (k, m)
    return [Operand(first), Operand(second)], flags


def gather(draw: Draw) -> tuple[list, dict]:
    operands, attributes = along_axis(draw)
    return [*operands, Operand(draw(SHAPES), "int64")], attributes


def gather_elements(draw: Draw) -> tuple[list, dict]:
    operands, attributes = along_axis(draw)
    indices = tuple(draw(st.sampled_from([0, 1, 4])) for _ in operands[0].shape)
    return [*operands, Operand(indices, "int64")], attributes


def gather_nd(draw: Draw) -> tuple[list, dict]:
    shape, rows = draw(NOT_SCALAR), draw(SHAPES)
    return [Operand(shape), Operand((*rows, draw(st.integers(1, len(shape)))), "int64")], {}


def concat(draw: Draw) -> tuple[list, dict]:
    shape = draw(NOT_SCALAR)
    axis = an_axis(draw, len(shape))
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        part = list(shape)
        part[axis] = draw(SIZES)
        parts.append(Operand(tuple(part)))
    return parts, {"axis": axis}


def reshape(draw: Draw) -> tuple[list, dict]:
    shape = draw(st.lists(st.sampled_from([1, 2, 3]), max_size=4).map(tuple))
    target = list(draw(st.permutations(shape)))
    if target:
        choice = draw(st.sampled_from(["all", "open", "copied"]))
        position = draw(st.integers(0, len(target) - 1))
        if choice == "open":
            target[position] = -1
        if choice == "copied" and target[position] == shape[position]:
            target[position] = 0
    return [Operand(shape), np.array(target, "int64")], {}


def reshape_to_nothing(draw: Draw) -> tuple[list, dict]:
    return [Operand((0, 3)), np.array([5, 0])], {"allowzero": 1}


def constant_of_shape(draw: Draw) -> tuple[list, dict]:
    return [np.array(draw(SHAPES), "int64")], {}


def expand(draw: Draw) -> tuple[list, dict]:
    shape, target = broadcast_shapes(draw, 2)
    return [Operand(shape), np.array(target, "int64")], {}


def shape_of(draw: Draw) -> tuple[list, dict]:
    limits = [{}, {"start": 1}, {"end": -1}, {"start": -2, "end": 3}]
    return [Operand(draw(SHAPES))], draw(st.sampled_from(limits))


def number_range(draw: Draw) -> tuple[list, dict]:
    ends = draw(st.sampled_from([(0, 5, 1), (2, 9, 3), (5, 0, -2), (3, 3, 1), (4, 1, 1)]))
    return [np.array(end) for end in ends], {}


def sliced(draw: Draw) -> tuple[list, dict]:
    shape = draw(NOT_SCALAR)
    axes = draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
    bound = st.sampled_from([0, 1, 2, 4, -1, -2, -7, 9, 2**63 - 1, -(2**63)])
    starts, stops = ([draw(bound) for _ in axes] for _ in range(2))
    steps = [draw(st.sampled_from([1, 2, -1, -3])) for _ in axes]
    arrays = [np.array(values, "int64") for values in (starts, stops, axes, steps)]
    return [Operand(shape), *arrays], {}


def padded(draw: Draw) -> tuple[list, dict]:
    shape = draw(NOT_SCALAR)
    return [Operand(shape), np.array([draw(st.integers(0, 2)) for _ in shape * 2], "int64")], {}


def tiled(draw: Draw) -> tuple[list, dict]:
    shape = draw(NOT_SCALAR)
    return [Operand(shape), np.array([draw(st.integers(0, 2)) for _ in shape], "int64")], {}


def top_k(draw: Draw) -> tuple[list, dict]:
    shape = tuple(max(size, 2) for size in draw(NOT_SCALAR))
    return [Operand(shape), np.array([2])], {"axis": an_axis(draw, len(shape))}


def cumulative(draw: Draw) -> tuple[list, dict]:
    return [Operand(draw(NOT_SCALAR)), np.array(0)], {}


def matrix(draw: Draw) -> tuple[list, dict]:
    return [Operand((draw(SIZES), draw(SIZES)))], {}


def scatter_nd(draw: Draw) -> tuple[list, dict]:
    n, m, k = (draw(SIZES) for _ in range(3))
    return [Operand((n, m)), Operand((k, 1), "int64"), Operand((k, m))], {}


def scatter_elements(draw: Draw) -> tuple[list, dict]:
    n, m = draw(SIZES), draw(SIZES)
    return [Operand((n, m)), Operand((n, m), "int64"), Operand((n, m))], {"axis": 1}


def reverse_sequence(draw: Draw) -> tuple[list, dict]:
    n, m = draw(SIZES), draw(SIZES)
    return [Operand((n, m)), Operand((m,), "int64")], {}


def layer_norm(draw: Draw) -> tuple[list, dict]:
    n, m = draw(SIZES), draw(SIZES)
    return [Operand((n, m)), Operand((m,))], {}


def rotation(draw: Draw) -> tuple[list, dict]:
    batch, heads, length = draw(SIZES), draw(SIZES), draw(SIZES)
    tables = [Operand((batch, length, 2), "float32")] * 2
    return [Operand((batch, heads, length, 4), "float32"), *tables], {}


def window(draw: Draw, rank: int) -> tuple[tuple[int, ...], dict]:
    """Images of a rank and windows that fit into them."""
    kernel = [draw(st.integers(1, 2)) for _ in range(rank)]
    attributes = {
        "strides": [draw(st.integers(1, 3)) for _ in range(rank)],
        "pads": [draw(st.integers(0, size - 1)) for size in kernel * 2],
    }
    if draw(st.booleans()):
        attributes["dilations"] = [1] * (rank - 1) + [2]
    return (*(draw(st.sampled_from([1, 2])) for _ in range(2)), *[5] * rank), {
        "kernel_shape": kernel,
        **attributes,
    }


def pool(draw: Draw) -> tuple[list, dict]:
    shape, attributes = window(draw, draw(st.integers(1, 2)))
    return [Operand(shape, "float32")], attributes


def convolution(draw: Draw) -> tuple[list, dict]:
    shape, attributes = window(draw, draw(st.integers(1, 2)))
    filters = (draw(st.integers(1, 3)), shape[1], *attributes["kernel_shape"])
    if draw(st.booleans()):
        del attributes["kernel_shape"]
    return [Operand(shape, "float32"), Operand(filters, "float32")], attributes


def global_pool(draw: Draw) -> tuple[list, dict]:
    return [Operand(window(draw, 2)[0], "float32")], {}


def resize(draw: Draw) -> tuple[list, dict]:
    shape, _ = window(draw, 2)
    if draw(st.booleans()):
        scales = np.array([1, 1, 2, draw(st.sampled_from([1, 1.5, 0.4]))], "float32")
        return [Operand(shape, "float32"), None, scales], {}
    return [Operand(shape, "float32"), None, None, np.array([*shape[:2], 7, 3])], {}


def transposed_convolution(draw: Draw) -> tuple[list, dict]:
    shape, attributes = window(draw, draw(st.integers(1, 2)))
    filters = (shape[1], draw(st.integers(1, 3)), *attributes["kernel_shape"])
    return [Operand(shape, "float32"), Operand(filters, "float32")], attributes


def normalisation(channels: int) -> Callable[[Draw], tuple[list, dict]]:
    """Return a strategy of images and operands with a number for each channel."""

    def operands(draw: Draw) -> tuple[list, dict]:
        shape, _ = window(draw, 2)
        return [Operand(shape, "float32"), *[Operand(shape[1:2], "float32")] * channels], {}

    return operands


STRATEGIES: dict[str, Callable[[Draw], tuple[list, dict]]] = {
    "Where": where,
    "Clip": clip,
    "Transpose": transpose,
    "Flatten": flatten,
    "Unsqueeze": unsqueeze,
    "Squeeze": squeeze,
    "ArgMax": arg_reduction,
    "ArgMin": arg_reduction,
    "MatMul": matmul,
    "Gemm": gemm,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Concat": concat,
    "Reshape": lambda draw: draw(st.sampled_from([reshape] * 5 + [reshape_to_nothing]))(draw),
    "ConstantOfShape": constant_of_shape,
    "Range": number_range,
    "Expand": expand,
    "Shape": shape_of,
    "Slice": sliced,
    "Pad": padded,
    "Tile": tiled,
    "TopK": top_k,
    "Softmax": along_axis,
    "LogSoftmax": along_axis,
    "CumSum": cumulative,
    "CumProd": cumulative,
    "Trilu": matrix,
    "EyeLike": matrix,
    "ScatterND": scatter_nd,
    "ScatterElements": scatter_elements,
    "ReverseSequence": reverse_sequence,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_norm),
    "RotaryEmbedding": rotation,
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "Resize": resize,
    "BatchNormalization": normalisation(4),
    "InstanceNormalization": normalisation(2),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), global_pool),
    **dict.fromkeys(BINARY, binary),
    **dict.fromkeys([op for op in OPERATORS if op.startswith("Reduce")], reduction),
}


FIRST_OPSETS = {
    **dict.fromkeys(("BitCast", "CumProd"), 26),
    **dict.fromkeys(("RMSNormalization", "RotaryEmbedding"), 23),
    "Swish": 24,
}


def dtype_for(op_type: str, opset: int) -> str:
    allowed = allowed_dtypes(op_type, opset)
    wanted = ("float64", "uint32", "int64", "bool", "float32")
    return next(d for d in wanted if ir.DataType.from_numpy(np.dtype(d)) in allowed)


def built(op_type: str, operands: list, attributes: dict, hidden: set[int]) -> Builder:
    """Emit one operator; a size among the hidden ones goes by a name."""
    opset = FIRST_OPSETS.get(op_type, 21)
    onnx_ = Builder(ModelScope(opset))
    values = []
    for i, operand in enumerate(operands):
        if operand is None or isinstance(operand, np.ndarray):
            values.append(None if operand is None else onnx_.constant(operand))
            continue
        dtype = ir.DataType.from_numpy(np.dtype(operand.dtype or dtype_for(op_type, opset)))
        dims = [f"n{size}" if size in hidden else size for size in operand.shape]
        values.append(ir.val(f"x{i}", dtype=dtype, shape=dims))
    result = onnx_.op(
        op_type,
        *values,
        outputs=2 if op_type == "TopK" else 1,
        **attributes,
        **ATTRIBUTES.get(op_type, {}),
    )
    onnx_.result = result[0] if isinstance(result, list) else result
    return onnx_


def reference_type(onnx_: Builder) -> tuple[int, list[int | str | None] | None]:
    """Return what ONNX's own inference says of the one node of a builder."""
    nodes = onnx_.nodes
    name_values(nodes, onnx_.scope.names)
    given = [v for v in nodes[0].inputs if v is not None and v.const_value is None]
    inputs = list(dict.fromkeys(given))
    graph = ir.Graph(
        inputs,
        [],
        nodes=nodes,
        initializers=list(onnx_.scope.initializers.values()),
        opset_imports={"": onnx_.scope.opset_version},
        name="g",
    )
    proto = ir.to_proto(ir.Model(graph, ir_version=10))
    del proto.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    (info,) = [v for v in inferred.graph.value_info if v.name == onnx_.result.name]
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return tensor.elem_type, None
    dims = [
        d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim
    ]
    return tensor.elem_type, dims


# ONNX's own inference says nothing of group normalisation.
SHAPED = {name for name, entry in OPERATORS.items() if entry.shape} - {"GroupNormalization"}


@pytest.mark.parametrize("op_type", sorted(SHAPED))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
@pytest.mark.few(7)
def test_inferred_types_are_those_of_onnx(op_type, data):
    operands, attributes = STRATEGIES.get(op_type, unary)(data.draw)
    hidden = data.draw(st.sampled_from([set(), {2}, {2, 3}, {0, 2, 3, 5}]))
    if op_type == "Squeeze":
        hidden -= {1}
    onnx_ = built(op_type, operands, attributes, hidden)
    assume(onnx_.nodes)  # a static shape is a constant
    found = dims_of(onnx_.result)
    dtype, expected = reference_type(onnx_)
    assert onnx_.result.dtype == dtype
    if expected is None:
        return
    assert found is not None
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        if isinstance(theirs, int) or theirs in {f"n{size}" for size in hidden}:
            assert ours == theirs


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("n",), ("n",), ("n",)),
        (("n",), (1,), ("n",)),
        (("n",), (3,), (3,)),
        (("n",), ("m",), (None,)),
        (("n",), (0,), (0,)),
        ((), ("n", 2), ("n", 2)),
        ((2, 1), (3,), (2, 3)),
        ((None,), (1,), (None,)),
        ((None,), ("n",), (None,)),
        ((None,), (4,), (4,)),
    ],
)
def test_broadcasting_keeps_known_dimensions(first, second, expected):
    assert broadcast(first, second) == expected
    assert broadcast(second, first) == expected


def test_operators_without_a_rule_have_no_shape():
    x = ir.val("x", dtype=ir.DataType.DOUBLE, shape=("n", "m"))
    assert output_dims("NonZero", [x], {}) is None


@pytest.mark.parametrize("batches", [((5, 1), ("n",)), (("n",), (5, 1))])
def test_batch_axes_of_both_factors_broadcast(batches):
    first, second = batches
    factors = [ir.val("a", shape=(*first, 2, 3)), ir.val("b", shape=(*second, 3, 4))]
    assert output_dims("MatMul", factors, {}) == (5, "n", 2, 4)


def test_a_slice_without_axes_cuts_the_first_axes():
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=(5, "n", 7))
    bounds = [
        ir.Value(name=name, const_value=ir.tensor([number]))
        for name, number in (("start", 1), ("stop", 4))
    ]
    assert output_dims("Slice", [x, *bounds], {}) == (3, "n", 7)
