"""Quantised operators that ONNX Runtime's tools write, of the domain com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.importing.networks.imported_activations import softmax, softmax_of_rows
from pytensor_onnx.importing.networks.imported_quantization import (
    dequantize,
    quantize,
    quantize_dynamically,
)
from pytensor_onnx.importing.networks.imported_recurrences import LONG_MEMORY, lstm, types_of_layer
from pytensor_onnx.importing.networks.imported_windows import (
    average_pool,
    channels_first,
    with_channels_last,
)
from pytensor_onnx.importing.products import gemm, matmul
from pytensor_onnx.importing.registry.known_values import like
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT

type Optional = TensorVariable | None
type Ints = Sequence[int] | None


@onnx_import("QLinearAdd", domain=MICROSOFT)
def quantized_sum(
    a: TensorVariable,
    a_scale: TensorVariable,
    a_zero: Optional,
    b: TensorVariable,
    b_scale: TensorVariable,
    b_zero: Optional,
    y_scale: TensorVariable,
    y_zero: Optional = None,
) -> TensorVariable:
    """Add quantised numbers."""
    total = dequantize(a, a_scale, a_zero) + dequantize(b, b_scale, b_zero)
    return _again(total, y_scale, y_zero, a)


@onnx_import("QLinearMul", domain=MICROSOFT)
def quantized_product(
    a: TensorVariable,
    a_scale: TensorVariable,
    a_zero: Optional,
    b: TensorVariable,
    b_scale: TensorVariable,
    b_zero: Optional,
    y_scale: TensorVariable,
    y_zero: Optional = None,
) -> TensorVariable:
    """Multiply quantised numbers."""
    product = dequantize(a, a_scale, a_zero) * dequantize(b, b_scale, b_zero)
    return _again(product, y_scale, y_zero, a)


def _again(
    numbers: TensorVariable, scale: TensorVariable, zero: Optional, of: TensorVariable
) -> TensorVariable:
    """Quantise to the dtype of an operand."""
    return quantize(numbers, scale, pt.zeros((), of.type.dtype) if zero is None else zero)


@onnx_import("QLinearSigmoid", domain=MICROSOFT)
def quantized_sigmoid(
    x: TensorVariable,
    x_scale: TensorVariable,
    x_zero: Optional,
    y_scale: TensorVariable,
    y_zero: Optional = None,
) -> TensorVariable:
    """Apply the logistic function to quantised numbers."""
    return _again(nn.sigmoid(dequantize(x, x_scale, x_zero)), y_scale, y_zero, x)


@onnx_import("QLinearLeakyRelu", domain=MICROSOFT)
def quantized_leaky_relu(
    x: TensorVariable,
    x_scale: TensorVariable,
    x_zero: Optional,
    y_scale: TensorVariable,
    y_zero: Optional = None,
    *,
    alpha: float = 0.01,
) -> TensorVariable:
    """Multiply negative quantised numbers by a slope."""
    return _again(nn.leaky_relu(dequantize(x, x_scale, x_zero), alpha), y_scale, y_zero, x)


@onnx_import("QLinearSoftmax", domain=MICROSOFT)
def quantized_softmax(
    x: TensorVariable,
    x_scale: TensorVariable,
    x_zero: Optional,
    y_scale: TensorVariable,
    y_zero: Optional = None,
    *,
    axis: int = -1,
    opset: int,
) -> TensorVariable:
    """Apply the softmax of an opset to quantised numbers."""
    of_opset = softmax if opset >= 13 else softmax_of_rows
    return _again(of_opset(dequantize(x, x_scale, x_zero), axis=axis), y_scale, y_zero, x)


@onnx_import("QLinearGlobalAveragePool", domain=MICROSOFT)
def quantized_global_average_pool(
    x: TensorVariable,
    x_scale: TensorVariable,
    x_zero: Optional,
    y_scale: TensorVariable,
    y_zero: Optional = None,
    *,
    channels_last: int = 0,
) -> TensorVariable:
    """Return the mean of quantised numbers over the spatial axes."""
    images = channels_first(x) if channels_last else x
    mean = nn.global_avg_pool(dequantize(images, x_scale, x_zero))
    y = _again(mean, y_scale, y_zero, x)
    return with_channels_last(y) if channels_last else y


@onnx_import("QLinearAveragePool", domain=MICROSOFT)
def quantized_average_pool(
    x: TensorVariable,
    x_scale: TensorVariable,
    x_zero: Optional,
    y_scale: TensorVariable,
    y_zero: Optional = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Return the mean of each window of quantised numbers."""
    images = channels_first(x) if channels_last else x
    mean = average_pool(
        dequantize(images, x_scale, x_zero),
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    y = _again(mean, y_scale, y_zero, x)
    return with_channels_last(y) if channels_last else y


@onnx_import("QLinearConcat", domain=MICROSOFT)
def quantized_concatenate(
    y_scale: TensorVariable, y_zero: TensorVariable, *parts: TensorVariable, axis: int
) -> TensorVariable:
    """Join arrays, each with a scale and a zero point of its own."""
    numbers = [dequantize(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return _again(pt.concatenate(numbers, axis=axis), y_scale, y_zero, parts[0])


@onnx_import("QLinearWhere", domain=MICROSOFT)
def quantized_where(
    condition: TensorVariable,
    x: TensorVariable,
    x_scale: TensorVariable,
    x_zero: Optional,
    y: TensorVariable,
    y_scale: TensorVariable,
    y_zero: Optional,
    z_scale: TensorVariable,
    z_zero: Optional = None,
) -> TensorVariable:
    """Choose between two quantised arrays."""
    chosen = pt.switch(condition, dequantize(x, x_scale, x_zero), dequantize(y, y_scale, y_zero))
    return _again(chosen, z_scale, z_zero, x)


@onnx_import("QGemm", domain=MICROSOFT)
def quantized_gemm(
    a: TensorVariable,
    a_scale: TensorVariable,
    a_zero: TensorVariable,
    b: TensorVariable,
    b_scale: TensorVariable,
    b_zero: TensorVariable,
    c: Optional = None,
    y_scale: Optional = None,
    y_zero: Optional = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803  (name of the attribute)
    transB: int = 0,  # noqa: N803
) -> TensorVariable:
    """Multiply two quantised matrices, and add integers in the unit of the product."""
    columns = dequantize(b, b_scale, b_zero, axis=0 if transB else 1)
    product = gemm(
        dequantize(a, a_scale, a_zero), columns, alpha=alpha, transA=transA, transB=transB
    )
    if c is not None:
        product = product + c.astype("float32") * (like(product, alpha) * a_scale * b_scale)
    return product if y_scale is None else _again(product, y_scale, y_zero, a)


@onnx_import("MatMulIntegerToFloat", domain=MICROSOFT)
def quantized_matmul_of_floats(
    a: TensorVariable,
    b: TensorVariable,
    a_scale: TensorVariable,
    b_scale: TensorVariable,
    a_zero: Optional = None,
    b_zero: Optional = None,
    bias: Optional = None,
) -> TensorVariable:
    """Multiply quantised matrices; the result is one of floats."""
    columns = dequantize(b, b_scale, b_zero, axis=-1)
    product = matmul(dequantize(a, a_scale, a_zero), columns)
    return product if bias is None else product + bias


@onnx_import("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamically_quantized_matmul(
    a: TensorVariable,
    b: TensorVariable,
    b_scale: TensorVariable,
    b_zero: Optional = None,
    bias: Optional = None,
) -> TensorVariable:
    """Quantise the rows by their range, and multiply them with quantised columns."""
    product = matmul(rounded(a), dequantize(b, b_scale, b_zero, axis=-1))
    return product if bias is None else product + bias


def rounded(x: TensorVariable) -> TensorVariable:
    """Return the numbers that an array becomes by dynamic quantisation to 8 bits."""
    return dequantize(*quantize_dynamically(x))


def _types_of_quantized_lstm(
    x: TensorVariable, w: TensorVariable, r: TensorVariable, *_: Any, **attributes: Any
) -> list[TensorType]:
    return types_of_layer(LONG_MEMORY, r.type.shape[1], x, attributes)


@onnx_import("DynamicQuantizeLSTM", domain=MICROSOFT, types=_types_of_quantized_lstm)
def dynamically_quantized_lstm(
    x: TensorVariable,
    w: TensorVariable,
    r: TensorVariable,
    bias: Optional = None,
    lengths: Optional = None,
    h: Optional = None,
    c: Optional = None,
    peepholes: Optional = None,
    w_scale: Optional = None,
    w_zero: Optional = None,
    r_scale: Optional = None,
    r_zero: Optional = None,
    *,
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    activations: tuple[str, ...] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> list[TensorVariable]:
    """Run a long short-term memory of quantised weights on inputs and states of 8 bits."""
    assert w_scale is not None
    assert r_scale is not None
    return lstm(
        rounded(x),
        _of_directions(w, w_scale, w_zero).mT,
        _of_directions(r, r_scale, r_zero).mT,
        bias,
        lengths,
        h,
        c,
        peepholes,
        activation_alpha=activation_alpha,
        activation_beta=activation_beta,
        activations=activations,
        clip=clip,
        direction=direction,
        hidden_size=hidden_size,
        input_forget=input_forget,
        of_state=rounded,
    )


def _of_directions(
    weights: TensorVariable, scale: TensorVariable, zero: Optional
) -> TensorVariable:
    """Dequantise matrices of directions, each by one scale or by one for each column."""

    def shaped(v: TensorVariable) -> TensorVariable:
        return v[:, None, None] if v.type.ndim == 1 else v[:, None, :]

    numbers = weights.astype("float32")
    if zero is not None:
        numbers = numbers - shaped(zero).astype("float32")
    return numbers * shaped(scale)
