"""Nodes that are written in place of one node of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

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
