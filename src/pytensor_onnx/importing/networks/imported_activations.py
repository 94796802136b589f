"""Imported activations and normalisations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import filled, like, sizes, static_number
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.activation_ops import PRelu
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT

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
def prelu_of_channels(x: TensorVariable, slope: TensorVariable) -> TensorVariable:
    """Multiply negative numbers by one slope, or by those of the second axis."""
    if slope.type.ndim == 1 and slope.type.shape != (1,):
        slope = pt.shape_padright(slope, x.type.ndim - 2)
    return PRelu()(x, slope)


@onnx_import("PRelu", since=7)
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


@onnx_import("Affine")
def affine(x: TensorVariable, *, alpha: float = 1.0, beta: float = 0.0) -> TensorVariable:
    """Multiply by a number and add one; an experimental operator, as the next two."""
    return like(x, alpha) * x + like(x, beta)


@onnx_import("ScaledTanh")
def scaled_tanh(x: TensorVariable, *, alpha: float = 1.0, beta: float = 1.0) -> TensorVariable:
    """Return a multiple of the hyperbolic tangent of a multiple."""
    return like(x, alpha) * pt.tanh(like(x, beta) * x)


@onnx_import("ParametricSoftplus")
def parametric_softplus(
    x: TensorVariable, *, alpha: float = 1.0, beta: float = 1.0
) -> TensorVariable:
    """Return a multiple of the softplus of a multiple."""
    return like(x, alpha) * pt.softplus(like(x, beta) * x)


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


@onnx_import("BatchNormalization")
def batch_norm(
    x: TensorVariable,
    scale: TensorVariable,
    bias: TensorVariable,
    mean: TensorVariable,
    var: TensorVariable,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    training_mode: int = 0,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Normalise each channel by running statistics, or in training by those of the batch."""
    if not spatial:
        raise UnsupportedCase("statistics of single elements (spatial=0) are not supported")
    if not training_mode:
        return [nn.batch_norm(x, scale, bias, mean, var, epsilon)]
    results = nn.batch_norm_train(x, scale, bias, mean, var, 1 - momentum, epsilon)
    return list(results)[:outputs]


@onnx_import("InstanceNormalization")
def instance_norm(
    x: TensorVariable, scale: TensorVariable, bias: TensorVariable, *, epsilon: float = 1e-5
) -> TensorVariable:
    """Normalise each channel of each element of a batch."""
    return nn.instance_norm(x, scale, bias, epsilon)


@onnx_import("LayerNormalization")
def layer_norm(
    x: TensorVariable,
    scale: TensorVariable,
    bias: TensorVariable | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> TensorVariable:
    """Normalise over the last axes; the standard's function also returns the statistics."""
    normalised = x.type.ndim - axis % x.type.ndim
    has_sizes = all(v is None or v.type.ndim == normalised for v in (scale, bias))
    if outputs > 1 or not has_sizes:
        return NotImplemented
    return nn.layer_norm(x, scale, bias, axis, epsilon)


@onnx_import("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(
    x: TensorVariable,
    skip: TensorVariable,
    gamma: TensorVariable,
    beta: TensorVariable | None = None,
    bias: TensorVariable | None = None,
    *,
    epsilon: float = 1e-12,
    outputs: int = 1,
) -> list[TensorVariable | None]:
    """Add an array and a bias, and normalise the sum over the last axis."""
    total = x + skip if bias is None else x + skip + bias
    return [nn.layer_norm(total, gamma, beta, -1, epsilon), None, None, total][:outputs]


@onnx_import("RMSNormalization")
def rms_norm(
    x: TensorVariable,
    scale: TensorVariable,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> TensorVariable:
    """Divide by the root mean square over the last axes."""
    if scale.type.ndim != x.type.ndim - axis % x.type.ndim:
        return NotImplemented
    return nn.rms_norm(x, scale, axis, epsilon)


@onnx_import("GroupNormalization", since=21)
def group_norm(
    x: TensorVariable,
    scale: TensorVariable,
    bias: TensorVariable,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> TensorVariable:
    """Normalise groups of channels."""
    return nn.group_norm(x, num_groups, scale, bias, epsilon)


@onnx_import("LpNormalization")
def lp_norm(x: TensorVariable, *, axis: int = -1, p: int = 2) -> TensorVariable:
    """Divide by a norm along an axis, zero where it is zero."""
    if p == 1:
        norm = pt.abs(x).sum(axis=axis, keepdims=True)
    else:
        norm = pt.sqrt(pt.sqr(x).sum(axis=axis, keepdims=True))
    is_zero = pt.eq(norm, like(norm, 0))
    return pt.switch(is_zero, like(x, 0), x / pt.switch(is_zero, like(norm, 1), norm))


@onnx_import("LRN")
def local_response_norm(
    x: TensorVariable, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> TensorVariable:
    """Divide by a power of the mean square over neighbouring channels."""
    before = (size - 1) // 2
    squares = pt.sqr(x)
    batch, channels, *spatial = sizes(x)
    edges = [filled(like(x, 0), [batch, n, *spatial]) for n in (before, size - 1 - before)]
    padded = pt.concatenate([edges[0], squares, edges[1]], axis=1)
    total = sum(padded[:, i : i + channels] for i in range(size))
    return x / pt.pow(like(x, bias) + like(x, alpha / size) * total, like(x, beta))


@onnx_import("Dropout")
def dropout_by_attribute(
    x: TensorVariable, *, ratio: float = 0.5, seed: int = 0, outputs: int = 1
) -> list[TensorVariable]:
    """Return the operand, as networks do after training."""
    return [x, pt.ones_like(x, dtype="bool")][:outputs]


@onnx_import("Dropout", since=12)
def dropout(
    x: TensorVariable,
    ratio: TensorVariable | None = None,
    training: TensorVariable | None = None,
    *,
    seed: int = 0,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Set random elements to zero in training, and scale the others."""
    rate = static_number(ratio, "ratio", 0.5)
    if not static_number(training, "training_mode", False) or rate == 0:
        return dropout_by_attribute(x, outputs=outputs)
    from pytensor_onnx.importing.random import uniform

    mask = uniform(x.shape, "float32", seed=float(seed) or None) >= rate
    return [pt.switch(mask, x / like(x, 1 - rate), like(x, 0)), mask][:outputs]
