"""Quantised integers: their formulas in the numbers that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.networks.imported_windows import (
    channels_first,
    conv,
    with_channels_last,
)
from pytensor_onnx.importing.products import matmul
from pytensor_onnx.importing.registry.known_values import like, size
from pytensor_onnx.importing.registry.narrow_types import NARROW, limits, narrow_type, rounded
from pytensor_onnx.importing.registry.operator_imports import dtype_name, onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT

type Optional = TensorVariable | None
type Ints = Sequence[int] | None


@onnx_import("QuantizeLinear")
@onnx_import("QuantizeLinear", domain=MICROSOFT)
def quantize(
    x: TensorVariable,
    scale: TensorVariable,
    zero: Optional = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> TensorVariable:
    """Divide by a scale, round to even, add a zero point and bound by the dtype."""
    narrow = narrow_type(zero)
    if zero is None and output_dtype in NARROW:
        narrow = ir.DataType(output_dtype)
    dtype = dtype_name(ir.DataType(output_dtype)) if output_dtype else "uint8"
    dtype = dtype if zero is None else zero.type.dtype
    wide = dtype_name(ir.DataType(precision)) if precision else _common(x, scale)
    divisor = _along(scale, x, axis, block_size).astype(wide)
    quotient = _quotient(x.astype(wide), divisor)
    if narrow is not None and dtype.startswith("float"):  # its zero point is zero
        return rounded(quotient.astype(dtype), narrow, saturates=bool(saturate))
    range_ = limits(narrow, dtype)
    return _quantized(quotient, zero, dtype, x, axis, block_size, range_)


def _quotient(x: TensorVariable, divisor: TensorVariable) -> TensorVariable:
    """Divide in float64 and round to the dtype, which gives the quotient of that dtype.

    Rewrites replace a division by a constant by a product, which may differ in the last place.
    """
    return (x.astype("float64") / divisor.astype("float64")).astype(x.type.dtype)


@onnx_import("DynamicQuantizeLinear")
def quantize_dynamically(x: TensorVariable) -> list[TensorVariable]:
    """Quantise to uint8, with the scale and zero point of the smallest range that has zero."""
    most, zero = like(x, 255), like(x, 0)
    least = pt.minimum(pt.min(x), zero)
    room = pt.maximum(pt.max(x), zero) - least
    scale = _quotient(pt.switch(pt.eq(room, zero), most, room), pt.constant(most))
    point = pt.round(pt.clip(-(least / scale), zero, most), "half_to_even").astype("uint8")
    return [_quantized(_quotient(x, scale), point, "uint8", x), scale, point]


def _common(x: TensorVariable, scale: TensorVariable) -> str:
    return scale.type.dtype if x.type.dtype.startswith("int") else x.type.dtype


def _quantized(
    quotient: TensorVariable,
    zero: Optional,
    dtype: str,
    x: TensorVariable,
    axis: int = 1,
    block_size: int = 0,
    bounds: tuple[float, float] | None = None,
) -> TensorVariable:
    number = pt.round(quotient.astype("float64"), "half_to_even")
    if zero is not None:
        number = number + _along(zero, x, axis, block_size).astype("float64")
    return pt.clip(number, *(bounds or limits(None, dtype))).astype(dtype)


@onnx_import("DequantizeLinear")
@onnx_import("DequantizeLinear", domain=MICROSOFT)
def dequantize(
    x: TensorVariable,
    scale: TensorVariable,
    zero: Optional = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> TensorVariable:
    """Subtract a zero point and multiply by a scale."""
    dtype = dtype_name(ir.DataType(output_dtype)) if output_dtype else scale.type.dtype
    exact = "float32" if x.type.dtype == "float32" else "int32"
    numbers = x.astype(exact)
    if zero is not None:
        numbers = numbers - _along(zero, x, axis, block_size).astype(exact)
    return (numbers.astype(scale.type.dtype) * _along(scale, x, axis, block_size)).astype(dtype)


def _along(values: TensorVariable, x: TensorVariable, axis: int, block_size: int) -> Any:
    """Return the numbers of a tensor, of an axis, or of blocks along an axis, for each element."""
    if block_size:
        repeated = pt.repeat(values, block_size, axis=axis % x.type.ndim)
        before = (slice(None),) * (axis % x.type.ndim)
        return repeated[(*before, slice(None, size(x, axis % x.type.ndim)))]
    if values.type.ndim == 0 or values.type.shape == (1,):
        return values.reshape(())
    position = axis % x.type.ndim
    return values.dimshuffle([0 if a == position else "x" for a in range(x.type.ndim)])


@onnx_import("ConvInteger")
def conv_integer(
    x: TensorVariable,
    filters: TensorVariable,
    x_zero: Optional = None,
    filter_zero: Optional = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Correlate integers in int32, after the subtraction of zero points."""
    total = conv(
        _centred(x, x_zero),
        _centred(filters, filter_zero, of_filters=True),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return total.astype("int32")


def _centred(x: TensorVariable, zero: Optional, of_filters: bool = False) -> TensorVariable:
    """Return integers without their zero point, in float64, where their sums are exact."""
    numbers = x.astype("float64")
    if zero is None:
        return numbers
    points = zero.astype("float64")
    if points.type.ndim == 1 and of_filters and points.type.shape != (1,):
        return numbers - pt.shape_padright(points, x.type.ndim - 1)
    return numbers - points.reshape(())


@onnx_import("QLinearConv")
@onnx_import("QLinearConv", domain=MICROSOFT)
def quantized_conv(
    x: TensorVariable,
    x_scale: TensorVariable,
    x_zero: TensorVariable,
    filters: TensorVariable,
    filter_scale: TensorVariable,
    filter_zero: TensorVariable,
    y_scale: TensorVariable,
    y_zero: TensorVariable,
    bias: Optional = None,
    *,
    auto_pad: str = "NOTSET",
    channels_last: int = 0,
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Correlate quantised images, whose channels may be the last axis, and quantise the result."""
    total = conv_integer(
        channels_first(x) if channels_last else x,
        filters,
        x_zero,
        filter_zero,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    if bias is not None:
        total = total + pt.shape_padright(bias, x.type.ndim - 2)
    factor = x_scale.reshape(()) * _channels(filter_scale, x) / y_scale.reshape(())
    y = _quantized(total * factor, y_zero, y_zero.type.dtype, total)
    return with_channels_last(y) if channels_last else y


def _channels(scale: TensorVariable, x: TensorVariable) -> TensorVariable:
    if scale.type.ndim == 0 or scale.type.shape == (1,):
        return scale.reshape(())
    return pt.shape_padright(scale, x.type.ndim - 2)


@onnx_import("QLinearMatMul")
def quantized_matmul(
    a: TensorVariable,
    a_scale: TensorVariable,
    a_zero: TensorVariable,
    b: TensorVariable,
    b_scale: TensorVariable,
    b_zero: TensorVariable,
    y_scale: TensorVariable,
    y_zero: TensorVariable,
) -> TensorVariable:
    """Multiply quantised matrices, and quantise the result."""
    rows = (a.astype("int32") - _rows(a_zero).astype("int32")).astype("float64")
    columns = (b.astype("int32") - b_zero.astype("int32")).astype("float64")
    factor = _rows(a_scale).astype("float64") * b_scale.astype("float64")
    total = matmul(rows, columns) * factor / _rows(y_scale).astype("float64")
    zero = _rows(y_zero).astype("float64")
    number = pt.round(total, "half_to_even") + zero
    return pt.clip(number, *limits(None, y_zero.type.dtype)).astype(y_zero.type.dtype)


def _rows(values: TensorVariable) -> TensorVariable:
    """Return numbers of rows as a column; one number is itself."""
    if values.type.ndim == 1 and values.type.shape != (1,):
        return values[:, None]
    return values
