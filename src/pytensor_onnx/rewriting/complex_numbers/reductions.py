"""Reduce complex numbers along axes."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Prod, Sum

from pytensor_onnx.encodings.complex_numbers import REAL
from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.complex_numbers import ComplexCumProd, ComplexProd
from pytensor_onnx.rewriting.complex_numbers.parts import (
    ENCODING,
    Parts,
    joined,
    operand,
    real_dtype,
)
from pytensor_onnx.rewriting.complex_numbers.structure import by_part


@ENCODING.rewrites(Sum)
def add(op: Sum, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the sums of the parts."""
    dtype = real_dtype(*node.outputs)
    accumulator = REAL.get(op.acc_dtype or "", dtype)
    parts = operand(node.inputs[0], inputs[0], dtype)
    reduction = Sum(axis=op.axis, dtype=dtype, acc_dtype=accumulator)
    return [[joined(Parts(*map(reduction, parts)))]]


@ENCODING.rewrites(Prod)
def multiply(op: Prod, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return products along one axis, which all reduced axes become."""
    if op.no_zeros_in_input:
        return None
    dtype = real_dtype(*node.outputs)
    accumulator = REAL.get(op.acc_dtype or "", dtype)
    pairs = pt.cast(inputs[0][0], accumulator)
    rank = node.inputs[0].type.ndim
    reduced = range(rank) if op.axis is None else sorted(axis % rank for axis in op.axis)
    kept = [axis for axis in range(rank) if axis not in reduced]
    sizes = [pairs.shape[axis] for axis in kept]
    count = pt.prod([pairs.shape[axis] for axis in reduced], dtype="int64")
    pairs = pairs.dimshuffle(*kept, *reduced, rank).reshape((*sizes, count, 2))
    return [[pt.cast(ComplexProd()(pairs), dtype)]]


@ENCODING.rewrites(CumOp)
def accumulate(op: CumOp, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return cumulative sums of the parts, or cumulative products along the last axis."""
    if op.mode == "add":
        return by_part(op, node, inputs, slice(1))
    last = node.inputs[0].type.ndim - 1
    pairs = inputs[0][0].swapaxes(op.axis, last)
    return [[ComplexCumProd()(pairs).swapaxes(op.axis, last)]]
