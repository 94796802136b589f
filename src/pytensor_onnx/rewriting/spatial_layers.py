"""Convolutions and poolings of pytensor-ml, channels last, become those of `nn`, channels first.

The layers take arrays (N, *S, C), ONNX takes (N, C, *S). Each layer gets a transposition on either
side; where layers follow each other, a pass over the model cancels them. Zeros that were padded
before a layer become its own padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import graph_rewriter
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.pad import Pad

from pytensor_onnx.rewriting.transposed_layers import (
    filters_of,
    geometry_of,
    to_first,
    to_last,
    transposed_layer,
)

LAYER_MODULE = "pytensor_ml.layers.conv"
type Pairs = tuple[tuple[int, int], ...]


@graph_rewriter
def channels_first(fgraph: FunctionGraph) -> None:
    """Replace the layers, and the gradients of layers, that slide windows over arrays."""
    for node in fgraph.toposort():
        make = _FORMS.get(_layer_name(node.op))
        if make is None:
            continue
        for old, new in make(fgraph, node):
            if new.owner is not None and isinstance(new.owner.op, DimShuffle):
                # The transposition may go, and the name with it.
                new.owner.inputs[0].name = old.name
            fgraph.replace(old, new, reason="channels_first", import_missing=True)


def _layer_name(op: Op) -> str:
    """Return the name of a layer that slides windows; pytensor-ml need not be installed."""
    return type(op).__qualname__ if type(op).__module__ == LAYER_MODULE else ""


def _kernels(filters: Variable) -> Variable:
    """Transpose filters (O, C, *K) to (*K, C, O)."""
    return filters.dimshuffle(*range(2, filters.type.ndim), 1, 0)


@dataclass
class _Operand:
    """What a layer slides over: an array, and how it was padded before.

    Attributes
    ----------
    array
        The array, without the padding.
    pads
        Numbers of cells added before and after each spatial axis.
    padding
        The node that adds them, None where there is none.
    """

    array: Variable
    pads: Pairs
    padding: Apply | None


def _operand(x: Variable, value: float, largest: Sequence[int] | None = None) -> _Operand:
    """Take the padding of an array by a value apart from it, if no pad is larger than given."""
    rank = x.type.ndim - 2
    node = x.owner
    if node is not None and isinstance(node.op, Pad) and node.op.pad_mode == "constant":
        widths, filling = node.op.static_pad_width, node.inputs[2]
        if (
            widths is not None
            and isinstance(filling, Constant)
            and np.all(filling.data == value)
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
    """Return what the gradient of a padded array is used for: the gradient of the array itself."""
    if operand.padding is None:
        return None
    clients = fgraph.clients[gradient]
    if len(clients) != 1:
        return None
    node = clients[0][0]
    given = {*operand.padding.inputs, *operand.padding.outputs, gradient}
    if type(node.op) is not OpFromGraph or set(node.inputs) != given:
        return None
    used = [v for v in node.outputs if fgraph.clients[v]]
    return node.outputs[0] if used == [node.outputs[0]] else None


type _Replacements = list[tuple[Variable, Variable]]


def _convolution(fgraph: FunctionGraph, node: Apply) -> _Replacements:
    from pytensor_onnx.nn.conv_ops import Conv

    operand = _operand(node.inputs[0], 0)
    dtype = node.outputs[0].type.dtype
    conv = Conv(**geometry_of(node.op, operand.pads))
    images, kernels, *bias = [_cast(v, dtype) for v in (operand.array, *node.inputs[1:])]
    return [(node.outputs[0], to_last(conv(to_first(images), filters_of(kernels), *bias)))]


def _cast(x: Variable, dtype: str) -> Variable:
    return x if x.type.dtype == dtype else x.astype(dtype)


def _convolution_gradient(fgraph: FunctionGraph, node: Apply) -> _Replacements:
    from pytensor_onnx.nn.conv_ops import Conv, ConvFilterGradient, transposed_onto

    if not node.op.compute_dW:
        transposed = transposed_layer(fgraph, node)
        if transposed is not None:
            return [transposed]
    x, kernels, gradient = node.inputs
    outputs = iter(node.outputs)
    of_images = next(outputs) if node.op.compute_dX else None
    of_kernels = next(outputs) if node.op.compute_dW else None
    operand = _operand(x, 0)
    incoming = to_first(gradient)
    result: _Replacements = []
    if of_kernels is not None:
        adjoint = ConvFilterGradient(**geometry_of(node.op, operand.pads))
        filters = adjoint(to_first(operand.array), incoming)
        result.append((of_kernels, _kernels(filters).astype(of_kernels.type.dtype)))
    if of_images is not None and fgraph.clients[of_images]:
        unpadded = _gradient_of_padding(fgraph, operand, of_images)
        whole = (
            operand if unpadded is not None else _Operand(x, ((0, 0),) * len(operand.pads), None)
        )
        conv = Conv(**geometry_of(node.op, whole.pads))
        images = transposed_onto(conv, incoming, filters_of(kernels), to_first(whole.array))
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
    from pytensor_onnx.nn.pool_ops import AveragePool, MaxPool
    from pytensor_onnx.nn.windows import Windows

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
    """Gather (N, *windows, *taps, C): what a layer does that is none of the others."""
    (x,) = node.inputs
    cells = _cells(node.op, [x.shape[1 + i] for i in range(len(node.op.kernel_size))])
    return [(node.outputs[0], x[(slice(None), *cells, slice(None))])]


def _add_windows(fgraph: FunctionGraph, node: Apply) -> _Replacements:
    """Add (N, *windows, *taps, C) to the cells that they come from."""
    patches, *sizes = node.inputs
    zeros = pt.zeros((patches.shape[0], *sizes, patches.shape[-1]), dtype=patches.type.dtype)
    cells = (slice(None), *_cells(node.op, sizes), slice(None))
    return [(node.outputs[0], zeros[cells].inc(patches))]


def _cells(op: Any, sizes: Sequence[Variable]) -> list[Variable]:
    """Return where the windows see the axes, in arrays that broadcast to (*windows, *taps)."""
    rank = len(sizes)
    cells = []
    for axis, size in enumerate(sizes):
        reach = op.dilation[axis] * (op.kernel_size[axis] - 1) + 1
        starts = pt.arange(0, size - reach + 1, op.stride[axis])
        taps = np.arange(op.kernel_size[axis]) * op.dilation[axis]
        order: list[int | str] = ["x"] * (2 * rank)
        order[axis], order[rank + axis] = 0, 1
        cells.append((starts[:, None] + taps).dimshuffle(order))
    return cells


_FORMS: dict[str, Callable[[FunctionGraph, Apply], _Replacements]] = {
    "Col2Im": _add_windows,
    "ConvLayer": _convolution,
    "ConvLayerGrad": _convolution_gradient,
    "Im2Col": _take_windows,
    "PoolLayer": _pooling,
    "PoolLayerGrad": _pooling_gradient,
}

# While the layers stand, and before their gradients are opened.
optdb.register("onnx_channels_first", channels_first, "onnx", position=-0.027)
