"""Define the Ops of global pooling of arrays (N, C, *S): one number for each channel."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.network_op import NetworkOp
from pytensor_onnx.ops.networks.powers import absolute_power, over_power, root, slope


class GlobalPool(NetworkOp):
    """Base of the Ops of global pooling."""

    __props__: tuple[str, ...] = ()

    def _axes(self, x: TensorVariable) -> list[int]:
        return list(range(2, x.type.ndim))


class GlobalMaxPool(GlobalPool):
    """Maximum of each channel, NaN for a channel with a NaN."""

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Reduce the spatial axes."""
        return [pt.max(x, axis=self._axes(x), keepdims=True)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.GlobalMaxPool(x)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Route the channel's gradient to its first maximum."""
        (x,), (gradient,) = inputs, output_grads
        flat = x.flatten(3)
        wins = pt.eq(pt.arange(flat.shape[2]), pt.argmax(flat, axis=2, keepdims=True))
        return [pt.switch(wins, gradient.flatten(3), pt.zeros_like(flat)).reshape(x.shape)]


class GlobalAveragePool(GlobalPool):
    """Mean of each channel."""

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Reduce the spatial axes."""
        return [pt.mean(x, axis=self._axes(x), keepdims=True).astype(x.type.dtype)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.GlobalAveragePool(x)


class GlobalLpPool(GlobalPool):
    """The p-norm of each channel."""

    __props__ = ("p",)
    p: int

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Reduce the spatial axes."""
        total = pt.sum(absolute_power(x, self.p), axis=self._axes(x), keepdims=True)
        return [root(total, self.p).astype(x.type.dtype)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.GlobalLpPool(x, p=self.p)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Differentiate the norm, with a gradient of zero at zero."""
        (x,), (y,), (gradient,) = inputs, outputs, output_grads
        return [slope(x, self.p) * over_power(gradient, y, self.p)]
