"""Operators that work element by element on broadcast operands."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import onnx_ir as ir

from pytensor_onnx.operators.dims import Dims, broadcast, dims_of
from pytensor_onnx.operators.facts import (
    ALL,
    FIRST,
    NONE,
    UNKNOWN,
    Attributes,
    BoundsRule,
    Interval,
    Operands,
    Operator,
    moving,
)
from pytensor_onnx.operators.inference import attribute_of

BOUNDS_OF_DTYPES: dict[ir.DataType, Interval] = {ir.DataType.BOOL: (0, 1)} | {
    ir.DataType[name]: (int(np.iinfo(name.lower()).min), int(np.iinfo(name.lower()).max))
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
}


def broadcasting(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of an elementwise operator."""
    dims: Dims = ()
    for value in inputs:
        if value is None:
            continue
        operand = dims_of(value)
        if operand is None:
            return None
        dims = broadcast(dims, operand)
    return dims


def _cast(node: ir.Node, _: Sequence[Interval]) -> Interval:
    x = node.inputs[0]
    return UNKNOWN if x is None or x.dtype is None else BOUNDS_OF_DTYPES.get(x.dtype, UNKNOWN)


def _add(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    (a, b), (c, d) = operands
    return a + c, b + d


def _subtract(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    (a, b), (c, d) = operands
    return a - d, b - c


def _multiply(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    x, y = operands
    products = [a * b for a in x for b in y]
    return min(products), max(products)


def _negate(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    ((low, high),) = operands
    return -high, -low


def _divide(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    """Divide by numbers from one on; a run fails at zero."""
    (low, high), (divisor, _last) = operands
    if divisor < 0:
        return UNKNOWN
    smallest = max(divisor, 1)
    return min(-(-low // smallest), 0), max(high // smallest, 0)


def _modulo(node: ir.Node, operands: Sequence[Interval]) -> Interval:
    _, (divisor, last) = operands
    has_own_sign = divisor < 0 or attribute_of(node, "fmod")
    return UNKNOWN if has_own_sign else (0, max(last - 1, 0))


def _extremum(choice: Callable[..., int]) -> BoundsRule:
    return lambda _, operands: (choice(a for a, _ in operands), choice(b for _, b in operands))


_arithmetic = partial(Operator, shape=broadcasting)
_function = partial(Operator, shape=broadcasting, cost="function")
_ARITHMETIC = (
    *("And", "BitCast", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"),
    *("Clip", "Equal", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN"),
    *("LeakyRelu", "Less", "LessOrEqual", "Mean", "Not", "Or", "Reciprocal", "Shrink"),
    *("Softsign", "ThresholdedRelu", "Xor"),
)
_FUNCTIONS = (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cos", "Cosh", "Elu", "Gelu"),
    *("Log", "Mish", "Pow", "Selu", "Sin", "Sinh", "Swish", "Tan"),
)

OPERATORS: dict[str, Operator] = {
    **dict.fromkeys(_ARITHMETIC, _arithmetic()),
    **dict.fromkeys(_FUNCTIONS, _function()),
    "Abs": _arithmetic(numbers=FIRST, finite=FIRST, sign=NONE),
    "Add": _arithmetic(sign=ALL, bounds=_add),
    "Cast": _arithmetic(numbers=FIRST, bounds=_cast),
    "Ceil": _arithmetic(numbers=FIRST),
    "Div": _arithmetic(bounds=_divide),  # by -0 it is -inf, whatever the sign of the operands
    "Erf": _function(numbers=FIRST),
    "Exp": _function(numbers=FIRST, sign=NONE),
    "Floor": _arithmetic(numbers=FIRST),
    "Identity": moving(broadcasting, cost="view"),
    "Max": _arithmetic(numbers=ALL, finite=ALL, sign=ALL, bounds=_extremum(max)),
    "Min": _arithmetic(numbers=ALL, finite=ALL, sign=ALL, bounds=_extremum(min)),
    "Mod": _arithmetic(bounds=_modulo),
    "Mul": _arithmetic(sign=ALL, bounds=_multiply),
    "Neg": _arithmetic(numbers=FIRST, finite=FIRST, bounds=_negate),
    "Relu": _arithmetic(numbers=FIRST, finite=FIRST, sign=NONE),
    "Round": _arithmetic(numbers=FIRST),
    "Sigmoid": _function(numbers=FIRST, sign=NONE),
    "Sign": _arithmetic(numbers=FIRST),
    "Softplus": _function(numbers=FIRST, sign=NONE),
    "Sqrt": _arithmetic(sign=NONE),
    "Sub": _arithmetic(bounds=_subtract),
    "Sum": _arithmetic(sign=ALL),
    "Tanh": _function(numbers=FIRST),
    "Where": moving(broadcasting, slice(1, None), cost="arithmetic"),
}
