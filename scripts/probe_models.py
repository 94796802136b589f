"""The tiny models that a runtime is probed with, made from the cases."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper
from probe_cases import (
    ELEMENTWISE_AND_REDUCTIONS,
    LINEAR_ALGEBRA_AND_NETWORKS,
    MATRIX,
    SHAPES_AND_INDICES,
    Case,
    Main,
    ints,
)

from pytensor_onnx.targets.kernel_tables import allowed_dtypes, main_type

FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)
SIGNED = (ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64)
UNSIGNED = (ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64)
DTYPES = (*FLOATS, *SIGNED, *UNSIGNED, ir.DataType.BOOL)
IR_VERSION = 10
CASES = ELEMENTWISE_AND_REDUCTIONS + SHAPES_AND_INDICES + LINEAR_ALGEBRA_AND_NETWORKS


@dataclass(frozen=True)
class Trial:
    """One model with its inputs, and the row, dtype and opset it speaks for."""

    key: str
    dtype: ir.DataType
    opset: int
    model: bytes
    inputs: dict[str, np.ndarray]


@dataclass
class Graph:
    """The parts of a model under construction."""

    inputs: dict[str, np.ndarray]
    nodes: list[onnx.NodeProto]
    outputs: list[str]


def trials(opsets: range) -> Iterator[Trial]:
    """Yield every trial, in a fixed order."""
    for opset in opsets:
        for dtype in DTYPES:
            for case in CASES:
                if dtype in allowed_dtypes(case.op_type, opset):
                    yield _trial(case.key, dtype, opset, _call(case, dtype, opset))
            for op_type, build in STRUCTURED.items():
                if dtype in allowed_dtypes(op_type, opset):
                    yield _trial(op_type, dtype, opset, build(dtype, opset))


def _trial(key: str, dtype: ir.DataType, opset: int, graph: Graph) -> Trial:
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "probe",
            [_typed(name, array) for name, array in graph.inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in graph.outputs],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=IR_VERSION,
    )
    typed = onnx.shape_inference.infer_shapes(model)
    return Trial(key, dtype, opset, typed.SerializeToString(), graph.inputs)


def _call(case: Case, dtype: ir.DataType, opset: int) -> Graph:
    schema = onnx.defs.get_schema(case.op_type, opset)
    main = main_type(case.op_type, opset)
    names, inputs = [], {}
    for index, operand in enumerate(case.operands):
        names.append(f"x{index}" if operand is not None else "")
        if isinstance(operand, Main):
            variable = schema.inputs[min(index, len(schema.inputs) - 1)].type_str
            allowed = allowed_dtypes(case.op_type, opset, variable)
            chosen = dtype if variable == main else _nearest(dtype, allowed)
            inputs[names[-1]] = operand.values.astype(chosen.numpy())
        elif operand is not None:
            inputs[names[-1]] = operand
    attributes = {k: v(dtype) if callable(v) else v for k, v in case.attributes.items()}
    outputs = [f"y{index}" for index in range(case.outputs)]
    node = helper.make_node(case.op_type, names, outputs, **attributes)
    return Graph(inputs, [node], outputs)


def _nearest(dtype: ir.DataType, allowed: frozenset[ir.DataType]) -> ir.DataType:
    choices = (dtype, ir.DataType.FLOAT, ir.DataType.INT64)
    return next(choice for choice in choices if choice in allowed)


def _typed(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
    )


def _matrix(dtype: ir.DataType) -> dict[str, np.ndarray]:
    return {"x": MATRIX.values.astype(dtype.numpy())}


def _casts(op_type: str, *, same_width: bool) -> Callable[[ir.DataType, int], Graph]:
    def build(dtype: ir.DataType, opset: int) -> Graph:
        targets = [t for t in DTYPES if not same_width or t.bitwidth == dtype.bitwidth]
        if same_width and dtype != ir.DataType.BOOL:
            targets = [t for t in targets if t != ir.DataType.BOOL]
        outputs = [f"y{index}" for index in range(len(targets))]
        nodes = [
            helper.make_node(op_type, ["x"], [name], to=int(target))
            for name, target in zip(outputs, targets, strict=True)
        ]
        return Graph(_matrix(dtype), nodes, outputs)

    return build


def _cast_like(dtype: ir.DataType, opset: int) -> Graph:
    graph = Graph(_matrix(dtype), [], [])
    for index, target in enumerate(DTYPES):
        graph.inputs[f"like{index}"] = np.ones(1, target.numpy())
        graph.outputs.append(f"y{index}")
        graph.nodes.append(helper.make_node("CastLike", ["x", f"like{index}"], [f"y{index}"]))
    return graph


def _if(dtype: ir.DataType, opset: int) -> Graph:
    branches = {}
    for branch in ("then_branch", "else_branch"):
        result = helper.make_tensor_value_info(branch, dtype, (2, 3))
        body = [helper.make_node("Identity", ["x"], [branch])]
        branches[branch] = helper.make_graph(body, branch, [], [result])
    node = helper.make_node("If", ["condition"], ["y"], **branches)
    return Graph(_matrix(dtype) | {"condition": np.array(True)}, [node], ["y"])


def _loop(dtype: ir.DataType, opset: int) -> Graph:
    matrix = (2, 3)
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["goes_on"]),
            helper.make_node("Identity", ["state"], ["next"]),
            helper.make_node("Identity", ["state"], ["row"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", onnx.TensorProto.INT64, ()),
            helper.make_tensor_value_info("going", onnx.TensorProto.BOOL, ()),
            helper.make_tensor_value_info("state", dtype, matrix),
        ],
        [
            helper.make_tensor_value_info("goes_on", onnx.TensorProto.BOOL, ()),
            helper.make_tensor_value_info("next", dtype, matrix),
            helper.make_tensor_value_info("row", dtype, matrix),
        ],
    )
    node = helper.make_node("Loop", ["steps", "going_in", "x"], ["y", "rows"], body=body)
    inputs = {"steps": np.array(2), "going_in": np.array(True)} | _matrix(dtype)
    return Graph(inputs, [node], ["y", "rows"])


def _scan(dtype: ir.DataType, opset: int) -> Graph:
    names = ("state", "element", "next", "row")
    state, element, next_, row = (helper.make_tensor_value_info(n, dtype, (3,)) for n in names)
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["element"], ["next"]),
            helper.make_node("Identity", ["state"], ["row"]),
        ],
        "body",
        [state, element],
        [next_, row],
    )
    node = helper.make_node("Scan", ["initial", "x"], ["y", "rows"], body=body, num_scan_inputs=1)
    inputs = {"initial": np.ones(3, dtype.numpy())} | _matrix(dtype)
    return Graph(inputs, [node], ["y", "rows"])


def _chain(*calls: str, **attributes: str) -> Callable[[ir.DataType, int], Graph]:
    """Build a graph from calls written ``y = Op a b``, where x is a matrix and i is 0."""

    def build(dtype: ir.DataType, opset: int) -> Graph:
        values = {"dtype": int(dtype), "axis": 0}
        nodes = []
        for call in calls:
            result, operation = call.split(" = ")
            op_type, *operands = operation.split()
            names = [name for name in operands if name not in values]
            given = {name: values[name] for name in operands if name in values}
            nodes.append(helper.make_node(op_type, names, [result], **given))
        read = {name for node in nodes for name in node.input}
        inputs = {k: v for k, v in (_matrix(dtype) | {"i": ints(0)[0]}).items() if k in read}
        return Graph(inputs, nodes, ["y"])

    return build


STRUCTURED: dict[str, Callable[[ir.DataType, int], Graph]] = {
    "BitCast": _casts("BitCast", same_width=True),
    "Cast": _casts("Cast", same_width=False),
    "CastLike": _cast_like,
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceAt": _chain("s = SequenceConstruct x x", "y = SequenceAt s i"),
    "SequenceConstruct": _chain("s = SequenceConstruct x x", "y = SequenceAt s i"),
    "SequenceLength": _chain("s = SequenceConstruct x x", "y = SequenceLength s"),
    "SequenceErase": _chain(
        "s = SequenceConstruct x x", "t = SequenceErase s i", "y = SequenceAt t i"
    ),
    "SequenceEmpty": _chain("s = SequenceEmpty dtype", "y = SequenceLength s"),
    "SequenceInsert": _chain(
        "s = SequenceEmpty dtype", "t = SequenceInsert s x", "y = SequenceAt t i"
    ),
    "SplitToSequence": _chain("s = SplitToSequence x", "y = SequenceAt s i"),
    "ConcatFromSequence": _chain("s = SequenceConstruct x x", "y = ConcatFromSequence s axis"),
    "Optional": _chain("o = Optional x", "y = OptionalGetElement o"),
    "OptionalGetElement": _chain("o = Optional x", "y = OptionalGetElement o"),
    "OptionalHasElement": _chain("o = Optional x", "y = OptionalHasElement o"),
}
