"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.traversal import is_float32
from pytensor_onnx.operators.inference import dtype_of
from pytensor_onnx.ops.networks.network_op import KeepsShape, NetworkOp, Size, size_of, sizes_of
from pytensor_onnx.ops.networks.taps import product

RMS_OPSET = 23
GROUP_OPSET = 21


class LayerNorm(KeepsShape):
    """Normalisation over the last axes, with a scale and, as third input, a shift."""

    __props__ = ("n_axes", "epsilon")
    n_axes: int
    epsilon: float

    def build_inner_graph(
        self, x: TensorVariable, gamma: TensorVariable, *beta: TensorVariable
    ) -> list[Variable]:
        """Standardise in float32 or wider."""
        y, _ = standardise(x, _last_axes(x, self.n_axes), self.epsilon)
        return [y * gamma + beta[0] if beta else y * gamma]

    def emit(self, build: Builder, *inputs: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.LayerNormalization(*inputs, axis=-self.n_axes, epsilon=self.epsilon)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Subtract the contributions of mean and deviation from the gradient."""
        (x, gamma, *beta), (gradient,) = inputs, output_grads
        axes = _last_axes(x, self.n_axes)
        before = list(range(x.type.ndim - self.n_axes))
        y, inverse = standardise(x, axes, self.epsilon)
        gradients = [
            standardise_gradient(gradient * gamma, y, inverse, axes),
            (gradient * y).sum(axis=before),
        ]
        return [*gradients, gradient.sum(axis=before)] if beta else gradients


class RMSNorm(KeepsShape):
    """Division by the root mean square over the last axes, with a scale."""

    __props__ = ("n_axes", "epsilon")
    n_axes: int
    epsilon: float

    def build_inner_graph(self, x: TensorVariable, gamma: TensorVariable) -> list[Variable]:
        """Divide in float32 or wider."""
        return [self._divide(x)[0] * gamma]

    def emit(self, build: Builder, x: ir.Value, gamma: ir.Value) -> ir.Value | None:
        """Emit the operator if the opset has it, else a mean of squares."""
        dtype = dtype_of(x)
        if build.scope.opset_version >= RMS_OPSET and is_float32(self.epsilon, dtype):
            return build.RMSNormalization(x, gamma, axis=-self.n_axes, epsilon=self.epsilon)
        if dtype == ir.DataType.FLOAT16:
            return None
        axes = build.ints(list(range(-self.n_axes, 0)))
        # ONNX Runtime fuses the norm where the square is a power; epsilon is float32 then.
        square = build.Pow(x, np.float32(2)) if dtype == ir.DataType.FLOAT else build.Mul(x, x)
        square = build.ReduceMean(square, axes, keepdims=1)
        return build.Mul(build.Div(x, build.Sqrt(build.Add(square, self.epsilon))), gamma)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Subtract the contribution of the mean square from the gradient."""
        (x, gamma), (gradient,) = inputs, output_grads
        y, inverse = self._divide(x)
        scaled = gradient * gamma
        along = (scaled * y).mean(axis=_last_axes(x, self.n_axes), keepdims=True)
        before = list(range(x.type.ndim - self.n_axes))
        return [inverse * (scaled - y * along), (gradient * y).sum(axis=before)]

    def _divide(self, x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
        wide, dtype = _wide(x), x.type.dtype
        square = pt.sqr(wide).mean(axis=_last_axes(x, self.n_axes), keepdims=True)
        root = pt.sqrt(square + np.asarray(self.epsilon, wide.type.dtype))
        return (wide / root).astype(dtype), (1 / root).astype(dtype)


class InstanceNorm(KeepsShape):
    """Normalisation of each channel of each element of a batch (N, C, *S)."""

    __props__ = ("epsilon",)
    epsilon: float

    def build_inner_graph(
        self, x: TensorVariable, gamma: TensorVariable, beta: TensorVariable
    ) -> list[Variable]:
        """Standardise in float32 or wider."""
        y, _ = standardise(x, _last_axes(x, x.type.ndim - 2), self.epsilon)
        return [y * along_channels(gamma, x) + along_channels(beta, x)]

    def emit(self, build: Builder, x: ir.Value, gamma: ir.Value, beta: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.InstanceNormalization(x, gamma, beta, epsilon=self.epsilon)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Subtract the contributions of mean and deviation from the gradient."""
        (x, gamma, _), (gradient,) = inputs, output_grads
        axes = _last_axes(x, x.type.ndim - 2)
        y, inverse = standardise(x, axes, self.epsilon)
        others = [0, *range(2, x.type.ndim)]
        return [
            standardise_gradient(gradient * along_channels(gamma, x), y, inverse, axes),
            (gradient * y).sum(axis=others),
            gradient.sum(axis=others),
        ]


class GroupNorm(KeepsShape):
    """Normalisation of each group of channels of each element of a batch (N, C, *S).

    Further inputs are a scale and a shift of each channel.
    """

    __props__ = ("groups", "epsilon")
    groups: int
    epsilon: float

    def build_inner_graph(self, x: TensorVariable, *affine: TensorVariable) -> list[Variable]:
        """Treat groups as the channels of `InstanceNorm`."""
        dtype = x.type.dtype
        sizes = sizes_of(x, 1)
        grouped = keep_batch(x, [self.groups, sizes[0] // self.groups, *sizes[1:]])
        one, zero = (np.full(self.groups, number, dtype) for number in (1, 0))
        y = InstanceNorm(epsilon=self.epsilon)(grouped, pt.constant(one), pt.constant(zero))
        y = keep_batch(y, sizes)
        if not affine:
            return [y]
        gamma, beta = affine
        return [y * along_channels(gamma, x) + along_channels(beta, x)]

    def emit(self, build: Builder, x: ir.Value, *affine: ir.Value) -> ir.Value | None:
        """Emit the operator, whose scale has one number for each channel from opset 21 on."""
        if build.scope.opset_version < GROUP_OPSET or not affine:
            return None
        scale, bias = affine
        return build.GroupNormalization(
            x, scale, bias, num_groups=self.groups, epsilon=self.epsilon
        )


class KeepBatch(NetworkOp):
    """Reshape of an array (N, ...) to (N, *sizes)."""

    __props__ = ("sizes",)
    sizes: tuple[int, ...]

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Reshape."""
        return [x.reshape((x.shape[0], *self.sizes))]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator; a size of 0 in its shape stands for the size of the input."""
        return build.Reshape(x, build.ints([0, *self.sizes]))

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Reshape to the original shape."""
        (x,), (gradient,) = inputs, output_grads
        return [keep_batch(gradient, sizes_of(x, 1))]


def keep_batch(x: TensorVariable, sizes: Sequence[Size]) -> TensorVariable:
    """Reshape an array (N, ...) to (N, *sizes), with no known size of 0."""
    known = tuple(size for size in sizes if isinstance(size, int) and size > 0)
    if len(known) == len(sizes):
        return KeepBatch(sizes=known)(x)
    return x.reshape((x.shape[0], *sizes))


def standardise(
    x: TensorVariable, axes: Sequence[int], epsilon: float
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``(x - mean) / deviation`` and the inverse of the deviation, over some axes.

    They are computed in float32 or wider, and have the dtype of x.
    """
    wide = _wide(x)
    centred = wide - wide.mean(axis=axes, keepdims=True)
    var = pt.sqr(centred).mean(axis=axes, keepdims=True)
    deviation = pt.sqrt(var + np.asarray(epsilon, wide.type.dtype))
    return (centred / deviation).astype(x.type.dtype), (1 / deviation).astype(x.type.dtype)


def standardise_gradient(
    gradient: TensorVariable, y: TensorVariable, inverse: TensorVariable, axes: Sequence[int]
) -> TensorVariable:
    """Return the gradient with respect to x from the gradient of its standardised value y."""
    level = gradient.mean(axis=axes, keepdims=True)
    along = (gradient * y).mean(axis=axes, keepdims=True)
    return inverse * (gradient - level - y * along)


def along_channels(vector: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Return a vector over the channels in a shape that broadcasts against an array (N, C, *S)."""
    return vector.dimshuffle("x", 0, *["x"] * (x.type.ndim - 2))


def _wide(x: TensorVariable) -> TensorVariable:
    """Return an array in a dtype in which squares do not overflow."""
    return x.astype("float32") if x.type.dtype == "float16" else x


def _last_axes(x: TensorVariable, count: int) -> list[int]:
    return list(range(x.type.ndim - count, x.type.ndim))


class BatchNorm(KeepsShape):
    """Normalisation of each channel of an array (N, C, *S) by a given mean and variance."""

    __props__ = ("epsilon",)
    epsilon: float

    def build_inner_graph(
        self,
        x: TensorVariable,
        gamma: TensorVariable,
        beta: TensorVariable,
        mean: TensorVariable,
        var: TensorVariable,
    ) -> list[Variable]:
        """Subtract the mean, divide by the deviation, scale and shift."""
        mean, scale = (along_channels(v, x) for v in (mean, gamma / self._deviation(var)))
        return [(x - mean) * scale + along_channels(beta, x)]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Sum over all axes except the channels, each sum once."""
        x, gamma, _, mean, var = inputs
        (gradient,) = output_grads
        inverse = 1 / self._deviation(var)
        others = [axis for axis in range(x.type.ndim) if axis != 1]
        total = gradient.sum(axis=others)
        along_x = (gradient * (x - along_channels(mean, x))).sum(axis=others) * inverse
        scale = gamma * inverse
        half = np.asarray(0.5, dtype=x.type.dtype)
        return [
            gradient * along_channels(scale, x),
            along_x,
            total,
            -total * scale,
            -half * along_x * scale * inverse,
        ]

    def emit(self, build: Builder, *inputs: ir.Value) -> ir.Value:
        """Emit the operator; the rounding error of its epsilon is added to the variance."""
        x, gamma, beta, mean, var = inputs
        if is_float32(self.epsilon, dtype_of(x)):
            return build.BatchNormalization(x, gamma, beta, mean, var, epsilon=self.epsilon)
        if var.const_value is None:
            var = build.Add(var, self.epsilon)
        else:
            var = build.constant(var.const_value.numpy() + self.epsilon)
        return build.BatchNormalization(x, gamma, beta, mean, var, epsilon=0.0)

    def _deviation(self, var: TensorVariable) -> TensorVariable:
        return pt.sqrt(var + np.asarray(self.epsilon, dtype=var.type.dtype))


class BatchNormOfBatch(BatchNorm):
    """Normalisation of each channel by the mean and variance of the array itself.

    They are inputs, as they are used elsewhere, and only the array is differentiated. The gradient
    is the formula of Ioffe and Szegedy (2015), written as three `BatchNormalization` operators.
    """

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return which inputs have a gradient: not the mean and the variance."""
        return [[True], [True], [True], [False], [False]]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Subtract the contributions of mean and variance, which are linear in the array."""
        x, gamma, _, mean, var = inputs
        (gradient,) = output_grads
        zeros, ones = pt.zeros_like(gamma), pt.ones_like(gamma)
        others = [axis for axis in range(x.type.ndim) if axis != 1]
        count = pt.as_tensor(product([size_of(x, axis) for axis in others])).astype(x.type.dtype)
        # The difference is part of the variance, and exact where the mean is large.
        centred = x - along_channels(mean, x)
        standard = BatchNorm(epsilon=self.epsilon)(centred, ones, zeros, zeros, var)
        total = gradient.sum(axis=others)
        along_x = (gradient * standard).sum(axis=others)
        line = BatchNorm(epsilon=0.0)(standard, along_x / count, total / count, zeros, ones)
        through_x = BatchNorm(epsilon=self.epsilon)(gradient - line, gamma, zeros, zeros, var)
        return [through_x, along_x, total, disconnected_type(), disconnected_type()]
