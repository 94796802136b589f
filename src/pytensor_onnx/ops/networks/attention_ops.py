"""Attention and rotary embeddings."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import sum_dim
from pytensor_onnx.ops.networks.network_op import KeepsShape, NetworkOp

OPERATOR_OPSET = 23


class SafeSoftmax(KeepsShape):
    """Softmax along an axis, zero where no score is finite, which has a gradient of zero there."""

    __props__ = ("axis",)
    axis: int

    def build_inner_graph(self, scores: TensorVariable) -> list[Variable]:
        """Replace the scores of such rows before the softmax, so that gradients are not NaN."""
        top = pt.max(scores, axis=self.axis, keepdims=True)
        is_dead, zero = pt.isnan(top) | pt.isinf(top), np.asarray(0, scores.type.dtype)
        shares = pt.special.softmax(pt.switch(is_dead, zero, scores), axis=self.axis)
        return [pt.switch(is_dead, zero, shares)]

    def emit(self, build: Builder, scores: ir.Value) -> ir.Value:
        """Emit the softmax, whose NaN become zeros."""
        shares = build.Softmax(scores, axis=self.axis)
        return build.Where(build.IsNaN(shares), 0.0, shares)

    def inner_operands(self, operands: Sequence[ir.Value | None]) -> list[ir.Value]:
        """Return the operand of the softmax, which the emitted choice takes last."""
        shares = operands[-1]
        softmax = None if shares is None else shares.producer()
        assert softmax is not None
        return [v for v in softmax.inputs if v is not None]


class Attention(NetworkOp):
    """Attention; the inputs are q, k, v, then a mask, then past keys and values.

    Parameters
    ----------
    q_num_heads, kv_num_heads
        Numbers of heads in the last axis of arrays of rank 3; 0 for arrays of rank 4.
    scale
        Factor of the products, None for one over the square root of the size of a head.
    is_causal
        Whether a query uses only the keys up to its own position, counted from the first past
        key.
    ends_together
        Whether, if causal, the last query has the position of the last key.
    softcap
        Bound of the scores, 0 for none.
    has_mask, has_past
        Whether the optional inputs are present.
    """

    __props__ = (
        *("q_num_heads", "kv_num_heads", "scale", "is_causal", "ends_together", "softcap"),
        *("has_mask", "has_past"),
    )
    q_num_heads: int
    kv_num_heads: int
    scale: float | None
    is_causal: bool
    ends_together: bool
    softcap: float
    has_mask: bool
    has_past: bool

    def build_inner_graph(
        self, q: TensorVariable, k: TensorVariable, v: TensorVariable, *others: TensorVariable
    ) -> list[Variable]:
        """Return the result, and the keys and values for the next step."""
        mask = others[0] if self.has_mask else None
        keys, values = (self._heads_first(x) for x in (k, v))
        present, past_length = [], None
        if self.has_past:
            past_length = others[-2].shape[2]
            keys = pt.concatenate([others[-2], keys], axis=2)
            values = pt.concatenate([others[-1], values], axis=2)
            present = [keys, values]
        elif self.ends_together:
            past_length = keys.shape[2] - q.shape[-2 if q.type.ndim == 4 else 1]
        groups = self._groups(q, k)
        queries = self._grouped_queries(q, groups)
        if groups:
            keys, values = keys[:, :, None], values[:, :, None]
        scores = (queries @ keys.mT) * self._scale(queries)
        if self.softcap:
            cap = np.asarray(self.softcap, dtype=q.type.dtype)
            scores = cap * pt.tanh(scores / cap)
        if self.is_causal and not (self.has_past and queries.type.shape[-2] == 1):
            scores = scores + _causal_mask(scores, past_length)
        if mask is not None:
            scores = _masked(scores, _grouped_mask(mask, groups) if groups else mask)
        result = pt.special.softmax(scores, axis=-1) @ values
        return [self._as_given(result, q, groups), *present]

    def _groups(self, q: TensorVariable, k: TensorVariable) -> tuple[int, int] | None:
        """Return the numbers of key heads and of query heads a key head, or None if that is 1."""
        merged = q.type.ndim == 3
        heads = self.q_num_heads if merged else q.type.shape[1]
        fewer = self.kv_num_heads if merged else k.type.shape[1]
        return None if not heads or not fewer or heads == fewer else (fewer, heads // fewer)

    def _heads_first(self, x: TensorVariable) -> TensorVariable:
        return split_heads(x, self.kv_num_heads) if x.type.ndim == 3 else x

    def _grouped_queries(self, q: TensorVariable, groups: tuple[int, int] | None) -> TensorVariable:
        if q.type.ndim == 3:
            return split_heads(q, *(groups or (self.q_num_heads,)))
        return q if groups is None else pt.split_dims(q, shape=groups, axis=1)

    def _scale(self, queries: TensorVariable) -> Any:
        dtype, size = queries.type.dtype, queries.type.shape[-1]
        if self.scale is not None:
            return np.asarray(self.scale, dtype=dtype)
        if size is not None:
            return np.asarray(size**-0.5, dtype=dtype)
        return 1 / pt.sqrt(queries.shape[-1].astype(dtype))

    def _as_given(
        self, result: TensorVariable, q: TensorVariable, groups: tuple[int, int] | None
    ) -> TensorVariable:
        if q.type.ndim == 3:
            return merge_heads(result)
        return result if groups is None else pt.join_dims(result, start_axis=1, n_axes=2)

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Infer the sizes of the results from the sizes of the inputs."""
        q, k, v, *others = input_shapes
        sizes = zip(node.inputs[:3], input_shapes, strict=False)
        batch = next((shape[0] for x, shape in sizes if x.type.shape[0] != 1), q[0])
        if self.q_num_heads:
            known = node.outputs[0].type.shape[2]
            groups = self.q_num_heads // self.kv_num_heads
            shapes = [[batch, q[1], v[2] * groups if known is None else pt.constant(known)]]
        else:
            shapes = [[batch, *q[1:3], v[3]]]
        if self.has_past:
            length = k[1 if self.q_num_heads else 2]
            shapes += [[*past[:2], past[2] + length, past[3]] for past in others[-2:]]
        return shapes

    def simplified(self, build: Builder, *inputs: ir.Value) -> NetworkOp:
        """Return an Op with the causal mask counted from the first key, if that is equivalent."""
        q, k, v, *others = inputs
        mask = others.pop(0) if self.has_mask else None
        build.equate_operands("Attention", [q, k, v, mask, *others], self._props_dict())
        if self.is_causal and self.ends_together and self._has_key_for_each_query(build, inputs):
            return Attention(self.input_types, **{**self._props_dict(), "ends_together": False})
        return self

    def emit(self, build: Builder, *inputs: ir.Value) -> list[ir.Value] | None:
        """Emit one operator if ONNX has it with the same meaning.

        The operator has its scale in float32, and leaves undefined the result of a query without a
        key, and whether scores are capped before or after they are masked.
        """
        repeats = len({build.dims(x)[0] == 1 for x in inputs}) > 1
        ends = self.is_causal and self.ends_together
        is_narrower = inputs[0].dtype == ir.DataType.DOUBLE
        if repeats or ends or self.has_mask or self.softcap or is_narrower:
            return None
        if build.scope.opset_version < OPERATOR_OPSET:
            return None
        q, k, v, *past = inputs
        heads = {"q_num_heads": self.q_num_heads, "kv_num_heads": self.kv_num_heads}
        results = build.op(
            "Attention",
            *(q, k, v, *([None, *past] if past else [])),
            is_causal=int(self.is_causal),
            outputs=3 if past else 1,
            **(heads if self.q_num_heads else {}),
            **({} if self.scale is None else {"scale": self.scale}),
        )
        results = results if past else [results]
        if build.in_function:
            return results
        results[0].shape = ir.Shape([*build.dims(q)[:-1], None])
        for result, before, new in zip(results[1:], past, (k, v), strict=False):
            dims, added = build.dims(before), build.dims(new)[1 if self.q_num_heads else 2]
            length = sum_dim([build.scope.dims.canonical(dim) for dim in (dims[2], added)])
            result.shape = ir.Shape([*dims[:2], length, dims[3]])
        return results

    def _has_key_for_each_query(self, build: Builder, inputs: Sequence[ir.Value]) -> bool:
        length = 1 if self.q_num_heads else 2
        first, second = (build.scope.dims.canonical(build.dims(x)[length]) for x in inputs[:2])
        return first is not None and first == second


