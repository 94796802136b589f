"""Write the recurrent layers of ONNX as Scans, which tapes run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from pytensor_onnx.kernels.graph_scope import Scope, attributes_of
from pytensor_onnx.kernels.written_nodes import FLOATS, WrittenNodes

_GATES = {"LSTM": 4, "GRU": 3}
_PLAIN: dict[str, Any] = {
    "activations": None,
    "activation_alpha": None,
    "activation_beta": None,
    "clip": None,
    "direction": b"forward",
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
