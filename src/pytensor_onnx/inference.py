"""Types of the values that ONNX operators return: dtypes from the schemas, shapes by short rules.

A dimension is an int, the name of a dimension whose size is known at run time, or None. Equal
names mean equal sizes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir

from pytensor_onnx import spatial_dims
from pytensor_onnx.dims import (
    Dim,
    Dims,
    broadcast,
    constant_ints,
    dims_of,
    product_dim,
    quotient_dim,
    sizes_in,
    slice_dim,
    sum_dim,
)

Operands = Sequence[ir.Value | None]
ShapeRule = Callable[[Operands, Mapping[str, Any]], Dims | None]

_INTEGERS = (ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64)
_WHOLE_AXIS = ((0, 2**63 - 1, 1), (2**63 - 1, -(2**63), -1))

_DTYPE_OF_SCHEMA_TYPE = {
    "tensor(float)": ir.DataType.FLOAT,
    "tensor(double)": ir.DataType.DOUBLE,
    "tensor(float16)": ir.DataType.FLOAT16,
    "tensor(bfloat16)": ir.DataType.BFLOAT16,
    "tensor(bool)": ir.DataType.BOOL,
    "tensor(string)": ir.DataType.STRING,
    "tensor(complex64)": ir.DataType.COMPLEX64,
    "tensor(complex128)": ir.DataType.COMPLEX128,
} | {
    f"tensor({kind}{bits})": ir.DataType[f"{kind.upper()}{bits}"]
    for kind in ("int", "uint")
    for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True)
class Signature:
    """What a schema says of the dtypes of an operator.

    ``inputs`` and ``outputs`` hold the name of a type variable or a dtype; the last input of a
    variadic operator stands for all that follow.
    """

    inputs: tuple[str | ir.DataType, ...]
    outputs: tuple[str | ir.DataType, ...]
    variadic: bool

    def input_type(self, position: int) -> str | ir.DataType:
        """Return the dtype or type variable of an input."""
        if position >= len(self.inputs):
            if not self.variadic:
                raise TypeError(f"the operator takes at most {len(self.inputs)} inputs")
            position = len(self.inputs) - 1
        return self.inputs[position]


@cache
def signature(op_type: str, opset_version: int) -> Signature:
    """Return the dtypes of a standard operator.

    Examples
    --------
    >>> signature("Gather", 21).inputs
    ('T', 'Tind')
    >>> signature("Shape", 21).outputs
    (INT64,)
    """
    schema = onnx.defs.get_schema(op_type, opset_version, "")
    single = {
        constraint.type_param_str: _DTYPE_OF_SCHEMA_TYPE.get(
            constraint.allowed_type_strs[0], constraint.type_param_str
        )
        for constraint in schema.type_constraints
        if len(constraint.allowed_type_strs) == 1
    }

    def resolve(parameter: Any) -> str | ir.DataType:
        return single.get(parameter.type_str) or type_of_text(parameter.type_str)

    variadic = bool(schema.inputs) and (
        schema.inputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    )
    return Signature(
        tuple(map(resolve, schema.inputs)), tuple(map(resolve, schema.outputs)), variadic
    )


def type_of_text(text: str) -> str | ir.DataType:
    """Return the dtype that a schema means by a plain type, or the name of a type variable.

    Examples
    --------
    >>> type_of_text("tensor(float)"), type_of_text("T")
    (FLOAT, 'T')
    """
    return _DTYPE_OF_SCHEMA_TYPE.get(text, text)


def bind_dtypes(
    types: Signature, inputs: Sequence[ir.Value | Any | None]
) -> dict[str | ir.DataType, ir.DataType]:
    """Return the dtype of each type variable that an input value determines."""
    bound: dict[str | ir.DataType, ir.DataType] = {}
    for position, value in enumerate(inputs):
        if isinstance(value, ir.Value) and value.dtype is not None:
            variable = types.input_type(position)
            if isinstance(variable, str):
                bound.setdefault(variable, value.dtype)
    return bound


def output_dtypes(
    op_type: str,
    types: Signature,
    bound: Mapping[str | ir.DataType, ir.DataType],
    attributes: Mapping[str, Any],
) -> list[ir.DataType | None]:
    """Return the dtype of each output that the schema declares; None where it is left open."""
    if op_type in ("Cast", "RandomNormalLike") and "to" in attributes:
        return [ir.DataType(attributes["to"])]
    if op_type == "ConstantOfShape":
        value = attributes.get("value")
        return [value.dtype if value is not None else ir.DataType.FLOAT]
    if op_type == "EyeLike":
        return [ir.DataType(attributes["dtype"]) if "dtype" in attributes else bound.get("T1")]
    return [out if isinstance(out, ir.DataType) else bound.get(out) for out in types.outputs]


def dtype_of(value: ir.Value | None) -> ir.DataType:
    """Return the dtype of a value, which must be known.

    Examples
    --------
    >>> dtype_of(ir.val("x", dtype=ir.DataType.FLOAT)).name
    'FLOAT'
    """
    if value is None or value.dtype is None:
        raise TypeError(f"the dtype of {value} is not known")
    return value.dtype


def _broadcast_all(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims: Dims = ()
    for value in inputs:
        if value is None:
            continue
        operand = dims_of(value)
        if operand is None:
            return None
        dims = broadcast(dims, operand)
    return dims


def _first(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    return dims_of(inputs[0])


def _transpose(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    perm = attributes.get("perm", range(len(dims))[::-1])
    return tuple(dims[i] for i in perm)


def _unsqueeze(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims, axes = dims_of(inputs[0]), constant_ints(inputs[1])
    if dims is None or axes is None:
        return None
    rank = len(dims) + len(axes)
    new = {axis % rank for axis in axes}
    rest = iter(dims)
    return tuple(1 if axis in new else next(rest) for axis in range(rank))


def _squeeze(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims = dims_of(inputs[0])
    axes = constant_ints(inputs[1] if len(inputs) > 1 else None)
    if dims is None or axes is None:
        return None
    gone = {axis % len(dims) for axis in axes}
    return tuple(d for axis, d in enumerate(dims) if axis not in gone)


def _reduce(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    axes = constant_ints(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else []
    if axes == [] and not attributes.get("noop_with_empty_axes"):
        axes = list(range(len(dims)))
    if axes is None:
        return None
    return _reduced(dims, axes, attributes.get("keepdims", 1))


def _arg_reduce(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    return _reduced(dims, [attributes.get("axis", 0)], attributes.get("keepdims", 1))


def _reduced(dims: Dims, axes: Sequence[int], keepdims: int) -> Dims:
    gone = {axis % len(dims) for axis in axes} if dims else set()
    if keepdims:
        return tuple(1 if axis in gone else d for axis, d in enumerate(dims))
    return tuple(d for axis, d in enumerate(dims) if axis not in gone)


def _matmul(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    a, b = dims_of(inputs[0]), dims_of(inputs[1])
    if not a or not b:
        return None
    batch = broadcast(a[:-2], b[:-2])
    return batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def _gather(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    data, indices = dims_of(inputs[0]), dims_of(inputs[1])
    if data is None or indices is None:
        return None
    axis = attributes.get("axis", 0) % len(data)
    return data[:axis] + indices + data[axis + 1 :]


def _gather_nd(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    data, indices = dims_of(inputs[0]), dims_of(inputs[1])
    if data is None or not indices or not isinstance(indices[-1], int):
        return None
    return indices[:-1] + data[attributes.get("batch_dims", 0) + indices[-1] :]


def _gather_elements(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    return dims_of(inputs[1])


def _concat(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    shapes = [dims_of(value) for value in inputs]
    if any(dims is None for dims in shapes):
        return None
    known = [dims for dims in shapes if dims is not None]
    axis = attributes["axis"] % len(known[0])
    size = sum_dim([dims[axis] for dims in known])
    return tuple(
        size if i == axis else next((s[i] for s in known if isinstance(s[i], int)), d)
        for i, d in enumerate(known[0])
    )


def _constant_of_shape(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    sizes = sizes_in(inputs[0])
    return None if sizes is None else tuple(map(_size_or_unknown, sizes))


def _size_or_unknown(size: Dim) -> Dim:
    return None if isinstance(size, int) and size < 0 else size


def _reshape(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    sizes, dims = sizes_in(inputs[1]), dims_of(inputs[0])
    if sizes is None:
        return None
    if not attributes.get("allowzero"):
        copied = (*(dims or ()), *[None] * len(sizes))
        sizes = tuple(copied[i] if size == 0 else size for i, size in enumerate(sizes))
    if -1 in sizes and dims is not None:
        rest = [size for size in sizes if size != -1]
        sizes = tuple(quotient_dim(dims, rest) if size == -1 else size for size in sizes)
    return tuple(map(_size_or_unknown, sizes))


def _expand(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims, sizes = dims_of(inputs[0]), sizes_in(inputs[1])
    return None if dims is None or sizes is None else broadcast(dims, sizes)


def _range(inputs: Operands, attributes: Mapping[str, Any]) -> Dims:
    if constant_ints(inputs[0]) == [0] and constant_ints(inputs[2]) == [1]:
        sizes = sizes_in(inputs[1])
        return (None,) if sizes is None else tuple(map(_size_or_unknown, sizes))
    ends = [constant_ints(value) for value in inputs]
    if inputs[0] is None or inputs[0].dtype not in _INTEGERS or None in ends:
        return (None,)
    return (len(range(*(end[0] for end in ends if end))),)


def _slice(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    axes = constant_ints(inputs[3]) if len(inputs) > 3 else list(range(len(dims)))
    if axes is None:
        return (None,) * len(dims)
    starts, stops = constant_ints(inputs[1]), constant_ints(inputs[2])
    steps = constant_ints(inputs[4]) if len(inputs) > 4 else [1] * len(axes)
    result = list(dims)
    for i, axis in enumerate(axes):
        size = dims[axis]
        result[axis] = None
        if not (starts and stops and steps):
            continue
        if (starts[i], stops[i], steps[i]) in _WHOLE_AXIS:
            result[axis] = size
        elif isinstance(size, int):
            to_the_front = steps[i] < 0 and stops[i] < -size
            # A start before the first element is the first one, also on the way to the front.
            start = max(starts[i], -size)
            taken = slice(start, None if to_the_front else stops[i], steps[i])
            result[axis] = len(range(size)[taken])
        elif size is not None:
            result[axis] = slice_dim(size, starts[i], stops[i], steps[i])
    return tuple(result)


def _shape(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims = dims_of(inputs[0])
    if dims is None:
        return (None,)
    return (len(dims[attributes.get("start", 0) : attributes.get("end")]),)


def _scalar(inputs: Operands, attributes: Mapping[str, Any]) -> Dims:
    return ()


def _pad(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims, pads = dims_of(inputs[0]), constant_ints(inputs[1])
    if dims is None:
        return None
    if pads is None or len(pads) != 2 * len(dims):
        return (None,) * len(dims)
    added = [before + after for before, after in zip(pads, pads[len(dims) :], strict=False)]
    return tuple(
        d if n == 0 else d + n if isinstance(d, int) else None
        for d, n in zip(dims, added, strict=True)
    )


def _tile(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims, repeats = dims_of(inputs[0]), sizes_in(inputs[1])
    if dims is None:
        return None
    if repeats is None or len(repeats) != len(dims):
        return (None,) * len(dims)
    return tuple(product_dim(pair) for pair in zip(dims, repeats, strict=True))


def _top_k(inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    dims, k = dims_of(inputs[0]), sizes_in(inputs[1])
    if dims is None:
        return None
    axis = attributes.get("axis", -1) % len(dims)
    return (*dims[:axis], k[0] if k else None, *dims[axis + 1 :])


_RULES: dict[str, ShapeRule] = {
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "ArgMax": _arg_reduce,
    "ArgMin": _arg_reduce,
    "MatMul": _matmul,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "GatherElements": _gather_elements,
    "Concat": _concat,
    "Reshape": _reshape,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "Expand": _expand,
    "Shape": _shape,
    "Size": _scalar,
    "Slice": _slice,
    "Pad": _pad,
    "Tile": _tile,
    "TopK": _top_k,
    "Conv": spatial_dims.convolution,
    "ConvTranspose": spatial_dims.transposed_convolution,
    "Resize": spatial_dims.resizing,
}
_RULES |= dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), spatial_dims.pooling)
_RULES |= dict.fromkeys(
    ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), spatial_dims.global_pooling
)
_RULES |= {
    f"Reduce{kind}": _reduce
    for kind in ("Sum", "Prod", "Max", "Min", "Mean", "L1", "L2", "SumSquare", "LogSumExp")
}
_RULES |= dict.fromkeys(
    (
        *("Softmax", "LogSoftmax", "CumSum", "CumProd", "Trilu", "Identity", "Cast", "EyeLike"),
        *("ScatterND", "ScatterElements", "ReverseSequence", "LayerNormalization"),
        *("BatchNormalization", "GroupNormalization", "InstanceNormalization"),
    ),
    _first,
)
_BROADCASTING = frozenset(
    [
        "Abs",
        "Acos",
        "Acosh",
        "Add",
        "And",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "BitShift",
        "BitwiseAnd",
        "BitwiseNot",
        "BitwiseOr",
        "BitwiseXor",
        "Ceil",
        "Clip",
        "Cos",
        "Cosh",
        "Div",
        "Elu",
        "Equal",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "Greater",
        "GreaterOrEqual",
        "HardSigmoid",
        "HardSwish",
        "IsInf",
        "IsNaN",
        "LeakyRelu",
        "Less",
        "LessOrEqual",
        "Log",
        "Max",
        "Mean",
        "Min",
        "Mish",
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "Pow",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Sub",
        "Sum",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
        "Where",
        "Xor",
    ]
)
_RULES |= dict.fromkeys(_BROADCASTING, _broadcast_all)


def is_elementwise(op_type: str) -> bool:
    """Return whether an operator works element by element on broadcast operands."""
    return op_type in _BROADCASTING


def output_dims(op_type: str, inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of the first output of an operator, None where no rule knows them."""
    rule = _RULES.get(op_type)
    return None if rule is None else rule(inputs, attributes)
