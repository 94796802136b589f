"""Infer the types of results: dtypes by signatures, shapes by rules."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import onnx
import onnx_ir as ir

from pytensor_onnx.operators import shape_rules
from pytensor_onnx.operators.dims import Dims

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


class Signature(NamedTuple):
    """Dtypes of an operator in its schema."""

    inputs: tuple[str | ir.DataType, ...]
    outputs: tuple[str | ir.DataType, ...]
    required: int
    variadic: bool = False

    def input_type(self, position: int) -> str | ir.DataType:
        """Return the dtype or type variable of an input."""
        return self.inputs[min(position, len(self.inputs) - 1)]

    def takes(self, count: int) -> bool:
        """Return whether the operator takes a number of operands."""
        return self.required <= count and (self.variadic or count <= len(self.inputs))


_BOOL, _INT64 = ir.DataType.BOOL, ir.DataType.INT64
_REDUCTIONS = (
    *("ReduceLogSum", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"),
)
_COMMON = {
    Signature(("T",), ("T",), 1): (
        *("Abs", "Ceil", "Cos", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Relu", "Round"),
        *("Sigmoid", "Sign", "Sin", "Softmax", "Sqrt", "Tanh", "Transpose"),
    ),
    Signature(("T", "T"), ("T",), 2): ("Add", "Div", "MatMul", "Mod", "Mul", "Sub"),
    Signature(("T", "T1"), ("T",), 2): ("Pow",),
    Signature(("T", "T", "T"), ("T",), 1): ("Clip",),
    Signature(("T", "T", "T"), ("T",), 2): ("Conv", "Gemm"),
    Signature(("T", "T", "T"), ("T",), 3): ("Range",),
    Signature(("T",), ("T",), 1, variadic=True): ("Concat", "Max", "Min"),
    Signature(("T", _INT64), ("T",), 1): ("Split", "Squeeze", *_REDUCTIONS),
    Signature(("T", _INT64), ("T",), 2): (*("Expand", "GatherND", "Reshape", "Tile", "Unsqueeze"),),
    Signature(("T", _INT64, "T"), ("T",), 3): ("ScatterND",),
    Signature(("T", "Tind"), ("T",), 2): ("Gather", "GatherElements"),
    Signature(("T", "Tind", "Tind", "Tind", "Tind"), ("T",), 3): ("Slice",),
    Signature(("T", "T"), (_BOOL,), 2): (
        *("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
    ),
    Signature(("T1",), (_BOOL,), 1): ("IsInf", "IsNaN"),
    Signature(("T1",), ("T2",), 1): ("Cast",),
    Signature(("T",), (_INT64,), 1): ("Shape", "Size"),
    Signature((_BOOL, "T", "T"), ("T",), 3): ("Where",),
}
COMMON = {name: signature for signature, names in _COMMON.items() for name in names}
"""Operators whose dtypes are the same from opset 18 on.

A model of these needs no schemas. Reading the first one takes 8 ms, as onnx then makes all.
"""
COMMON_ATTRIBUTES = {
    "Cast": {"to"},
    **{name: {"axis"} for name in ("Concat", "Gather", "GatherElements", "Softmax")},
    **{name: {"keepdims", "noop_with_empty_axes"} for name in _REDUCTIONS},
    "Shape": {"start", "end"},
    "Transpose": {"perm"},
}
"""Attributes of common operators in all these opsets."""
REQUIRED_ATTRIBUTES = {"Cast": frozenset({"to"}), "Concat": frozenset({"axis"})}
"""Attributes that common operators cannot do without."""


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
    return COMMON.get(op_type) or read_signature(op_type, opset_version)


def read_signature(op_type: str, opset_version: int) -> Signature:
    """Return the dtypes of a standard operator from its schema."""
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
        tuple(map(resolve, schema.inputs)),
        tuple(map(resolve, schema.outputs)),
        schema.min_input,
        variadic,
    )


def type_of_text(text: str) -> str | ir.DataType:
    """Return the dtype of a plain type in a schema, or the name of a type variable.

    Examples
    --------
    >>> type_of_text("tensor(float)"), type_of_text("T")
    (FLOAT, 'T')
    """
    return _DTYPE_OF_SCHEMA_TYPE.get(text, text)


Operands = Sequence[ir.Value | None]
ShapeRule = Callable[[Operands, Mapping[str, Any]], Dims | None]


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
    """Return the dtype of each output in the schema, None if it is undetermined."""
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


_RULES: dict[str, ShapeRule] = {
    "Transpose": shape_rules.transposition,
    "Unsqueeze": shape_rules.unsqueezing,
    "Squeeze": shape_rules.squeezing,
    "ArgMax": shape_rules.arg_reduction,
    "ArgMin": shape_rules.arg_reduction,
    "MatMul": shape_rules.matrix_product,
    "Gemm": shape_rules.gemm,
    "Gather": shape_rules.gathering,
    "GatherND": shape_rules.gathering_nd,
    "GatherElements": shape_rules.gathering_elements,
    "Concat": shape_rules.concatenation,
    "Reshape": shape_rules.reshaping,
    "Flatten": shape_rules.flattening,
    "ConstantOfShape": shape_rules.filling,
    "Range": shape_rules.counting,
    "Expand": shape_rules.expansion,
    "Shape": shape_rules.shape,
    "Size": shape_rules.scalar,
    "Slice": shape_rules.slicing,
    "Pad": shape_rules.padding,
    "Tile": shape_rules.tiling,
    "TopK": shape_rules.top_k,
    "Conv": shape_rules.convolution,
    "ConvTranspose": shape_rules.transposed_convolution,
    "Resize": shape_rules.resizing,
}
_RULES |= dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), shape_rules.pooling)
_RULES |= dict.fromkeys(
    ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), shape_rules.global_pooling
)
_RULES |= {
    f"Reduce{kind}": shape_rules.reduction
    for kind in ("Sum", "Prod", "Max", "Min", "Mean", "L1", "L2", "SumSquare", "LogSumExp")
}
_RULES |= dict.fromkeys(
    (
        *("Softmax", "LogSoftmax", "CumSum", "CumProd", "Trilu", "Identity", "Cast", "EyeLike"),
        *("ScatterND", "ScatterElements", "ReverseSequence", "LayerNormalization"),
        *("BatchNormalization", "GroupNormalization", "InstanceNormalization"),
        *("RMSNormalization", "RotaryEmbedding"),
    ),
    shape_rules.same_as_first,
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
_RULES |= dict.fromkeys(_BROADCASTING, shape_rules.broadcasting)


def is_elementwise(op_type: str) -> bool:
    """Return whether an operator works element by element on broadcast operands."""
    return op_type in _BROADCASTING


def output_dims(op_type: str, inputs: Operands, attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of the first output of an operator, None without a rule."""
    rule = _RULES.get(op_type)
    return None if rule is None else rule(inputs, attributes)
