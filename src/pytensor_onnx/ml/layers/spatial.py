"""Convolutions, pools and padding of pytensor-ml.

The layers take arrays (N, *S, C), ONNX takes (N, C, *S). Each operation gets a transposition on
either side; between successive layers, a pass over the model cancels them. Zero padding before a
layer becomes its own padding.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.scalar import Add, Mul, Sub
from pytensor.tensor.basic import Alloc, ScalarFromTensor
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.pad import Pad
from pytensor.tensor.subtensor import Subtensor, get_idx_list

from pytensor_onnx.ml.layers.inlining import differentiated
from pytensor_onnx.rewriting.engine.predicates import (
    elementwise,
    filling_of,
    made_by,
    number_of,
    only_client,
    size_of,
)
from pytensor_onnx.rules import rewrites_graphs

# Recognise transposed convolution layers of pytensor-ml and their cropping.
#
# pytensor-ml writes them as the gradient of a convolution of zeros.

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


LAYER_MODULE = "pytensor_ml.layers.conv"


@rewrites_graphs(
    family="networks",
    purpose="conversion",
    identity="conv(x: N, *S, C) = transpose(conv(transpose(x)))",
    requires="layers of pytensor-ml and their gradients",
    ensures="padding before a layer is the layer's own",
)
def channels_first(fgraph: FunctionGraph) -> None:
    """Replace the layers with windows, and their gradients."""
    if LAYER_MODULE not in sys.modules:
        return
    for node in fgraph.toposort():
        make = _FORMS.get(_layer_name(node.op))
        if make is None:
            continue
        for old, new in make(fgraph, node):
            if new.owner is not None and isinstance(new.owner.op, DimShuffle):
                # The transposition may be cancelled, and its name with it.
                new.owner.inputs[0].name = old.name
            fgraph.replace(old, new, reason="channels_first", import_missing=True)


def _layer_name(op: Op) -> str:
    """Return the name of a layer with windows; pytensor-ml need not be installed."""
    return type(op).__qualname__ if type(op).__module__ == LAYER_MODULE else ""


def _channels_last_filters(filters: Variable) -> Variable:
    """Transpose filters (O, C, *K) to pytensor-ml's order (*K, C, O)."""
    return filters.dimshuffle(*range(2, filters.type.ndim), 1, 0)


@dataclass
class _Operand:
    """Array under the windows of a layer, and its padding.

    Attributes
    ----------
    array
        The array, without the padding.
    pads
        Numbers of elements added before and after each spatial axis.
    padding
        The node of the padding, if any.
    """

    array: Variable
    pads: Pairs
    padding: Apply | None


def _operand(x: Variable, value: float, largest: Sequence[int] | None = None) -> _Operand:
    """Separate the padding of an array by a value, if no pad is larger than given."""
    rank = x.type.ndim - 2
    node = made_by(x, Pad)
    if node is not None and node.op.pad_mode == "constant":
        widths = node.op.static_pad_width
        if (
            widths is not None
            and number_of(node.inputs[2]) == value
            and not any(widths[0])
            and not any(widths[-1])
            and x.type.dtype == node.inputs[0].type.dtype
        ):
            pads = tuple((int(before), int(after)) for before, after in widths[1:-1])
            if largest is None or all(
                max(pair) <= most for pair, most in zip(pads, largest, strict=True)
            ):
                return _Operand(node.inputs[0], pads, node)
    return _Operand(x, ((0, 0),) * rank, None)


def _gradient_of_padding(
    fgraph: FunctionGraph, operand: _Operand, gradient: Variable
) -> Variable | None:
    """Return the gradient of the unpadded array, the only use of the gradient of the padded one."""
    if operand.padding is None:
        return None
    node = only_client(fgraph, gradient)
    if node is None:
        return None
    given = {*operand.padding.inputs, *operand.padding.outputs, gradient}
    if type(node.op) is not OpFromGraph or set(node.inputs) != given:
        return None
    used = [v for v in node.outputs if fgraph.clients[v]]
    return node.outputs[0] if used == [node.outputs[0]] else None


type _Replacements = list[tuple[Variable, Variable]]


def _convolution(fgraph: FunctionGraph, node: Apply) -> _Replacements:
    from pytensor_onnx.ops.networks.conv_ops import Conv

    operand = _operand(node.inputs[0], 0)
    dtype = node.outputs[0].type.dtype
    conv = Conv(**geometry_of(node.op, operand.pads))
    images, layer_filters, *bias = [_cast(v, dtype) for v in (operand.array, *node.inputs[1:])]
    return [(node.outputs[0], to_last(conv(to_first(images), filters_of(layer_filters), *bias)))]


def _cast(x: Variable, dtype: str) -> Variable:
    return x if x.type.dtype == dtype else x.astype(dtype)


