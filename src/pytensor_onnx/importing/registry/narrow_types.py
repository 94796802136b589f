"""Types of few bits, which PyTensor has no arrays of: their numbers in wider arrays.

Numbers of bfloat16 and of the floats of 8, 6 and 4 bits are numbers of float32, integers of 4 and 2
bits are numbers of int8 or uint8. A variable of such numbers is marked with its type, and the
result of each operation is rounded to its type, as runtimes do that compute in wider registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.operators.entries import MOVING
from pytensor_onnx.operators.inference import signature

_FLOATS = {
    ir.DataType.BFLOAT16: ml_dtypes.bfloat16,
    ir.DataType.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    ir.DataType.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    ir.DataType.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    ir.DataType.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    ir.DataType.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
    ir.DataType.FLOAT6E2M3: ml_dtypes.float6_e2m3fn,
    ir.DataType.FLOAT6E3M2: ml_dtypes.float6_e3m2fn,
    ir.DataType.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}
_INTS = {
    ir.DataType.INT4: ml_dtypes.int4,
    ir.DataType.UINT4: ml_dtypes.uint4,
    ir.DataType.INT2: ml_dtypes.int2,
    ir.DataType.UINT2: ml_dtypes.uint2,
}
NARROW: Mapping[ir.DataType, Any] = {**_FLOATS, **_INTS}
"""The types, with NumPy's dtypes for them."""
_FINITE = frozenset({ir.DataType.FLOAT4E2M1, ir.DataType.FLOAT6E2M3, ir.DataType.FLOAT6E3M2})
"""Types without infinities and NaN."""
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")
_WITH_TYPE = (*_TYPE_ATTRIBUTES, "value")
_TYPED_BY_TENSOR = ("Constant", "ConstantOfShape")


def wide_dtype(dtype: ir.DataType) -> str:
    """Return the dtype of the arrays that hold numbers of a type.

    Examples
    --------
    >>> wide_dtype(ir.DataType.BFLOAT16), wide_dtype(ir.DataType.UINT4)
    ('float32', 'uint8')
    """
    if dtype in _FLOATS:
        return "float32"
    return "uint8" if dtype.name.startswith("U") else "int8"


def narrow_type(variable: Any) -> ir.DataType | None:
    """Return the type of few bits whose numbers a variable has, None for others."""
    return getattr(getattr(variable, "tag", None), "narrow_type", None)


def marked[V: Variable](variable: V, dtype: ir.DataType | None) -> V:
    """Mark a variable as one of numbers of a type."""
    if dtype is not None:
        variable.tag.narrow_type = dtype
    return variable


def marked_as[V](variables: Sequence[V], others: Sequence[Any]) -> list[V]:
    """Give variables the marks of the variables that they replace, and return them as a list."""
    for variable, other in zip(variables, others, strict=False):
        if isinstance(variable, Variable):
            marked(variable, narrow_type(other))
    return list(variables)


def result_type(
    node: ir.Node, operands: Sequence[Any], opset: int, position: int
) -> ir.DataType | None:
    """Return the type of few bits of a result of a node, None if it has another type.

    Parameters
    ----------
    node, opset
        The node, and the version of its domain.
    operands
        Variables of its operands, marked with their types.
    position
        Position of the result.

    Examples
    --------
    >>> x, numbers = ir.val("x"), pt.fvector("x")
    >>> result_type(ir.node("Cast", [x], {"to": ir.DataType.BFLOAT16}), [numbers], 21, 0)
    BFLOAT16
    >>> result_type(ir.node("Abs", [x]), [marked(numbers, ir.DataType.BFLOAT16)], 21, 0)
    BFLOAT16
    """
    if node.op_type in _TYPED_BY_TENSOR:
        tensor = node.attributes.get("value")
        return None if tensor is None else _narrow(tensor.as_tensor().dtype)
    for name in _TYPE_ATTRIBUTES:
        given = node.attributes.get(name)
        if given is not None and not given.is_ref() and given.value:
            return _narrow(ir.DataType(given.value))
    types = signature(node.op_type, opset, node.domain)
    if types is None or not types.outputs:
        return None
    wanted = types.outputs[min(position, len(types.outputs) - 1)]
    for place, operand in enumerate(operands if isinstance(wanted, str) else ()):
        if operand is not None and types.input_type(place) == wanted:
            return narrow_type(operand)
    return None


