"""Define the Op of padding by a constant."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.network_op import NetworkOp
from pytensor_onnx.ops.networks.static_sizes import sizes_of

Widths = tuple[tuple[int, int], ...]


class ConstantPad(NetworkOp):
    """Array with a constant value added before and after it along each axis.

    Parameters
    ----------
    widths
        Number of elements added before and after, for each axis.
    value
        The constant.
    """

    __props__ = ("widths", "value")
    widths: Widths
    value: float

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Join the array with the constant, one axis after the other."""
        fill = np.asarray(self.value, dtype=x.type.dtype)
        for axis, widths in enumerate(self.widths):
            sizes = sizes_of(x, 0)
            before, after = (
                [pt.full((*sizes[:axis], width, *sizes[axis + 1 :]), fill)] if width else []
                for width in widths
            )
            x = pt.concatenate([*before, x, *after], axis=axis)
        return [x]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator, whose widths are first those before all axes."""
        pads = build.ints([pair[i] for i in (0, 1) for pair in self.widths])
        return build.Pad(x, pads, *([] if self.value == 0 else [build.number_like(x, self.value)]))

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Slice the gradient to the original array."""
        (gradient,) = output_grads
        return [
            gradient[
                tuple(slice(before, -after if after else None) for before, after in self.widths)
            ]
        ]


def pad_constant(x: TensorVariable, widths: Widths, value: float) -> TensorVariable:
    """Pad an array by a constant; return the array for widths of zero."""
    if not any(map(any, widths)):
        return x
    return ConstantPad(widths=widths, value=value)(x)
