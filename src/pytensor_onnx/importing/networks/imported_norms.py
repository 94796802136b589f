"""Normalisation, dropout and losses."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import filled, like, sizes, static_number
from pytensor_onnx.importing.registry.operator_imports import MICROSOFT, onnx_import


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