def _narrow(dtype: ir.DataType) -> ir.DataType | None:
    return dtype if dtype in NARROW else None


def is_narrow(node: ir.Node, operands: Sequence[Any], opset: int) -> bool:
    """Return whether operands of a node, or its first result, are of a type of few bits."""
    if any(narrow_type(v) for v in operands):
        return True
    return _names_type(node) and result_type(node, operands, opset, 0) is not None


def _names_type(node: ir.Node) -> bool:
    return not node.attributes.keys().isdisjoint(_WITH_TYPE)


def as_results(
    node: ir.Node, operands: Sequence[Any], results: Sequence[Any], opset: int
) -> list[Any]:
    """Return results of a node that computed in wide arrays, rounded to their types.

    Parameters
    ----------
    node, opset
        The node, and the version of its domain.
    operands, results
        Variables of its operands and results.
    """
    has_narrow = any(narrow_type(v) for v in operands)
    if not has_narrow and not _names_type(node):
        return list(results)
    found = list(results)
    for position, result in enumerate(results):
        if not isinstance(result, TensorVariable):
            continue
        dtype = result_type(node, operands, opset, position)
        if dtype is not None and result.type.dtype == wide_dtype(dtype):
            found[position] = _as_result(node, result, dtype)
        elif has_narrow and narrow_type(result) and dtype is None:
            found[position] = pt.tensor_copy(result)  # the mark is that of an operand
    return found


def _as_result(node: ir.Node, result: TensorVariable, dtype: ir.DataType) -> TensorVariable:
    if narrow_type(result) == dtype:
        return result
    if node.op_type in MOVING or node.op_type in _TYPED_BY_TENSOR:
        return marked(result, dtype)
    saturate = node.attributes.get("saturate")
    mode = node.attributes.get("round_mode")
    return rounded(
        result,
        dtype,
        saturates=saturate is None or bool(saturate.value),
        mode="up" if mode is None else mode.value,
    )


def wide_array(array: np.ndarray) -> np.ndarray:
    """Return the array of a dtype of ml_dtypes in the dtype that PyTensor has.

    Examples
    --------
    >>> wide_array(np.array([1.5, 3.0]).astype(ml_dtypes.bfloat16))
    array([1.5, 3. ], dtype=float32)
    """
    for dtype, of_numpy in NARROW.items():
        if array.dtype == of_numpy:
            return array.astype(wide_dtype(dtype))
    return array


def limits(dtype: ir.DataType | None, wide: str) -> tuple[float, float]:
    """Return the least and largest integer of a type, or of a dtype of PyTensor."""
    info = np.iinfo(wide) if dtype is None else ml_dtypes.iinfo(NARROW[dtype])
    return float(info.min), float(info.max)


class _Format(NamedTuple):
    """The steps of a type of floats.

    Attributes
    ----------
    powers
        Powers of two from which the distance of its numbers doubles.
    steps
        The distance in each range, from that below the first power on.
    largest
        The largest number.
    """

    powers: np.ndarray
    steps: np.ndarray
    largest: float


@cache
def _format(dtype: ir.DataType) -> _Format:
    info = ml_dtypes.finfo(_FLOATS[dtype])
    powers = 2.0 ** np.arange(info.minexp + 1, info.maxexp + 1)
    steps = 2.0 ** (np.arange(info.minexp, info.maxexp + 1) - info.nmant)
    return _Format(powers, steps, float(info.max))


