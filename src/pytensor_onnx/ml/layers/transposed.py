"""Recognise transposed convolution layers of pytensor-ml and their cropping.

pytensor-ml writes them as the gradient of a convolution of zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar import Add, Mul, Sub
from pytensor.tensor.basic import Alloc, ScalarFromTensor
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.subtensor import Subtensor, get_idx_list

from pytensor_onnx.rewriting.engine.predicates import (
    elementwise,
    filling_of,
    made_by,
    only_client,
    size_of,
)

type Pairs = tuple[tuple[int, int], ...]
type Linear = tuple[int, int]
"""A size as a multiple of another, plus a number."""


def to_first(x: Variable) -> Variable:
    """Transpose (N, *S, C) to (N, C, *S)."""
    return x.dimshuffle(0, x.type.ndim - 1, *range(1, x.type.ndim - 1))


def to_last(x: Variable) -> Variable:
    """Transpose (N, C, *S) to (N, *S, C)."""
    return x.dimshuffle(0, *range(2, x.type.ndim), 1)


def filters_of(layer_filters: Variable) -> Variable:
    """Transpose filters of pytensor-ml, (*K, C, O), to (O, C, *K)."""
    rank = layer_filters.type.ndim
    order = (rank - 1, rank - 2, *range(rank - 2))
    swapped = layer_filters.owner
    if swapped is not None and isinstance(swapped.op, DimShuffle) and swapped.op.is_transpose:
        order = tuple(swapped.op.new_order[i] for i in order)
        layer_filters = swapped.inputs[0]
    if isinstance(layer_filters, Constant):
        filters = np.ascontiguousarray(layer_filters.data.transpose(order))
        return pt.constant(filters, name=layer_filters.name)
    return layer_filters.dimshuffle(order)


def geometry_of(op: Any, pads: Pairs) -> dict[str, Any]:
    """Return the geometry of a layer as arguments of the convolutions of `nn`."""
    return {
        "filter_sizes": op.kernel_size,
        "pads": pads,
        "strides": op.stride,
        "dilations": op.dilation,
        "groups": 1,
    }


def transposed_layer(fgraph: FunctionGraph, node: Apply) -> tuple[Variable, Variable] | None:
    """Return the output of a transposed convolution layer, and the operation that computes it.

    The layer is the gradient of a convolution of zeros, which only lend their shape. The crop
    of the layer's padding, and its bias, become part of the operation.
    """
    from pytensor_onnx.ops.networks.conv_ops import ConvTranspose

    zeros, layer_filters, x = node.inputs
    target: Variable = node.outputs[0]
    if zeros.owner is None or not isinstance(zeros.owner.op, Alloc):
        return None
    sizes = [_linear(size, x, axis) for axis, size in enumerate(zeros.owner.inputs[2:-1], start=1)]
    extras = _extras(node.op, sizes, x)
    if extras is None:
        return None
    pads: Pairs = ((0, 0),) * len(sizes)
    cut = _sole_client(fgraph, target, Subtensor)
    cropped = None if cut is None else _crop(cut, sizes, x)
    if cut is not None and cropped is not None:
        target, pads = cut.outputs[0], cropped
    bias = []
    added = _sole_client(fgraph, target, Elemwise)
    if added is not None and (vector := _bias(added, target)) is not None:
        target = added.outputs[0]
        bias.append(vector)
    op = ConvTranspose(**geometry_of(node.op, pads), output_padding=extras)
    return target, to_last(op(to_first(x), filters_of(layer_filters), *bias))


def _extras(op: Any, sizes: list[Linear | None], x: Variable) -> tuple[int, ...] | None:
    """Return the number of elements beyond the last window on each axis, less than a stride."""
    extras = []
    for axis, size in enumerate(sizes):
        stride = op.stride[axis]
        reach = op.dilation[axis] * (op.kernel_size[axis] - 1) + 1
        extra = _difference(size, (stride, reach - stride), x.type.shape[axis + 1])
        if extra is None or not 0 <= extra < stride:
            return None
        extras.append(extra)
    return tuple(extras)


def _crop(node: Apply, sizes: list[Linear | None], x: Variable) -> Pairs | None:
    """Return the number of elements that are cropped before and after each spatial axis."""
    index = get_idx_list(node.inputs, node.op.idx_list)
    if len(index) != len(sizes) + 2 or index[0] != slice(None) or index[-1] != slice(None):
        return None
    pads = []
    for axis, (size, part) in enumerate(zip(sizes, index[1:-1], strict=True), start=1):
        if not isinstance(part, slice) or part.step is not None or part.stop is None:
            return None
        start = (0, 0) if part.start is None else _linear(part.start, x, axis)
        stop = _linear(part.stop, x, axis)
        if start is None or start[0] or stop is None:
            return None
        after = _difference(size, stop, x.type.shape[axis])
        if after is None or start[1] < 0 or after < 0:
            return None
        pads.append((start[1], after))
    return tuple(pads)


def _difference(first: Linear | None, second: Linear, known: int | None) -> int | None:
    """Return the difference of two sizes, None if it is not a number."""
    if first is None:
        return None
    multiple = first[0] - second[0]
    if multiple and known is None:
        return None
    return multiple * (known or 0) + first[1] - second[1]


def _linear(size: Any, x: Variable, axis: int) -> Linear | None:
    """Return a size as a multiple of the size of an axis, plus a number."""
    if (number := filling_of(size)) is not None:
        return 0, int(number)
    if (converted := made_by(size, ScalarFromTensor | DimShuffle)) is not None:
        return _linear(converted.inputs[0], x, axis)
    if size_of(size) == (x, axis):
        return 1, 0
    node = elementwise(size)
    if node is None or len(node.inputs) != 2:
        return None
    first, second = (_linear(v, x, axis) for v in node.inputs)
    if first is None or second is None:
        return None
    match node.op.scalar_op:
        case Add():
            return first[0] + second[0], first[1] + second[1]
        case Sub():
            return first[0] - second[0], first[1] - second[1]
        case Mul() if not first[0] or not second[0]:
            return first[0] * second[1] + first[1] * second[0], first[1] * second[1]
    return None


def _sole_client(fgraph: FunctionGraph, x: Variable, op: type) -> Apply | None:
    client = only_client(fgraph, x)
    return client if client is not None and isinstance(client.op, op) else None


def _bias(node: Apply, x: Variable) -> Variable | None:
    """Return the vector that a node adds to each channel."""
    if not isinstance(node.op.scalar_op, Add) or len(node.inputs) != 2:
        return None
    other = node.inputs[1] if node.inputs[0] is x else node.inputs[0]
    spread = other.owner
    if spread is None or not isinstance(spread.op, DimShuffle) or other.type.ndim != x.type.ndim:
        return None
    vector = spread.inputs[0]
    per_channel = ("x",) * (x.type.ndim - 1) + (0,)
    if vector.type.ndim != 1 or tuple(spread.op.new_order) != per_channel:
        return None
    return vector if vector.type.dtype == x.type.dtype == node.outputs[0].type.dtype else None
