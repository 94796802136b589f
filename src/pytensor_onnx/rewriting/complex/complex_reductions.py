"""Reduce complex numbers along axes."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Prod, Sum

from pytensor_onnx.encodings.complex_numbers import REAL
from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.complex import ComplexCumProd, ComplexProd
from pytensor_onnx.rewriting.complex.complex_parts import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    parts_of,
)
from pytensor_onnx.rewriting.complex.complex_structure import by_part


@ENCODING.rewrites(Sum)
def add(op: Sum, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the sums of the parts, or of the real part for a real result."""
    (output,) = node.outputs
    accumulator = _accumulator(op, node)
    dtype = REAL.get(output.type.dtype, output.type.dtype)
    given = parts_of(inputs[0][0]) if is_complex(node.inputs[0]) else inputs[0]
    reduction = Sum(axis=op.axis, dtype=accumulator)
    sums = [pt.cast(reduction(pt.cast(part, accumulator)), dtype) for part in given]
    real, imag = sums[0], sums[1] if len(sums) == 2 else pt.zeros_like(sums[0])
    return [[joined(Parts(real, imag)) if is_complex(output) else real]]


@ENCODING.rewrites(Prod)
def multiply(op: Prod, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return products along one axis, which all reduced axes become."""
    if op.no_zeros_in_input:
        return None
    (output,) = node.outputs
    accumulator = _accumulator(op, node)
    dtype = REAL.get(output.type.dtype, output.type.dtype)
    if not is_complex(node.inputs[0]):
        x = pt.cast(inputs[0][0], accumulator)
        product = pt.cast(Prod(axis=op.axis, dtype=accumulator)(x), dtype)
        whole = joined(Parts(product, pt.zeros_like(product)))
        return [[whole if is_complex(output) else product]]
    pairs = pt.cast(inputs[0][0], accumulator)
    rank = node.inputs[0].type.ndim
    reduced = range(rank) if op.axis is None else sorted(axis % rank for axis in op.axis)
    kept = [axis for axis in range(rank) if axis not in reduced]
    sizes = [pairs.shape[axis] for axis in kept]
    count = pt.prod([pairs.shape[axis] for axis in reduced], dtype="int64")
    pairs = pairs.dimshuffle(*kept, *reduced, rank).reshape((*sizes, count, 2))
    result = pt.cast(ComplexProd()(pairs), dtype)
    return [[result if is_complex(output) else parts_of(result).real]]


def _accumulator(op: CAReduce, node: Apply) -> str:
    """Return the dtype of the parts while they are added or multiplied."""
    dtype = op.acc_dtype or op.dtype or node.outputs[0].type.dtype
    return REAL.get(dtype, dtype)


@ENCODING.rewrites(CumOp)
def accumulate(op: CumOp, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return cumulative sums of the parts, or cumulative products along the last axis."""
    if op.mode == "add":
        return by_part(op, node, inputs, slice(1))
    last = node.inputs[0].type.ndim - 1
    pairs = inputs[0][0].swapaxes(op.axis, last)
    return [[ComplexCumProd()(pairs).swapaxes(op.axis, last)]]
