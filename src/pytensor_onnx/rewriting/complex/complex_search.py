"""Find equal complex numbers, and the places of numbers among sorted ones."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.extra_ops import SearchsortedOp, Unique
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.complex_numbers import REAL
from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.complex.complex_arithmetic import each
from pytensor_onnx.rewriting.complex.complex_order import ascending, taken
from pytensor_onnx.rewriting.complex.complex_parts import (
    ENCODING,
    Parts,
    joined,
    operands,
    parts_of,
)


@ENCODING.rewrites(SearchsortedOp)
def search(op: SearchsortedOp | Blockwise, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Search integers that are ordered as the numbers are."""
    (x, v), (_, _, *sorter) = node.inputs[:2], inputs
    common = np.promote_types(x.type.dtype, v.type.dtype).name
    numbers = operands([x, v], inputs[:2], REAL[common])
    flat = [_flat(Parts(z.real, z.imag + pt.zeros_like(z.real))) for z in numbers]
    ranks = _ranks(each(lambda a, b: pt.concatenate([a, b]), *flat))
    count = flat[0].real.shape[0]
    halves = ranks[:count], ranks[count:]
    arrays = [half.reshape(z.real.shape) for half, z in zip(halves, numbers, strict=True)]
    return [[op(*arrays, *(order for (order,) in sorter))]]


@ENCODING.rewrites(Unique)
def unique(op: Unique, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the different numbers, or slices along an axis, in ascending order."""
    ((pairs,),) = inputs
    results = _unique_numbers(op, pairs) if op.axis is None else _unique_slices(op, pairs)
    return [[result] for result in results]


def _unique_numbers(op: Unique, pairs: TensorVariable) -> list[TensorVariable]:
    """Return the first of equal numbers in ascending order; all NaN are equal."""
    z = _flat(parts_of(pairs))
    order = ascending(z, 0)
    z = taken(z, order, 0)
    is_nan = _is_nan(z)
    differs = _differs_from_last(z) & ~(is_nan[1:] & is_nan[:-1])
    is_new = pt.concatenate([pt.ones_like(is_nan[:1]), differs])
    (first,) = pt.nonzero(is_new)
    results = [joined(z[first])]
    if op.return_index:
        results.append(order[first])
    if op.return_inverse:
        results.append(_scattered(_count(is_new) - 1, order))
    if op.return_counts:
        results.append(pt.diff(pt.concatenate([first, order.shape])))
    return results


def _unique_slices(op: Unique, pairs: TensorVariable) -> list[TensorVariable]:
    """Return the different slices along an axis; one with NaN is equal to no other one."""
    z = parts_of(pairs)
    n = pairs.shape[op.axis]
    size = pt.prod(z.real.shape, dtype="int64") // pt.maximum(n, 1)

    def rows(x: TensorVariable) -> TensorVariable:
        return pt.moveaxis(x, op.axis, 0).reshape((n, size))

    ranks = _ranks(_flat(z)).reshape(z.real.shape)
    number = pt.switch(pt.any(rows(_is_nan(z)), axis=1), pt.arange(n), -1)
    unique_rows = Unique(True, op.return_inverse, op.return_counts, axis=0)
    _, index, *others = unique_rows(pt.concatenate([rows(ranks), number[:, None]], axis=1))
    slices = pt.take(pairs, index, axis=op.axis)
    return [slices, index, *others] if op.return_index else [slices, *others]


def _ranks(z: Parts) -> TensorVariable:
    """Return integers that are ordered as the numbers of a vector, with equal ones for equal ones.

    Two NaN in the same part are equal.
    """
    order = ascending(z, 0)
    differs = _differs_from_last(taken(z, order, 0))
    ranks = pt.concatenate([pt.zeros_like(order[:1]), _count(differs)])
    return _scattered(ranks, order)


def _differs_from_last(z: Parts) -> TensorVariable:
    """Return whether each number of a vector but the first differs from the number before it."""
    changes = [
        pt.neq(part[1:], part[:-1]) & ~(pt.isnan(part[1:]) & pt.isnan(part[:-1])) for part in z
    ]
    return changes[0] | changes[1]


def _count(conditions: TensorVariable) -> TensorVariable:
    """Return how many of the first conditions hold, for each of them."""
    return pt.cumsum(pt.cast(conditions, "int64"))


def _is_nan(z: Parts) -> TensorVariable:
    return pt.isnan(z.real) | pt.isnan(z.imag)


def _scattered(values: TensorVariable, positions: TensorVariable) -> TensorVariable:
    return pt.zeros_like(positions)[positions].set(values)


def _flat(z: Parts) -> Parts:
    return each(pt.flatten, z)
