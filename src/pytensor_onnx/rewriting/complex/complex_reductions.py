"""Reduce complex numbers along axes."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Prod, Sum
from pytensor.tensor.variable import TensorVariable

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
def multiply(op: Prod, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return products along one axis, which all reduced axes become."""
    (output,) = node.outputs
    accumulator = _accumulator(op, node)
    dtype = REAL.get(output.type.dtype, output.type.dtype)
    if not is_complex(node.inputs[0]):
        x = pt.cast(inputs[0][0], accumulator)
        product = pt.cast(Prod(axis=op.axis, dtype=accumulator)(x), dtype)
        whole = joined(Parts(product, pt.zeros_like(product)))
        return [[whole if is_complex(output) else product]]
    pairs = reduced_last(pt.cast(inputs[0][0], accumulator), op.axis)
    result = pt.cast(ComplexProd()(pairs), dtype)
    return [[result if is_complex(output) else parts_of(result).real]]


def reduced_last(pairs: TensorVariable, axes: Sequence[int] | None) -> TensorVariable:
    """Return pairs whose last axis but one takes the place of some axes, of all for None.

    Examples
    --------
    >>> reduced_last(pt.tensor("pairs", shape=(2, 3, 4, 2)), (0, 1)).type.shape
    (4, 6, 2)
    """
    rank = pairs.type.ndim - 1
    reduced = range(rank) if axes is None else sorted(axis % rank for axis in axes)
    kept = [axis for axis in range(rank) if axis not in reduced]
    ordered = pairs.dimshuffle(*kept, *reduced, rank)
    if len(reduced) == 1:
        return ordered
    sizes = [pairs.shape[axis] for axis in kept]
    count = pt.prod([pairs.shape[axis] for axis in reduced], dtype="int64")
    return ordered.reshape((*sizes, count, 2))


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
