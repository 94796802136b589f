"""The instructions of a tape that an ONNX node is, or the reason why it is none."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from pytensor_onnx import native
from pytensor_onnx.graph.traversal import DOMAINS, STANDARD_DOMAIN
from pytensor_onnx.kernels.graph_scope import Scope, attributes_of, bodies, covers

Operand = str | np.ndarray | None
"""A value by its name, or a constant."""

FLOATS = (TensorProto.DOUBLE, TensorProto.FLOAT)
DTYPES = {
    TensorProto.DOUBLE: "Float64",
    TensorProto.FLOAT: "Float32",
    TensorProto.INT64: "Int64",
    TensorProto.INT32: "Int32",
    TensorProto.UINT64: "Uint64",
    TensorProto.UINT32: "Uint32",
    TensorProto.UINT8: "Uint8",
    TensorProto.BOOL: "Bool",
}

FUNCTIONS = {
    f"{name}_{dtype}": f"{name}Function"
    for name in ("Sigmoid", "Softplus", "Log1p", "Expm1")
    for dtype in ("float64", "float32")
} | {f"{name}_float64": name for name in ("Sin", "Cos", "Tan")}
"""Model-local functions of one operand that are one instruction."""

DRAWS = {
    *("ThreefryUniform", "ThreefryNormal", "RandomBits", "StandardUniform", "OpenUniform"),
    *("StandardNormal", "NormalPairs"),
}
"""Functions with kernels that draw as many numbers as their second operand says."""

LAST = 2**63 - 1
PLACES = "/places"
"""End of the name of places that no node of the model uses."""


class NotCoveredError(Exception):
    """A node that the library does not run, with the reason."""


@dataclass
class Instruction:
    """An instruction of a tape.

    Attributes
    ----------
    operator
        Its name in the library.
    inputs, outputs
        Operands and results.
    attributes
        Integers that the library reads.
    sizes
        Positions of the operands whose values must be known from the sizes of inputs.
    bodies
        Graphs that it runs.
    """

    operator: str
    inputs: Sequence[Operand]
    outputs: Sequence[str]
    attributes: Sequence[int] = ()
    sizes: Sequence[int] = ()
    bodies: Sequence[onnx.GraphProto] = field(default_factory=list)


Lowering = Callable[[onnx.NodeProto, Scope, dict[str, Any]], list[Instruction]]
LOWERINGS: dict[str, Lowering] = {}


def instructions_of(node: onnx.NodeProto, scope: Scope) -> list[Instruction]:
    """Return the instructions of a node.

    Raises
    ------
    NotCoveredError
        If the library does not run it.
    """
    if node.domain in DOMAINS and node.op_type in FUNCTIONS:
        return _typed(FUNCTIONS[node.op_type], node.input, node.output, scope)
    if node.domain == STANDARD_DOMAIN and native.has_kernel(node.op_type):
        return [_call(node)]
    lower = LOWERINGS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if lower is None:
        raise NotCoveredError(f"{node.op_type} has no kernel")
    for name in node.output:
        if name and scope.dtype(name) not in DTYPES:
            raise NotCoveredError(f"{node.op_type} has a result of another type")
    return lower(node, scope, attributes_of(node))


def _call(node: onnx.NodeProto) -> Instruction:
    """Return the call of a function's kernel, whose name stands in the attributes."""
    name = node.op_type.encode()
    name += bytes(8 - len(name) % 8)
    words = np.frombuffer(name, "int64").tolist()
    sizes = [1] if node.op_type.partition("_")[0] in DRAWS else []
    return Instruction("Function", node.input, node.output, words, sizes)


def lowers(*operators: str) -> Callable[[Lowering], Lowering]:
    """Register a function for operators of ONNX."""

    def register(lower: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(operators, lower))
        return lower

    return register


