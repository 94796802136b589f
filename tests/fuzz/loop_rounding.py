"""Loops whose steps round another way."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.scan.op import Scan

from tests.fuzz.rounding import accumulates, is_exact, moved, rounds


class Rounded(Op):
    """An Op whose results are rounded another way where it rounds at all.

    Parameters
    ----------
    source
        The Op, None where every float counts as rounded.
    scale
        Relative size of a rounding error.
    rng
        What moves the values.
    """

    def __init__(self, source: Op | None, scale: float, rng: np.random.Generator) -> None:
        self.source, self.scale, self.rng = source, scale, rng

    def make_node(self, x: Variable) -> Apply:
        """Return a node whose result has the type of its operand."""
        return Apply(self, [x], [x.type()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: list[list[Any]]) -> None:
        """Move the value, or copy it."""
        (x,) = inputs
        known = self.source is not None and is_exact(self.source, node.outputs[0], x)
        outputs[0][0] = np.array(x if known else moved(x, self.scale, self.rng))


def with_rounding(node: Apply, scale: float, rng: np.random.Generator) -> Apply:
    """Return a loop in whose steps every result is rounded another way.

    Parameters
    ----------
    node
        Apply node of a Scan.
    scale
        Relative size of a rounding error.
    rng
        What moves the values.
    """
    inner, known = node.op.fgraph.unfreeze(), dict[Variable, Variable]()

    def shaken(source: Op | None, variables: Sequence[Variable]) -> list[Variable]:
        return [
            Rounded(source, scale, rng)(v)
            if getattr(v.type, "dtype", "").startswith("float") and hasattr(v.type, "shape")
            else v
            for v in variables
        ]

    for step in inner.toposort():
        operands = [known.get(v, v) for v in step.inputs]
        if accumulates(step):
            operands = shaken(None, operands)
        copy = step.clone_with_new_inputs(operands)
        if isinstance(step.op, Scan):
            copy = with_rounding(copy, scale, rng)
        results = shaken(step.op, copy.outputs) if rounds(step.op) else copy.outputs
        known.update(zip(step.outputs, results, strict=True))
    outputs = [known.get(v, v) for v in inner.outputs]
    return Scan(inner.inputs, outputs, node.op.info, mode=node.op.mode).make_node(*node.inputs)
