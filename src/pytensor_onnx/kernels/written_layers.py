"""Layers written out as operators of tapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from pytensor_onnx.kernels.graph_scope import Scope, attributes_of, bodies, captured

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
"""Dtypes of the layers that are written."""


class WrittenNodes:
    """Nodes in the making, whose values have names of their own.

    Attributes
    ----------
    made
        The nodes in order.
    """

    def __init__(self, node: onnx.NodeProto) -> None:
        self.node = node
        self.prefix = next(x for x in node.output if x)
        self.made: list[onnx.NodeProto] = []
        self._count = 0

    def given(self, i: int) -> str:
        """Return the name of an operand, nothing without it."""
        return self.node.input[i] if i < len(self.node.input) else ""

    def emit(self, op: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """Add a node, and return the name of its result, or the names of several."""
        names = [f"{self.prefix}/{op}{self._count}_{k}" for k in range(count)]
        self._count += 1
        self.made.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if count == 1 else names

    def constant(self, value: Any, dtype: Any = "int64") -> str:
        """Add a constant, and return its name."""
        return self.emit("Constant", value=numpy_helper.from_array(np.asarray(value, dtype)))

    def returns(self, op: str, *inputs: str, output: int = 0, **attributes: Any) -> None:
        """Add the node of a result of the original one."""
        name = [self.node.output[output]]
        self.made.append(helper.make_node(op, list(inputs), name, **attributes))


_GATES = {"LSTM": 4, "GRU": 3}
_PLAIN: dict[str, Any] = {
    "activations": None,
    "activation_alpha": None,
    "activation_beta": None,
    "clip": None,
    "direction": "forward",
    "input_forget": 0,
    "layout": 0,
}
"""Attributes that a layer has by default."""


def write_recurrence(node: onnx.NodeProto, scope: Scope) -> list[onnx.NodeProto] | None:
    """Return the nodes of a plain layer, None for others.

    Layers with sequence lengths, peepholes, several directions or other activations stay.
    """
    is_plain = _is_plain(node, scope)
    return _Layer(node, scope.dtype(node.input[0])).nodes() if is_plain else None


def _is_plain(node: onnx.NodeProto, scope: Scope) -> bool:
    attributes = attributes_of(node)
    others = [i for i in (4, 7) if i < len(node.input) and node.input[i]]
    is_default = all(attributes.get(name, value) == value for name, value in _PLAIN.items())
    return is_default and not others and scope.dtype(node.input[0]) in FLOATS


class _Layer(WrittenNodes):
    """The nodes of a layer."""

    def __init__(self, node: onnx.NodeProto, dtype: int) -> None:
        super().__init__(node)
        attributes = attributes_of(node)
        self.dtype = dtype
        self.size = int(attributes["hidden_size"])
        self.resets_after = bool(attributes.get("linear_before_reset", 0))

    def first(self, value: str) -> str:
        """Return an array of the only direction."""
        return self.emit("Squeeze", value, self.constant([0]))

    def weights(self, i: int) -> str:
        return self.emit("Transpose", self.first(self.given(i)), perm=[1, 0])

    def start(self, i: int) -> str:
        """Return a state before the first step."""
        if self.given(i):
            return self.first(self.given(i))
        batch = self.emit("Shape", self.node.input[0], start=1, end=2)
        shape = self.emit("Concat", batch, self.constant([self.size]), axis=0)
        zero = numpy_helper.from_array(np.zeros(1, helper.tensor_dtype_to_np_dtype(self.dtype)))
        return self.emit("ConstantOfShape", shape, value=zero)

    def parts(self, value: str, count: int) -> Any:
        sizes = self.constant([self.size] * count)
        return self.emit("Split", value, sizes, count=count, axis=-1)

    def nodes(self) -> list[onnx.NodeProto]:
        """Return the nodes of the layer."""
        gates = _GATES[self.node.op_type]
        x = self.emit("MatMul", self.node.input[0], self.weights(1))
        shift = ""
        if self.given(3):
            halves = self.constant([gates * self.size] * 2)
            own, shift = self.emit("Split", self.first(self.given(3)), halves, count=2, axis=0)
            x = self.emit("Add", x, own)
        is_lstm = self.node.op_type == "LSTM"
        recurrent = self.weights(2)
        states = [self.start(i) for i in ((5, 6) if is_lstm else (5,))]
        body = self.body(self.lstm if is_lstm else self.gru, recurrent, shift, len(states))
        results = self.emit("Scan", *states, x, count=len(states) + 1, body=body, num_scan_inputs=1)
        ends = [(results[-1], 1), *((last, 0) for last in results[:-1])]
        for i, (value, axis) in enumerate(ends[: len(self.node.output)]):
            if self.node.output[i]:
                self.returns("Unsqueeze", value, self.constant([axis]), output=i)
        return self.made

    def body(self, step: Any, recurrent: str, shift: str, states: int) -> onnx.GraphProto:
        """Return the graph of a step."""
        outside, self.made = self.made, []
        given = [f"{self.prefix}/given{k}" for k in range(states + 1)]
        results = step(given[-1], given[:-1], recurrent, shift)
        results.append(self.emit("Identity", results[0]))
        nodes, self.made = self.made, outside
        values = [
            [helper.make_tensor_value_info(name, self.dtype, None) for name in names]
            for names in (given, results)
        ]
        return helper.make_graph(nodes, f"{self.prefix}/step", *values)

    def lstm(self, x: str, states: Sequence[str], recurrent: str, shift: str) -> list[str]:
        h, c = states
        sums = self.emit("Add", x, self.emit("MatMul", h, recurrent))
        if shift:
            sums = self.emit("Add", sums, shift)
        i, o, f, g = self.parts(sums, 4)
        i, o, f = (self.emit("Sigmoid", part) for part in (i, o, f))
        new = self.emit("Mul", i, self.emit("Tanh", g))
        c = self.emit("Add", self.emit("Mul", f, c), new)
        return [self.emit("Mul", o, self.emit("Tanh", c)), c]

    def gru(self, x: str, states: Sequence[str], recurrent: str, shift: str) -> list[str]:
        [h] = states
        of_x = self.parts(x, 3)
        weights = self.parts(recurrent, 3)
        shifts = self.parts(shift, 3) if shift else [""] * 3

        def of_h(k: int, value: str) -> str:
            product = self.emit("MatMul", value, weights[k])
            return self.emit("Add", product, shifts[k]) if shift else product

        z, r = (self.emit("Sigmoid", self.emit("Add", of_x[k], of_h(k, h))) for k in (0, 1))
        rest = (
            self.emit("Mul", r, of_h(2, h))
            if self.resets_after
            else of_h(2, self.emit("Mul", r, h))
        )
        new = self.emit("Tanh", self.emit("Add", of_x[2], rest))
        # (1 - z) * new + z * h
        kept = self.emit("Mul", z, self.emit("Sub", h, new))
        return [self.emit("Add", new, kept)]


MOST_PRODUCTS = 1 << 22
"""Products of the largest convolution of an example: larger ones are faster in ONNX Runtime."""
MOST_OF_ANY = 1 << 24
"""Elements of all windows where nothing else runs it: those of larger ones take too much memory."""
_IS_LIMITED = ContextVar("is_limited", default=True)


@contextmanager
def of_any_size(is_any: bool = True) -> Iterator[None]:
    """Write out larger convolutions, where nothing else runs them."""
    token = _IS_LIMITED.set(not is_any)
    try:
        yield
    finally:
        _IS_LIMITED.reset(token)


_OF_MAXIMA = (*FLOATS, onnx.TensorProto.UINT8)


def write_windows(node: onnx.NodeProto, scope: Scope) -> list[onnx.NodeProto] | None:
    """Return the nodes of a convolution or a pool; None where it stays.

    It stays where sizes are rounded up, where the places of maxima are used, where padding follows
    from unknown sizes, and where unknown sizes may be large ones.
    """
    attributes = attributes_of(node)
    shape = scope.shape(node.input[0])
    weights = scope.shape(node.input[1]) if node.op_type == "Conv" else None
    kernel = weights[2:] if weights else attributes.get("kernel_shape")
    if not kernel or None in (*kernel, *(weights or ())):
        return None
    sizes = [None] * len(kernel) if shape is None else shape[2:]
    is_default = None not in sizes or attributes["auto_pad"] in {"NOTSET", "VALID"}
    is_default &= not attributes.get("ceil_mode", 0)
    is_default &= not any(_is_used(name, scope.graph) for name in node.output[1:])
    # Numbers of elements without pads need the sizes.
    is_default &= None not in sizes or not any(attributes.get("pads", [])) or bool(weights)
    dtypes = _OF_MAXIMA if node.op_type == "MaxPool" else FLOATS
    if not is_default or scope.dtype(node.input[0]) not in dtypes:
        return None
    if None in sizes and _IS_LIMITED.get():
        return None
    made = _Windows(node, scope.dtype(node.input[0]), sizes, kernel, attributes)
    if weights is None:
        return made.pool(attributes)
    return made.convolution(weights, attributes["group"])


def write_global_pool(node: onnx.NodeProto, scope: Scope) -> list[onnx.NodeProto] | None:
    """Return the nodes of a pool over all places; None where the number of axes is unknown."""
    shape = scope.shape(node.input[0])
    if shape is None or scope.dtype(node.input[0]) not in FLOATS:
        return None
    made = WrittenNodes(node)
    axes = made.constant(range(2, len(shape)))
    is_max = node.op_type == "GlobalMaxPool"
    made.returns("ReduceMax" if is_max else "ReduceMean", node.input[0], axes, keepdims=1)
    return made.made


def write_normalization(node: onnx.NodeProto, scope: Scope) -> list[onnx.NodeProto] | None:
    """Return the nodes of a batch normalization by stored moments."""
    attributes, sizes = attributes_of(node), scope.shape(node.input[0])
    dtype = scope.dtype(node.input[0])
    if sizes is None or attributes.get("training_mode", 0) or dtype not in FLOATS:
        return None
    made = WrittenNodes(node)
    shape = made.constant([-1] + [1] * (len(sizes) - 2))
    x, scale, shift, mean, variance = node.input
    epsilon = made.constant(attributes["epsilon"], helper.tensor_dtype_to_np_dtype(dtype))
    deviation = made.emit("Sqrt", made.emit("Add", variance, epsilon))
    factor = made.emit("Div", scale, deviation)
    rest = made.emit("Sub", shift, made.emit("Mul", mean, factor))
    product = made.emit("Mul", x, made.emit("Reshape", factor, shape))
    made.returns("Add", product, made.emit("Reshape", rest, shape))
    return made.made


def write_hard_sigmoid(node: onnx.NodeProto, scope: Scope) -> list[onnx.NodeProto] | None:
    """Return the nodes of a line that is clipped between 0 and 1, or of it times its input."""
    dtype = scope.dtype(node.input[0])
    if dtype not in FLOATS:
        return None
    attributes, made = attributes_of(node), WrittenNodes(node)
    number = helper.tensor_dtype_to_np_dtype(dtype)
    # A HardSwish has no attributes.
    line = (attributes.get("alpha", 1 / 6), attributes.get("beta", 0.5))
    slope, start, low, high = (made.constant(x, number) for x in (*line, 0, 1))
    clipped = made.emit("Add", made.emit("Mul", node.input[0], slope), start)
    clipped = made.emit("Max", clipped, low)
    if node.op_type == "HardSwish":
        made.returns("Mul", node.input[0], made.emit("Min", clipped, high))
    else:
        made.returns("Min", clipped, high)
    return made.made


def _is_used(name: str, graph: onnx.GraphProto) -> bool:
    used = {x for node in graph.node for x in (*node.input, *captured(node))}
    return bool(name) and (name in used or any(name == x.name for x in graph.output))


class _Windows(WrittenNodes):
    """Windows of an array, whose sizes but those of the kernel may be unknown."""

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
        self.kernel = list(map(int, kernel))
        axes = len(self.kernel)
        self.strides = attributes.get("strides", [1] * axes)
        self.dilations = attributes.get("dilations", [1] * axes)
        self.is_known = None not in sizes
        self.sizes = [int(n or 0) for n in sizes]
        self.pads = self.same_pads(attributes["auto_pad"]) or attributes.get("pads", [0] * 2 * axes)
        self.padded = [n + sum(self.pads[a::axes]) for a, n in enumerate(self.sizes)]
        self.out = [
            (n - d * (k - 1) - 1) // s + 1
            for n, k, s, d in zip(
                self.padded, self.kernel, self.strides, self.dilations, strict=True
            )
        ]

    def same_pads(self, kind: str) -> list[int]:
        """Return the pads that keep sizes but for strides, nothing for pads of another kind."""
        if not kind.startswith("SAME"):
            return []
        spans = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        sums = [
            max(-(-n // s) * s - s + span - n, 0)
            for n, s, span in zip(self.sizes, self.strides, spans, strict=True)
        ]
        less, more = [n // 2 for n in sums], [n - n // 2 for n in sums]
        return less + more if kind == "SAME_UPPER" else more + less

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
        flat = self.emit("Reshape", x, self.constant([0, 0, self.number(self.padded)]))
        rows = self.known_rows() if self.is_known else self.computed_rows(x)
        index = rows[0]
        for others in rows[1:]:
            index = self.emit("Add", index, others)
        return self.emit("Gather", flat, self.emit("Reshape", index, self.constant([-1])), axis=2)

    def known_rows(self) -> list[str]:
        """Return, for each axis, the places in the flat array, along two axes of their own."""
        axes, rows = len(self.kernel), []
        for axis, places in enumerate(self.places()):
            shape = [1] * 2 * axes
            shape[axis], shape[axes + axis] = places.shape
            steps = places * math.prod(self.padded[axis + 1 :])
            rows.append(self.constant(steps.reshape(shape)))
        return rows

    def computed_rows(self, x: str) -> list[str]:
        """Return the same of an array whose sizes are known at a call; `out_sizes` has theirs."""
        axes = len(self.kernel)
        sizes = [self.emit("Shape", x, start=2 + a, end=3 + a) for a in range(axes)]
        self.out_sizes, rows, width = list[str](), list[str](), ""
        for axis in reversed(range(axes)):
            k, s, d = self.kernel[axis], self.strides[axis], self.dilations[axis]
            free = self.emit("Sub", sizes[axis], self.constant([d * (k - 1) + 1]))
            count = self.emit("Add", self.emit("Div", free, self.constant([s])), self.constant([1]))
            zero, one = self.constant(0), self.constant(1)
            starts = self.emit("Range", zero, self.emit("Squeeze", count, self.constant([0])), one)
            shape = [1] * 2 * axes
            shape[axes + axis] = -1
            starts = self.emit(
                "Reshape", self.emit("Mul", starts, self.constant(s)), self.constant(shape)
            )
            shape[axis], shape[axes + axis] = k, 1
            offsets = self.constant((np.arange(k) * d).reshape(shape))
            places = self.emit("Add", offsets, starts)
            rows.insert(0, self.emit("Mul", places, width) if width else places)
            width = self.emit("Mul", width, sizes[axis]) if width else sizes[axis]
            self.out_sizes.insert(0, count)
        return rows

    def number(self, sizes: list[int]) -> int:
        """Return the number of places of sizes; -1, which is any, where they are unknown."""
        return math.prod(sizes) if self.is_known else -1

    def shape_of(self, *channels: int) -> str:
        """Return the shape of the result, as a value."""
        if self.is_known:
            return self.constant([0, *channels, *self.out])
        return self.emit("Concat", self.constant([0, *channels]), *self.out_sizes, axis=0)

    def convolution(self, weights: Sequence[Any], groups: int) -> list[onnx.NodeProto] | None:
        """Return the nodes of a convolution, None of a large one."""
        maps, of_group, places = weights[0], math.prod(weights[1:]), math.prod(self.out)
        is_large = (
            maps * of_group * places > MOST_PRODUCTS
            if _IS_LIMITED.get()
            else groups * of_group * places > MOST_OF_ANY
        )
        if self.is_known and (is_large or min(self.out) < 1):
            return None
        columns = self.constant([0, groups, of_group, self.number(self.out)])
        columns = self.emit("Reshape", self.gathered(0), columns)
        rows = self.constant([groups, maps // groups, of_group])
        rows = self.emit("Reshape", self.node.input[1], rows)
        y = self.emit("MatMul", rows, columns)
        y = self.emit("Reshape", y, self.shape_of(maps))
        if self.given(2):
            shape = self.constant([maps] + [1] * len(self.kernel))
            self.returns("Add", y, self.emit("Reshape", self.given(2), shape))
        else:
            self.returns("Identity", y)
        return self.made

    def pool(self, attributes: dict[str, Any]) -> list[onnx.NodeProto] | None:
        """Return the nodes of a pool."""
        if self.is_known and min(self.out) < 1:
            return None
        is_max = self.node.op_type == "MaxPool"
        x = self.gathered(-np.inf if is_max and self.dtype.kind == "f" else 0)
        windows = [0, 0, math.prod(self.kernel), self.number(self.out)]
        x = self.emit("Reshape", x, self.constant(windows))
        axis = self.constant([2])
        x = self.emit("ReduceMax" if is_max else "ReduceSum", x, axis, keepdims=0)
        if not is_max:
            is_outside = any(self.pads) and not attributes["count_include_pad"]
            inside = self.elements() if is_outside else windows[2]
            x = self.emit("Div", x, self.constant(inside, self.dtype))
        self.returns("Reshape", x, self.shape_of(0))
        return self.made

    def elements(self) -> np.ndarray:
        """Return the number of elements of each window without those of pads."""
        counts = np.ones(1)
        for places, before, size in zip(self.places(), self.pads, self.sizes, strict=False):
            inside = (places >= before) & (places < before + size)
            counts = np.multiply.outer(counts, inside.sum(axis=0))
        return counts.reshape(-1)


_WRITERS: dict[str, Callable[[onnx.NodeProto, Scope], list[onnx.NodeProto] | None]] = {
    "AveragePool": write_windows,
    "BatchNormalization": write_normalization,
    "Conv": write_windows,
    "GlobalAveragePool": write_global_pool,
    "GlobalMaxPool": write_global_pool,
    "HardSigmoid": write_hard_sigmoid,
    "HardSwish": write_hard_sigmoid,
    "GRU": write_recurrence,
    "LSTM": write_recurrence,
    "MaxPool": write_windows,
}


def write_layers(graph: onnx.GraphProto, outer: Scope | None = None) -> bool:
    """Replace the layers of a graph and of its bodies; return whether there were any."""
    scope, made, found = Scope(graph, outer), list[onnx.NodeProto](), False
    for node in graph.node:
        for body in bodies(node):
            found |= write_layers(body, scope)
        writer = _WRITERS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        written = writer(node, scope) if writer else None
        found |= written is not None
        made += [node] if written is None else written
    if found:
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in made]
        del graph.node[:]
        graph.node.extend(kept)
    return found
