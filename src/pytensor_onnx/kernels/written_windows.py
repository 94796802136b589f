"""Write small convolutions and pools as products and reductions of gathered windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from pytensor_onnx.kernels.graph_scope import Scope, attributes_of, captured
from pytensor_onnx.kernels.written_nodes import FLOATS, WrittenNodes

MOST_PRODUCTS = 1 << 22
"""Products of the largest convolution of an example: larger ones are faster in ONNX Runtime."""
_OF_MAXIMA = (*FLOATS, onnx.TensorProto.UINT8)


def write_windows(node: onnx.NodeProto, scope: Scope) -> list[onnx.NodeProto] | None:
    """Return the nodes of a convolution or a pool; None where it stays.

    It stays where sizes but those of the batch are unknown, where sizes are rounded up, and where
    the places of maxima are used.
    """
    attributes = attributes_of(node)
    shape = scope.shape(node.input[0])
    weights = scope.shape(node.input[1]) if node.op_type == "Conv" else None
    kernel = weights[2:] if weights else attributes.get("kernel_shape")
    sizes = [*(shape or [None])[1:], *(weights or ()), *(kernel or [None])]
    is_default = attributes.get("auto_pad", b"NOTSET") == b"NOTSET"
    is_default &= not attributes.get("ceil_mode", 0)
    is_default &= not any(_is_used(name, scope.graph) for name in node.output[1:])
    dtypes = _OF_MAXIMA if node.op_type == "MaxPool" else FLOATS
    if not is_default or None in sizes or scope.dtype(node.input[0]) not in dtypes:
        return None
    assert shape is not None
    assert kernel is not None
    made = _Windows(node, scope.dtype(node.input[0]), shape[1:], kernel, attributes)
    if weights is None:
        return made.pool(attributes)
    return made.convolution(weights, attributes.get("group", 1))


def _is_used(name: str, graph: onnx.GraphProto) -> bool:
    used = {x for node in graph.node for x in (*node.input, *captured(node))}
    return bool(name) and (name in used or any(name == x.name for x in graph.output))


class _Windows(WrittenNodes):
    """Windows of an array of given sizes without the batch."""

    def __init__(
        self,
        node: onnx.NodeProto,
        dtype: int,
        sizes: Sequence[Any],
        kernel: Sequence[Any],
        attributes: dict[str, Any],
    ) -> None:
        super().__init__(node)
        self.dtype = helper.tensor_dtype_to_np_dtype(dtype)
        self.channels, *self.sizes = map(int, sizes)
        self.kernel = list(map(int, kernel))
        axes = len(self.kernel)
        self.strides = attributes.get("strides", [1] * axes)
        self.dilations = attributes.get("dilations", [1] * axes)
        self.pads = attributes.get("pads", [0] * 2 * axes)
        self.padded = [n + sum(self.pads[a::axes]) for a, n in enumerate(self.sizes)]
        self.out = [
            (n - d * (k - 1) - 1) // s + 1
            for n, k, s, d in zip(
                self.padded, self.kernel, self.strides, self.dilations, strict=True
            )
        ]

    def places(self) -> list[np.ndarray]:
        """Return, for each axis, the places of elements by position in the kernel and window."""
        return [
            np.arange(k)[:, None] * d + np.arange(o) * s
            for k, o, s, d in zip(self.kernel, self.out, self.strides, self.dilations, strict=True)
        ]

    def gathered(self, beyond: float) -> str:
        """Return windows in one axis: by position in the kernel, then by place."""
        x, axes = self.node.input[0], len(self.kernel)
        if any(self.pads):
            pads = [0, 0, *self.pads[:axes], 0, 0, *self.pads[axes:]]
            x = self.emit("Pad", x, self.constant(pads), self.constant(beyond, self.dtype))
        flat = self.emit("Reshape", x, self.constant([0, self.channels, math.prod(self.padded)]))
        index = ""
        for axis, places in enumerate(self.places()):
            shape = [1] * 2 * axes
            shape[axis], shape[axes + axis] = places.shape
            rows = self.constant((places * math.prod(self.padded[axis + 1 :])).reshape(shape))
            index = self.emit("Add", index, rows) if index else rows
        index = self.emit("Reshape", index, self.constant([-1]))
        return self.emit("Gather", flat, index, axis=2)

    def convolution(self, weights: Sequence[Any], groups: int) -> list[onnx.NodeProto] | None:
        """Return the nodes of a convolution, None of a large one."""
        maps, of_group, places = weights[0], math.prod(weights[1:]), math.prod(self.out)
        if maps * of_group * places > MOST_PRODUCTS or min(self.out) < 1:
            return None
        columns = self.constant([0, groups, of_group, places])
        columns = self.emit("Reshape", self.gathered(0), columns)
        rows = self.constant([groups, maps // groups, of_group])
        rows = self.emit("Reshape", self.node.input[1], rows)
        y = self.emit("MatMul", rows, columns)
        y = self.emit("Reshape", y, self.constant([0, maps, *self.out]))
        if self.given(2):
            shape = self.constant([maps] + [1] * len(self.out))
            self.returns("Add", y, self.emit("Reshape", self.given(2), shape))
        else:
            self.returns("Identity", y)
        return self.made

    def pool(self, attributes: dict[str, Any]) -> list[onnx.NodeProto] | None:
        """Return the nodes of a pool."""
        if min(self.out) < 1:
            return None
        is_max = self.node.op_type == "MaxPool"
        x = self.gathered(-np.inf if is_max and self.dtype.kind == "f" else 0)
        windows = [0, self.channels, math.prod(self.kernel), math.prod(self.out)]
        x = self.emit("Reshape", x, self.constant(windows))
        axis = self.constant([2])
        x = self.emit("ReduceMax" if is_max else "ReduceSum", x, axis, keepdims=0)
        if not is_max:
            inside = self.elements() if not attributes.get("count_include_pad", 0) else windows[2]
            x = self.emit("Div", x, self.constant(inside, self.dtype))
        self.returns("Reshape", x, self.constant([0, self.channels, *self.out]))
        return self.made

    def elements(self) -> np.ndarray:
        """Return the number of elements of each window without those of pads."""
        counts = np.ones(1)
        for places, before, size in zip(self.places(), self.pads, self.sizes, strict=False):
            inside = (places >= before) & (places < before + size)
            counts = np.multiply.outer(counts, inside.sum(axis=0))
        return counts.reshape(-1)
