"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.importing.registry.known_values import like
from pytensor_onnx.importing.registry.operator_imports import MICROSOFT, onnx_import
from pytensor_onnx.ops.networks.activation_ops import PRelu

_SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}


@onnx_import("Relu")
def relu(x: TensorVariable) -> TensorVariable:
    """Return the maximum of a number and zero."""
    return nn.relu(x) if x.type.dtype.startswith("float") else pt.maximum(x, like(x, 0))


@onnx_import("LeakyRelu")
def leaky_relu(x: TensorVariable, *, alpha: float = 0.01) -> TensorVariable:
    """Multiply negative numbers by a slope."""
    return nn.leaky_relu(x, alpha)


@onnx_import("PRelu")
def prelu(x: TensorVariable, slope: TensorVariable) -> TensorVariable:
    """Multiply negative numbers by slopes that broadcast to the operand."""
    return PRelu()(x, slope)


@onnx_import("Elu")
def elu(x: TensorVariable, *, alpha: float = 1.0) -> TensorVariable:
    """Return an exponential minus one for negative numbers."""
    return nn.elu(x, alpha)


@onnx_import("Celu")
def celu(x: TensorVariable, *, alpha: float = 1.0) -> TensorVariable:
    """Return a scaled exponential minus one for negative numbers."""
    return nn.celu(x, alpha)


@onnx_import("Selu")
def selu(
    x: TensorVariable, *, alpha: float = _SELU["alpha"], gamma: float = _SELU["gamma"]
) -> TensorVariable:
    """Scale `elu`."""
    if (alpha, gamma) == (_SELU["alpha"], _SELU["gamma"]):
        return nn.selu(x)
    return like(x, gamma) * nn.elu(x, alpha)


@onnx_import("Gelu")
@onnx_import("Gelu", domain=MICROSOFT)
def gelu(x: TensorVariable, *, approximate: str = "none") -> TensorVariable:
    """Multiply by the distribution function of the normal distribution."""
    return nn.gelu(x, approximate)


@onnx_import("FastGelu", domain=MICROSOFT)
def fast_gelu(x: TensorVariable, bias: TensorVariable | None = None) -> TensorVariable:
    """Add a bias, and approximate `gelu` by a hyperbolic tangent."""
    return nn.gelu(x if bias is None else x + bias, "tanh")


@onnx_import("BiasGelu", domain=MICROSOFT)
def bias_gelu(x: TensorVariable, bias: TensorVariable) -> TensorVariable:
    """Add a bias before `gelu`."""
    return nn.gelu(x + bias)


@onnx_import("QuickGelu", domain=MICROSOFT)
def quick_gelu(x: TensorVariable, *, alpha: float = 1.702) -> TensorVariable:
    """Multiply by a sigmoid of a multiple."""
    return x * nn.sigmoid(like(x, alpha) * x)


@onnx_import("HardSigmoid")
def hard_sigmoid(x: TensorVariable, *, alpha: float = 0.2, beta: float = 0.5) -> TensorVariable:
    """Bound a linear function by zero and one."""
    return nn.hard_sigmoid(x, alpha, beta)


@onnx_import("ThresholdedRelu")
def thresholded_relu(x: TensorVariable, *, alpha: float = 1.0) -> TensorVariable:
    """Return the numbers above a threshold, zero for others."""
    return nn.thresholded_relu(x, alpha)


@onnx_import("Swish")
def swish(x: TensorVariable, *, alpha: float = 1.0) -> TensorVariable:
    """Multiply by the sigmoid of a multiple."""
    return nn.silu(x) if alpha == 1 else x * nn.sigmoid(like(x, alpha) * x)


_TABLE: dict[str, Callable[..., Any]] = {
    "HardSwish": nn.hard_swish,
    "Mish": nn.mish,
    "Sigmoid": nn.sigmoid,
    "Softplus": nn.softplus,
    "Softsign": nn.softsign,
}


def _applied(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: TensorVariable) -> TensorVariable:
        return function(x)

    return apply


for _operator, _function in _TABLE.items():
    onnx_import(_operator)(_applied(_function))


@onnx_import("Softmax", since=13)
def softmax(x: TensorVariable, *, axis: int = -1) -> TensorVariable:
    """Divide exponentials by their sum along an axis."""
    return nn.softmax(x, axis % x.type.ndim)


@onnx_import("LogSoftmax", since=13)
def log_softmax(x: TensorVariable, *, axis: int = -1) -> TensorVariable:
    """Return the logarithm of `softmax`."""
    return nn.log_softmax(x, axis % x.type.ndim)


@onnx_import("Softmax")
def softmax_of_rows(x: TensorVariable, *, axis: int = 1) -> TensorVariable:
    """Divide exponentials by their sum over all axes from one on."""
    return _over_rest(nn.softmax, x, axis % max(x.type.ndim, 1))


@onnx_import("LogSoftmax")
def log_softmax_of_rows(x: TensorVariable, *, axis: int = 1) -> TensorVariable:
    """Return the logarithm of `softmax_of_rows`."""
    return _over_rest(nn.log_softmax, x, axis % max(x.type.ndim, 1))


def _over_rest(function: Callable[..., Any], x: TensorVariable, axis: int) -> TensorVariable:
    if axis == x.type.ndim - 1:
        return function(x, axis)
    rows = pt.join_dims(x, start_axis=axis, n_axes=x.type.ndim - axis)
    return function(rows, axis).reshape(x.shape)
