"""Define the Ops of batch norm: for prediction, and with batch statistics for training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.attributes import is_float32
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.ops.networks.network_op import KeepsShape
from pytensor_onnx.ops.networks.norm_ops import along_channels
from pytensor_onnx.ops.networks.static_sizes import size_of
from pytensor_onnx.ops.networks.taps import product


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