def _convolution_gradient(fgraph: FunctionGraph, node: Apply) -> _Replacements:
    from pytensor_onnx.ops.networks.conv_ops import Conv, ConvFilterGradient, transposed_onto

    if not node.op.compute_dW:
        transposed = transposed_layer(fgraph, node)
        if transposed is not None:
            return [transposed]
    x, layer_filters, gradient = node.inputs
    outputs = iter(node.outputs)
    of_images = next(outputs) if node.op.compute_dX else None
    of_filters = next(outputs) if node.op.compute_dW else None
    operand = _operand(x, 0)
    incoming = to_first(gradient)
    result: _Replacements = []
    if of_filters is not None:
        adjoint = ConvFilterGradient(**geometry_of(node.op, operand.pads))
        filters = adjoint(to_first(operand.array), incoming)
        result.append((of_filters, _channels_last_filters(filters).astype(of_filters.type.dtype)))
    if of_images is not None and fgraph.clients[of_images]:
        unpadded = _gradient_of_padding(fgraph, operand, of_images)
        whole = (
            operand if unpadded is not None else _Operand(x, ((0, 0),) * len(operand.pads), None)
        )
        conv = Conv(**geometry_of(node.op, whole.pads))
        images = transposed_onto(conv, incoming, filters_of(layer_filters), to_first(whole.array))
        target = of_images if unpadded is None else unpadded
        result.append((target, to_last(images).astype(target.type.dtype)))
    return result


def _pooling(fgraph: FunctionGraph, node: Apply) -> _Replacements:
    operand, op = _pool(node)
    return [(node.outputs[0], to_last(op(to_first(operand.array))))]


def _pooling_gradient(fgraph: FunctionGraph, node: Apply) -> _Replacements:
    (result,) = node.outputs
    operand, op = _pool(node)
    unpadded = _gradient_of_padding(fgraph, operand, result)
    if unpadded is None and operand.padding is not None:
        operand, op = _pool(node, takes_padding=False)
    x = to_first(operand.array)
    (gradient,) = op.pullback([x], [op(x)], [to_first(node.inputs[1])])
    target = result if unpadded is None else unpadded
    return [(target, to_last(gradient).astype(target.type.dtype))]


def _pool(node: Apply, *, takes_padding: bool = True) -> tuple[_Operand, Any]:
    from pytensor_onnx.ops.networks.pool_ops import AveragePool, MaxPool
    from pytensor_onnx.ops.networks.windows import Windows

    x, layer = node.inputs[0], node.op
    is_max = layer.reduction == "max"
    most = [size - 1 if takes_padding else -1 for size in layer.kernel_size]
    operand = _operand(x, -np.inf if is_max else 0, most)
    windows = Windows(
        window=layer.kernel_size,
        stride=layer.stride,
        padding=operand.pads,
        dilation=layer.dilation,
        ceil_mode=False,
    )
    if is_max:
        return operand, MaxPool(windows=windows)
    return operand, AveragePool(windows=windows, count_include_pad=True)


def _take_windows(fgraph: FunctionGraph, node: Apply) -> _Replacements:
    """Gather (N, *windows, *taps, C), for layers without an operator."""
    (x,) = node.inputs
    positions = _positions(node.op, [x.shape[1 + i] for i in range(len(node.op.kernel_size))])
    return [(node.outputs[0], x[(slice(None), *positions, slice(None))])]


def _add_windows(fgraph: FunctionGraph, node: Apply) -> _Replacements:
    """Add (N, *windows, *taps, C) to the elements from which `_take_windows` gathers."""
    patches, *sizes = node.inputs
    zeros = pt.zeros((patches.shape[0], *sizes, patches.shape[-1]), dtype=patches.type.dtype)
    positions = (slice(None), *_positions(node.op, sizes), slice(None))
    return [(node.outputs[0], zeros[positions].inc(patches))]


def _positions(op: Any, sizes: Sequence[Variable]) -> list[Variable]:
    """Return the positions of the windows along each axis, broadcastable to (*windows, *taps)."""
    rank = len(sizes)
    positions = []
    for axis, size in enumerate(sizes):
        reach = op.dilation[axis] * (op.kernel_size[axis] - 1) + 1
        starts = pt.arange(0, size - reach + 1, op.stride[axis])
        taps = np.arange(op.kernel_size[axis]) * op.dilation[axis]
        order: list[int | str] = ["x"] * (2 * rank)
        order[axis], order[rank + axis] = 0, 1
        positions.append((starts[:, None] + taps).dimshuffle(order))
    return positions


_FORMS: dict[str, Callable[[FunctionGraph, Apply], _Replacements]] = {
    "Col2Im": _add_windows,
    "ConvLayer": _convolution,
    "ConvLayerGrad": _convolution_gradient,
    "Im2Col": _take_windows,
    "PoolLayer": _pooling,
    "PoolLayerGrad": _pooling_gradient,
}


@rewrites_graphs(
    family="networks",
    purpose="size",
    identity="grad(pad(x), x) = g[a:-b]",
    requires="constant padding of known widths",
    begins_at=("OpFromGraph",),
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def slice_gradients(fgraph: FunctionGraph) -> None:
    """Replace gradients of constant paddings of known widths by slices.

    PyTensor differentiates the implementation of the padding: an array that is written to side by
    side.
    """
    for node in fgraph.toposort():
        padding = differentiated(node)
        if padding is None or not _is_constant(padding):
            continue
        first, *others = node.outputs
        gradient = node.inputs[-1]
        if any(fgraph.clients[other] for other in others):
            continue
        widths = padding.op.static_pad_width
        inside = tuple(slice(int(before), -int(after) or None) for before, after in widths)
        fgraph.replace(first, gradient[inside], reason="slice_gradients", import_missing=True)


def _is_constant(node: Apply) -> bool:
    is_constant = isinstance(node.op, Pad) and node.op.pad_mode == "constant"
    return is_constant and node.op.static_pad_width is not None