def rounded(
    x: TensorVariable, dtype: ir.DataType, *, saturates: bool = True, mode: str = "up"
) -> TensorVariable:
    """Round wide numbers to those of a type, ties to even.

    Parameters
    ----------
    x
        Numbers in the wide dtype of the type.
    dtype
        The type.
    saturates
        Whether numbers beyond the largest one of a float of 8 bits become it. Otherwise, they
        become an infinity, or NaN where the type has none.
    mode
        Direction in which powers of two (float8e8m0) are rounded: ``up``, ``down`` or ``nearest``.

    Examples
    --------
    >>> x = pt.constant(np.float32([1.0625, 300.0, -500.0]))
    >>> rounded(x, ir.DataType.FLOAT8E4M3FN).eval(mode="FAST_COMPILE")
    array([   1.,  288., -448.], dtype=float32)
    """
    operand = pt.tensor(dtype=x.type.dtype, shape=x.type.shape)
    if dtype in _INTS:
        result = _wrapped(operand, dtype)
    elif dtype == ir.DataType.FLOAT8E8M0:
        result = _power_of_two(operand, saturates, mode)
    else:
        result = _nearest(operand, dtype, saturates)
    name = f"Round_{dtype.name.lower()}"
    return marked(OpFromGraph([operand], [result], name=name, pullback=_of_cast)(x), dtype)


def _of_cast(inputs: Any, outputs: Any, gradients: Any) -> Any:
    """Return the gradient of a conversion, as PyTensor's is."""
    return list(gradients)


def _nearest(x: TensorVariable, dtype: ir.DataType, saturates: bool) -> TensorVariable:
    form = _format(dtype)
    size = pt.abs(x).astype("float64")
    step = pt.constant(form.steps)[pt.searchsorted(form.powers, size, side="right")]
    size = pt.round(size / step, "half_to_even") * step
    most = form.largest
    if dtype == ir.DataType.BFLOAT16:
        size = pt.switch(size > most, np.inf, size)
    elif dtype in _FINITE or saturates:
        size = pt.switch(size > most, most, size)
        if dtype in _FINITE:
            size = pt.switch(pt.isnan(size), 0.0, size)
    else:
        beyond = np.inf if dtype == ir.DataType.FLOAT8E5M2 else np.nan
        size = pt.switch(size > most, beyond, size)
    numbers = size.astype("float32")
    signed = pt.switch(x < np.float32(0), -numbers, numbers)
    if dtype.name.endswith("UZ"):
        signed = pt.switch(pt.eq(signed, np.float32(0)), np.float32(0), signed)
    else:
        signed = pt.switch(pt.eq(x, np.float32(0)), x, signed)  # zeros keep their signs
    return signed


def _wrapped(x: TensorVariable, dtype: ir.DataType) -> TensorVariable:
    """Return the last bits of integers as integers of a type."""
    low, high = map(int, limits(dtype, ""))
    count = high - low + 1
    return (pt.mod(x.astype("int32") - low, count) + low).astype(wide_dtype(dtype))


def _power_of_two(x: TensorVariable, saturates: bool, mode: str) -> TensorVariable:
    """Round sizes to powers of two; infinities and NaN are NaN."""
    powers = 2.0 ** np.arange(-127, 128)
    floors = np.append(0.0, powers[1:])
    size = pt.abs(x).astype("float64")
    place = pt.searchsorted(powers[1:], size, side="right")
    if mode != "down":
        # The standard rounds zero to the smallest power, and larger subnormal numbers to the next.
        bounds = floors if mode == "up" else np.append(powers[0], np.nextafter(1.5 * floors[1:], 0))
        if saturates:
            bounds[-1] = np.inf
        place = place + pt.gt(size, pt.constant(bounds)[place])
    result = pt.constant(np.append(powers, np.nan).astype("float32"))[place]
    return pt.switch(pt.isinf(x) | pt.isnan(x), np.float32(np.nan), result)
