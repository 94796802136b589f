"""Infer the types of results: dtypes by signatures, shapes by rules."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph import shape_rules, spatial_dims
from pytensor_onnx.graph.dims import Dims
from pytensor_onnx.graph.signatures import Signature

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
    "Conv": spatial_dims.convolution,
    "ConvTranspose": spatial_dims.transposed_convolution,
    "Resize": spatial_dims.resizing,
}
_RULES |= dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), spatial_dims.pooling)
_RULES |= dict.fromkeys(
    ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), spatial_dims.global_pooling
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
