"""Define the Op that pads spatial axes by zeros, with widths that may be unknown until run time."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.network_op import NetworkOp
from pytensor_onnx.ops.networks.padding import pad_constant

type Width = int | TensorVariable


class ZeroPad(NetworkOp):
    """Array (N, C, *S) with zeros before and after its spatial axes.

    The second input is a vector of widths: those before all spatial axes, then those after them.
    """

    __props__ = ()

    def build_inner_graph(self, x: TensorVariable, widths: TensorVariable) -> list[Variable]:
        """Join the array with zeros, one axis after the other."""
        rank = x.type.ndim - 2
        for axis in range(2, 2 + rank):
            shape = [x.shape[i] for i in range(x.type.ndim)]
            before, after = (
                pt.zeros((*shape[:axis], widths[i], *shape[axis + 1 :]), dtype=x.type.dtype)
                for i in (axis - 2, axis - 2 + rank)
            )
            x = pt.concatenate([before, x, after], axis=axis)
        return [x]

    def emit(self, build: Builder, x: ir.Value, widths: ir.Value) -> ir.Value:
        """Emit the operator, for the spatial axes."""
        return build.Pad(x, widths, None, build.ints(range(2, len(build.dims(x)))))

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Declare that the widths have no gradient."""
        return [[True], [False]]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Slice the gradient to the original array."""
        x, widths = inputs
        (cotangent,) = cotangents
        box = [
            slice(widths[axis - 2], widths[axis - 2] + x.shape[axis])
            for axis in range(2, x.type.ndim)
        ]
        return [cotangent[(slice(None), slice(None), *box)], disconnected_type()]


def pad_with_zeros(x: TensorVariable, pads: Sequence[tuple[Width, Width]]) -> TensorVariable:
    """Add zeros before and after each spatial axis of an array (N, C, *S).

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> pad_with_zeros(pt.tensor(shape=(1, 1, 3)), [(1, 2)]).type.shape
    (1, 1, 6)
    """
    if all(isinstance(width, int) for pair in pads for width in pair):
        return pad_constant(x, ((0, 0), (0, 0), *pads), 0)
    widths = [
        np.int64(w) if isinstance(w, int) else w for i in (0, 1) for w in (p[i] for p in pads)
    ]
    return ZeroPad()(x, pt.stack(widths))