def split_heads(x: TensorVariable, *heads: int) -> TensorVariable:
    """Reshape (batch, length, heads * size) to (batch, heads, length, size)."""
    width, number = x.type.shape[2], math.prod(heads)
    size = x.shape[2] // number if width is None else width // number
    split = x.reshape((x.shape[0], x.shape[1], *heads, size))
    return split.dimshuffle(0, *range(2, 2 + len(heads)), 1, 2 + len(heads))


def merge_heads(x: TensorVariable) -> TensorVariable:
    """Reshape (batch, heads, length, size) to (batch, length, heads * size)."""
    rank = x.type.ndim
    heads_last = x.dimshuffle(0, rank - 2, *range(1, rank - 2), rank - 1)
    return pt.join_dims(heads_last, start_axis=2, n_axes=rank - 2)


def _causal_mask(scores: TensorVariable, past_length: TensorVariable | None) -> TensorVariable:
    never = np.asarray(-np.inf, dtype=scores.type.dtype)
    rows, columns = (pt.arange(scores.shape[axis]) for axis in (-2, -1))
    last = rows if past_length is None else rows + past_length
    return pt.where(columns <= last[:, None], np.zeros_like(never), never)


def _masked(scores: TensorVariable, mask: TensorVariable) -> TensorVariable:
    if mask.type.dtype != "bool":
        return scores + mask
    return pt.where(mask, scores, np.asarray(-np.inf, dtype=scores.type.dtype))


def _grouped_mask(mask: TensorVariable, groups: tuple[int, int]) -> TensorVariable:
    """Reshape a mask for (batch, heads, ...) to (batch, groups, heads of one, ...)."""
    if mask.type.ndim < 3:
        return mask
    axis = mask.type.ndim - 3
    if mask.type.shape[axis] == 1:
        return pt.expand_dims(mask, axis)
    return pt.split_dims(mask, shape=groups, axis=axis)


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