def _typed(
    operator: str, inputs: Sequence[Operand], outputs: Sequence[str], scope: Scope, by: int = 0
) -> list[Instruction]:
    """Return an elementwise instruction if there is a kernel for the type of an operand."""
    given = inputs[by]
    dtype = scope.dtype(given) if isinstance(given, str) else 0
    if not covers(operator, dtype):
        raise NotCoveredError(f"{operator} has no kernel for this type")
    return [Instruction(operator, inputs, outputs)]


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise NotCoveredError(reason)


def _given(node: onnx.NodeProto, i: int) -> str | None:
    return node.input[i] if i < len(node.input) and node.input[i] else None


def _integers(*values: int) -> np.ndarray:
    return np.array(values, "int64")


@lowers(
    *("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Not", "Neg", "Abs", "Sign", "Reciprocal"),
    *("Relu", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh"),
    *("Tanh", "Floor", "Ceil", "Round", "IsNaN", "Less", "LessOrEqual", "Greater"),
    *("GreaterOrEqual", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"),
)
def _elementwise(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    return _typed(node.op_type, node.input, node.output, scope)


_NAMES = {"Asinh": "ArcSinh", "Acosh": "ArcCosh", "Atanh": "ArcTanh"}
"""Operators that are kernels of functions, with the names of these."""


@lowers(*_NAMES)
def _function(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    dtype = _constant(0.0, node.input[0], scope).dtype
    name = f"{_NAMES[node.op_type]}_{dtype}"
    return [_call(onnx.NodeProto(op_type=name, input=node.input, output=node.output))]


@lowers("Where")
def _where(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    return _typed("Where", node.input, node.output, scope, by=1)


@lowers("Cast")
def _cast(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    _require(attributes["to"] in DTYPES, "Cast to another type")
    if attributes["to"] == scope.dtype(node.input[0]):
        return [Instruction("Identity", node.input, node.output)]
    return _typed(f"CastTo{DTYPES[attributes['to']]}", node.input, node.output, scope)


@lowers("Pow")
def _pow(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    same = scope.dtype(node.input[0]) == scope.dtype(node.input[1])
    _require(same, "Pow of two types")
    return _typed("Pow", node.input, node.output, scope)


@lowers("Mod")
def _mod(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    operator = "Fmod" if attributes["fmod"] else "Mod"
    return _typed(operator, node.input, node.output, scope)


@lowers("IsInf")
def _is_inf(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    signs = attributes["detect_negative"], attributes["detect_positive"]
    operators = {(1, 1): "IsInf", (0, 1): "IsPositiveInf", (1, 0): "IsNegativeInf"}
    _require(signs in operators, "IsInf of no sign")
    return _typed(operators[signs], node.input, node.output, scope)


@lowers("BitShift")
def _bit_shift(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    operator = {"LEFT": "ShiftLeft", "RIGHT": "ShiftRight"}[attributes["direction"]]
    return _typed(operator, node.input, node.output, scope)


@lowers("Max", "Min", "Sum")
def _variadic(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    operator = "Add" if node.op_type == "Sum" else node.op_type
    if len(node.input) == 1:
        return [Instruction("Identity", node.input, node.output)]
    made, left = [], node.input[0]
    dtype = scope.dtype(left)
    _require(covers(operator, dtype), f"{node.op_type} has no kernel for this type")
    for i, right in enumerate(node.input[1:], 2):
        result = node.output[0] if i == len(node.input) else f"{node.output[0]}/{i}"
        made.append(Instruction(operator, [left, right], [result]))
        left = result
    return made


@lowers("Clip")
def _clip(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    bounds = [("AtLeast", _given(node, 1)), ("AtMost", _given(node, 2))]
    given = [(operator, bound) for operator, bound in bounds if bound]
    _require(covers("AtLeast", scope.dtype(node.input[0])), "Clip has no kernel for this type")
    if not given:
        return [Instruction("Identity", node.input[:1], node.output)]
    # The runtime bounds infinities of float32 on the other side too.
    is_float32 = scope.dtype(node.input[0]) == TensorProto.FLOAT
    _require(len(given) == 2 or not is_float32, "Clip of float32 on one side")
    between = f"{node.output[0]}/between"
    if len(given) == 1:
        return [Instruction(given[0][0], [node.input[0], given[0][1]], node.output)]
    return [
        Instruction("AtLeast", [node.input[0], given[0][1]], [between]),
        Instruction("AtMost", [between, given[1][1]], node.output),
    ]


@lowers("Identity", "Size")
def _plain(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    return [Instruction(node.op_type, node.input, node.output)]


@lowers("Shape")
def _shape(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    part = [attributes["start"], attributes.get("end", LAST)]
    return [Instruction("Shape", node.input, node.output, part)]


@lowers("Reshape")
def _reshape(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    zero = [attributes["allowzero"]]
    return [Instruction("Reshape", node.input, node.output, zero, sizes=[1])]


@lowers("Tile")
def _tile(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    shape = scope.shape(node.input[0])
    _require(shape is not None and len(shape) <= 4, "Tile of more than four axes")
    return [Instruction("Tile", node.input, node.output, sizes=[1])]


@lowers("Squeeze", "Unsqueeze", "Expand")
def _sized(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    _require(not attributes, "axes as attributes")
    return [Instruction(node.op_type, node.input, node.output, sizes=range(1, len(node.input)))]


@lowers("Slice")
def _slice(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    return _rows(node, scope) or [
        Instruction("Slice", node.input, node.output, sizes=range(1, len(node.input)))
    ]


def _rows(node: onnx.NodeProto, scope: Scope) -> list[Instruction]:
    """Return a slice of successive rows from a place that may depend on values, or nothing."""
    start, end = node.input[1:3]
    axes, steps = (scope.constant(x) if (x := _given(node, i)) else None for i in (3, 4))
    is_plain = axes is not None and axes.size == 1
    is_plain &= not _given(node, 4) or (steps is not None and steps.tolist() == [1])
    is_plain &= all(scope.dtype(x) == TensorProto.INT64 for x in (start, end))
    if not is_plain or all(scope.constant(x) is not None for x in (start, end)):
        return []
    assert axes is not None
    axis = int(axes.item())
    bits, length = _behind_shapes(start, scope), _length(start, end, scope)
    if length and _is_bit(bits, scope):
        # The words of a block of random bits, which has one more than are drawn.
        inputs: list[Operand] = [node.input[0], bits, length]
        return [Instruction("Window", inputs, node.output, [axis], sizes=[2])]
    size, first, rows = (f"{node.output[0]}/{x}" for x in ("size", "first", "rows"))
    part = [axis, axis + 1 if axis != -1 else LAST]
    return [
        Instruction("Shape", [node.input[0]], [size], part),
        Instruction("Bounds", [size, start, end], [first, rows]),
        Instruction("Window", [node.input[0], first, rows], node.output, [axis], sizes=[2]),
    ]


def _length(start: str, end: str, scope: Scope) -> str:
    """Return the value whose sum with the start of a slice is its end, nothing without one."""
    first, found = _behind_shapes(start, scope), scope.producer(_behind_shapes(end, scope))
    if found is None or found[0].op_type != "Add" or first not in found[0].input:
        return ""
    left, right = found[0].input
    return right if left == first else left


def _is_bit(name: str, scope: Scope) -> bool:
    """Return whether a number is zero or one, as the lowest bit of another is."""
    found = scope.producer(name)
    if found is None or found[0].op_type != "Cast" or scope.shape(name) not in ([], [1]):
        return False
    source = scope.producer(found[0].input[0])
    if source is None or source[0].op_type != "BitwiseAnd":
        return False
    constants = [scope.constant(x) for x in source[0].input]
    return any(x is not None and x.tolist() in (1, [1]) for x in constants)


def _behind_shapes(name: str, scope: Scope) -> str:
    """Return the value whose elements a value has in another shape."""
    found = scope.producer(name)
    while found and found[0].op_type in ("Identity", "Unsqueeze", "Squeeze", "Reshape"):
        name = found[0].input[0]
        found = scope.producer(name)
    return name


@lowers("Flatten")
def _flatten(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    return [Instruction("Flatten", node.input, node.output, [attributes["axis"]])]


@lowers("Transpose")
def _transpose(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    permutation = attributes.get("perm")
    if permutation is None:
        shape = scope.shape(node.input[0])
        _require(shape is not None, "Transpose of unknown rank")
        permutation = range(len(shape or ()) - 1, -1, -1)
    return [Instruction("Transpose", node.input, node.output, list(permutation))]


@lowers("Concat")
def _concat(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    return [Instruction("Concat", node.input, node.output, [attributes["axis"]])]


@lowers("Split")
def _split(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    _require(all(node.output), "Split without some results")
    _require(len(node.output) <= 64, "Split into more than 64 parts")
    axis = [attributes["axis"]]
    return [Instruction("Split", node.input, node.output, axis, sizes=range(1, len(node.input)))]


@lowers("ConstantOfShape")
def _constant_of_shape(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    value = attributes.get("value")
    number = onnx.numpy_helper.to_array(value) if value is not None else np.zeros(1, "float32")
    return [Instruction("ConstantOfShape", [node.input[0], number], node.output, sizes=[0])]


@lowers("Range")
def _range(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    _require(scope.dtype(node.input[0]) == TensorProto.INT64, "Range of another type")
    return [Instruction("Range", node.input, node.output, sizes=[0, 1, 2])]


@lowers("Pad")
def _pad(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    mode = ["constant", "edge", "reflect", "wrap"].index(attributes["mode"])
    dtype = onnx.helper.tensor_dtype_to_np_dtype(scope.dtype(node.input[0]))
    number: Operand = _given(node, 2) or np.zeros((), dtype)
    inputs = [node.input[0], node.input[1], number, _given(node, 3)]
    return [Instruction("Pad", inputs, node.output, [mode], sizes=[1, 3])]


@lowers("Trilu")
def _trilu(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    inputs = [node.input[0], _given(node, 1)]
    return [Instruction("Trilu", inputs, node.output, [attributes["upper"]], sizes=[1])]


@lowers("Gather", "GatherElements")
def _gather(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    return [Instruction(node.op_type, node.input, node.output, [attributes["axis"]])]


@lowers("GatherND")
def _gather_nd(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    _require(scope.dtype(node.input[1]) == TensorProto.INT64, "indices of another type")
    return [Instruction("GatherND", node.input, node.output, [attributes["batch_dims"]])]


@lowers("ScatterElements", "ScatterND")
def _scatter(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    reduction = attributes["reduction"]
    _require(reduction in ("none", "add"), "a Scatter that is not a sum")
    is_bool = scope.dtype(node.input[0]) == TensorProto.BOOL
    _require(not is_bool or reduction == "none", "a Scatter that adds truth values")
    axis = [attributes["axis"]] if node.op_type == "ScatterElements" else []
    return [Instruction(node.op_type, node.input, node.output, [*axis, reduction == "add"])]


_OF_FLOATS = [
    *("ReduceSum", "ReduceMean", "ReduceProd", "ReduceSumSquare"),
    *("ReduceL1", "ReduceL2", "ReduceLogSum"),
]
_ORDERED = {*FLOATS, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.BOOL}


@lowers(*_OF_FLOATS, "ReduceMax", "ReduceMin")
def _reduce(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    known = set(FLOATS) if node.op_type in _OF_FLOATS else _ORDERED
    _require(scope.dtype(node.input[0]) in known, f"{node.op_type} has no kernel for this type")
    axes: Operand = _given(node, 1)
    if "axes" in attributes:
        axes = _integers(*attributes["axes"])
    settings = [attributes["keepdims"], attributes["noop_with_empty_axes"]]
    return [Instruction(node.op_type, [node.input[0], axes], node.output, settings, sizes=[1])]


@lowers("ArgMax", "ArgMin")
def _arg(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    _require(scope.dtype(node.input[0]) in _ORDERED, f"{node.op_type} has no kernel for this type")
    settings = [attributes[name] for name in ("axis", "keepdims", "select_last_index")]
    return [Instruction(node.op_type, node.input, node.output, settings)]


@lowers("CumSum")
def _cum_sum(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    settings = [attributes["exclusive"], attributes["reverse"]]
    known = {*FLOATS, TensorProto.INT64, TensorProto.INT32}
    _require(scope.dtype(node.input[0]) in known, "CumSum has no kernel for this type")
    return [Instruction("CumSum", node.input, node.output, settings, sizes=[1])]


@lowers("TopK")
def _top_k(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    known = {*FLOATS, TensorProto.INT64, TensorProto.INT32}
    _require(scope.dtype(node.input[0]) in known, "TopK has no kernel for this type")
    settings = [attributes["axis"], attributes["largest"]]
    values, places = [*node.output, ""][:2]
    outputs = [values or f"{places}/values", places or f"{values}{PLACES}"]
    return [Instruction("TopK", node.input, outputs, settings, sizes=[1])]


@lowers("Softmax", "LogSoftmax")
def _softmax(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    _require(scope.dtype(node.input[0]) in FLOATS, "Softmax of another type")
    return [Instruction(node.op_type, node.input, node.output, [attributes["axis"]])]


_MULTIPLIED = {
    *FLOATS,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.UINT64,
    TensorProto.UINT32,
}


def _constant(number: float, name: str, scope: Scope) -> np.ndarray:
    """Return a number in the dtype of a value, which has to be one of floats."""
    dtype = scope.dtype(name)
    _require(dtype in FLOATS, "a layer of another type")
    return np.array(number, onnx.helper.tensor_dtype_to_np_dtype(dtype))


def _steps(node: onnx.NodeProto, *steps: tuple[str, Sequence[Operand]]) -> list[Instruction]:
    """Return instructions, in which ``"1"`` names the result of the first and so on."""
    names = {str(i): f"{node.output[0]}/{i}" for i in range(1, len(steps))}
    names[str(len(steps))] = node.output[0]
    made = []
    for i, (operator, operands) in enumerate(steps, 1):
        inputs = [names.get(x, x) if isinstance(x, str) else x for x in operands]
        made.append(Instruction(operator, inputs, [names[str(i)]]))
    return made


@lowers("Elu", "LeakyRelu", "PRelu")
def _bent(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    x, is_elu = node.input[0], node.op_type == "Elu"
    is_given = node.op_type == "PRelu"
    alpha = node.input[1] if is_given else _constant(attributes["alpha"], x, scope)
    return _steps(
        node,
        ("Expm1Function" if is_elu else "Identity", [x]),
        ("Mul", ["1", alpha]),
        ("Less", [x, _constant(0.0, x, scope)]),
        ("Where", ["3", "2", x]),
    )


@lowers("Gelu")
def _gelu(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    x = node.input[0]
    half, one = _constant(0.5, x, scope), _constant(1.0, x, scope)
    if attributes["approximate"] == "tanh":
        cubic, slope = (_constant(c, x, scope) for c in (0.044715, np.sqrt(2 / np.pi)))
        inner: list[tuple[str, list[Operand]]]
        outer: list[tuple[str, list[Operand]]]
        inner = [("Mul", [x, x]), ("Mul", ["1", x]), ("Mul", ["2", cubic]), ("Add", [x, "3"])]
        outer = [("Mul", ["4", slope]), ("Tanh", ["5"]), ("Add", ["6", one]), ("Mul", [x, half])]
        return _steps(node, *inner, *outer, ("Mul", ["7", "8"]))
    scaled = f"{node.output[0]}/scaled"
    root = _constant(np.sqrt(0.5), x, scope)
    erf = onnx.NodeProto(op_type=f"Erf_{half.dtype}", input=[scaled], output=["erf"])
    erf.output[0] = f"{node.output[0]}/erf"
    return [
        Instruction("Mul", [x, root], [scaled]),
        _call(erf),
        *_steps(node, ("Add", [erf.output[0], one]), ("Mul", [x, half]), ("Mul", ["1", "2"])),
    ]


@lowers("LayerNormalization")
def _layer_normalization(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    x, scale, shift = node.input[0], node.input[1], _given(node, 2)
    shape = scope.shape(x)
    _require(shape is not None and len(node.output) == 1, "LayerNormalization of unknown rank")
    rank = len(shape or ())
    axes = np.arange(attributes["axis"] % rank, rank)
    epsilon = _constant(attributes["epsilon"], x, scope)
    made = _steps(
        node,
        ("ReduceMean", [x, axes]),
        ("Sub", [x, "1"]),
        ("Mul", ["2", "2"]),
        ("ReduceMean", ["3", axes]),
        ("Add", ["4", epsilon]),
        ("Sqrt", ["5"]),
        ("Div", ["2", "6"]),
        ("Mul", ["7", scale]),
        *([("Add", ["8", shift])] if shift else []),
    )
    for mean in (made[0], made[3]):
        mean.attributes, mean.sizes = [1, 0], [1]
    return made


@lowers("MatMul")
def _mat_mul(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    _require(scope.dtype(node.input[0]) in _MULTIPLIED, "MatMul has no kernel for this type")
    return [Instruction("MatMul", node.input, node.output)]


@lowers("Gemm")
def _gemm(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    _require(scope.dtype(node.input[0]) in FLOATS, "Gemm has no kernel for this type")
    transposed = [attributes["transA"], attributes["transB"]]
    scales = [_bits(attributes["alpha"]), _bits(attributes["beta"])]
    inputs = [*node.input[:2], _given(node, 2)]
    return [Instruction("Gemm", inputs, node.output, transposed + scales)]


def _bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


@lowers("If")
def _if(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    branches = [attributes["then_branch"], attributes["else_branch"]]
    return [Instruction("If", node.input, node.output, bodies=branches)]


@lowers("Scan")
def _scan(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    arrays = attributes["num_scan_inputs"]
    states = len(node.input) - arrays
    results = len(node.output) - states
    axes = [*attributes.get("scan_input_axes", []), *attributes.get("scan_output_axes", [])]
    _require(not any(axes), "a Scan along another axis")
    _require(all(node.output), "a Scan without some results")
    backward = [
        *attributes.get("scan_input_directions", [0] * arrays),
        *attributes.get("scan_output_directions", [0] * results),
    ]
    settings = [states, arrays, *backward]
    return [Instruction("Scan", node.input, node.output, settings, bodies=[attributes["body"]])]


@lowers("Loop")
def _loop(node: onnx.NodeProto, scope: Scope, attributes: dict) -> list[Instruction]:
    states, body = len(node.input) - 2, attributes["body"]
    _require(all(node.output), "a Loop without some results")
    sizes = [0] if len(node.output) > states else []
    inputs = [_given(node, 0), _given(node, 1), *node.input[2:]]
    return [Instruction("Loop", inputs, node.output, [states], sizes=sizes, bodies=[body])]


def partial_results(node: onnx.NodeProto, scope: Scope) -> list[str]:
    """Return the results that have a row for each step of a loop, if it may stop early."""
    if node.op_type != "Loop" or node.domain not in ("", "ai.onnx"):
        return []
    start = scope.constant(node.input[1]) if _given(node, 1) else True
    [body] = bodies(node)
    if start is not None and bool(start) and _never_stops(body, scope):
        return []
    return list(node.output[len(node.input) - 2 :])


def _never_stops(body: onnx.GraphProto, scope: Scope) -> bool:
    """Return whether the condition of a loop stays true."""
    inner, name = Scope(body, scope), body.output[0].name
    while name != body.input[1].name:
        constant, found = inner.constant(name), inner.producer(name)
        if constant is not None:
            return bool(constant)
        if found is None or found[0].op_type != "Identity":
            return False
        name = found[0].input[0]
    return True
