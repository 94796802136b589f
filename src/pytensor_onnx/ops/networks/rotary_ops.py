"""Define the Op of rotary position embeddings, which rotates pairs of features."""

from collections.abc import Sequence

import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.networks.network_op import KeepsShape

OPERATOR_OPSET = 23


class RotaryEmbedding(KeepsShape):
    """Rotation of pairs of features of x (batch, heads, length, size) by angles.

    The cosine and sine of the angles have the shape (batch, length, half); or (positions, half),
    with positions of shape (batch, length) as fourth input.

    Parameters
    ----------
    interleaved
        Whether adjacent features are a pair, or one feature of each half.
    half
        Number of pairs; further features are unchanged.
    """

    __props__ = ("interleaved", "half")
    interleaved: bool
    half: int

    def build_inner_graph(
        self, x: TensorVariable, cos: TensorVariable, sin: TensorVariable, *positions: Variable
    ) -> list[Variable]:
        """Rotate each pair by the angle at its position."""
        cos, sin = (table[positions[0]] if positions else table for table in (cos, sin))
        cos, sin = cos[:, None], sin[:, None]
        turned = self.half * 2
        whole = x.type.shape[3] == turned
        first, second = self._pairs(x if whole else x[..., :turned])
        pairs = first * cos - second * sin, second * cos + first * sin
        if not self.interleaved:
            return [pt.concatenate([*pairs, *([] if whole else [x[..., turned:]])], axis=3)]
        result = pt.join_dims(pt.stack(pairs, axis=4), start_axis=3, n_axes=2)
        return [result if whole else pt.concatenate([result, x[..., turned:]], axis=3)]

    def _pairs(self, x: TensorVariable) -> Sequence[TensorVariable]:
        if self.interleaved:
            return x[..., ::2], x[..., 1::2]
        return pt.split(x, [self.half] * 2, axis=3)

    def emit(self, build: Builder, *inputs: ir.Value) -> ir.Value | None:
        """Emit one operator if ONNX has it for the dtype, which excludes float64."""
        x, cos, sin, *positions = inputs
        if build.scope.opset_version < OPERATOR_OPSET or x.dtype == ir.DataType.DOUBLE:
            return None
        if not positions and build.dims(cos)[0] != build.dims(x)[0]:
            if build.dims(cos)[0] != 1 or build.dims(cos)[1] == 1:
                return None
            # The operator has no tables for all texts of a batch.
            shape = build.Concat(build.sizes(x, 0, 1), build.ints([1, 1]), axis=0)
            cos, sin = (build.Expand(table, shape) for table in (cos, sin))
        given = positions[0] if positions else cos
        sizes = zip(build.dims(x)[::2], build.dims(given)[:2], strict=True)
        if any((size == 1) != (own == 1) for size, own in sizes):
            # The operator does not broadcast, except to the sizes of x.
            if not positions or 1 in build.dims(x)[::2]:
                return None
            batch, length = build.sizes(x, 0, 1), build.sizes(x, 2, 3)
            positions = [build.Expand(given, build.Concat(batch, length, axis=0))]
        return build.RotaryEmbedding(
            x,
            cos,
            sin,
            *(build.cast(ids, "int64") for ids in positions),
            interleaved=int(self.interleaved),
            rotary_embedding_dim=self.half * 2,
        )

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Rotate back; the inner graph gives the gradient with respect to the angles."""
        x, cos, sin, *positions = inputs
        (cotangent,) = cotangents
        (result,) = self.build_inner_graph(x, cos, sin, *positions)
        tables = pt.grad(None, [cos, sin], known_grads={result: cotangent})
        back = self(cotangent, cos, -sin, *positions)
        return [back, *tables, *(pt.zeros(ids.shape) for ids in positions)]
