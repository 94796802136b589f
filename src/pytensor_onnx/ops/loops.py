"""Ops of loops: linear recurrences, and checks of lengths."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable, get_scalar_constant_value
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)
from pytensor.tensor.type import lscalar

from pytensor_onnx.compat.pytensor import vectorize_node, vectorize_not_needed

LARGEST_ROW = 16
"""Elements of a row up to which doubling beats a loop; it goes over memory 5 log n times."""


class LinearRecurrence(Op):
    """Recurrence ``y[t] = factors[t - 1] * y[t - 1] + x[t]`` along the first axis.

    Takes ``x`` of n + 1 rows, whose first is the initial value, and n rows of factors, or one row
    for all steps.

    Examples
    --------
    >>> LinearRecurrence()([1.0, 0.0, 5.0], [0.5, 2.0]).eval(mode="FAST_COMPILE")
    array([1. , 0.5, 6. ])
    """

    __props__ = ()

    def make_node(self, x: Any, factors: Any) -> Apply:
        """Return a node whose output is like its first input."""
        x, factors = as_tensor_variable(x), as_tensor_variable(factors)
        return Apply(self, [x, factors], [x.type()])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the shape of the first input."""
        return shapes[:1]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute row by row."""
        x, factors = inputs
        y, factors = x.copy(), np.broadcast_to(factors, (len(x) - 1, *factors.shape[1:]))
        with np.errstate(all="ignore"):
            for t, factor in enumerate(factors, 1):
                y[t] += factor * y[t - 1]
        outputs[0][0] = y


# Define Ops that check the number of steps of a loop and the lengths of its sequences.
#
# The checks stay when the loop becomes a batched graph, and give its sequences equal lengths: the
# rows selected for all steps are as many as the steps.

INDEXING = (Subtensor, IncSubtensor, AdvancedSubtensor, AdvancedIncSubtensor)
"""Ops that take or change elements by indices."""


class StepCount(Op):
    """Number of steps of a loop, which fails if it is negative.

    Parameters
    ----------
    loop
        Name of the loop.

    Examples
    --------
    >>> StepCount("walk")(3).eval(mode="FAST_COMPILE")
    array(3)
    """

    __props__ = ("loop",)

    def __init__(self, loop: str) -> None:
        self.loop = loop

    def make_node(self, n_steps: Any) -> Apply:
        """Return a node whose output is an int64."""
        return Apply(self, [as_tensor_variable(n_steps)], [lscalar()])

    @property
    def failure(self) -> Exception:
        """Exception for a negative number."""
        return IndexError(f"{self.loop} was asked to run a negative number of steps")

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return no dimensions."""
        return [()]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Return the number of steps, or raise an error if it is negative."""
        (n_steps,) = inputs
        if n_steps < 0:
            raise self.failure
        outputs[0][0] = n_steps.astype("int64")


class FirstRows(Op):
    """First rows of a sequence, one for each step of a loop, which fails if there are fewer.

    Parameters
    ----------
    sequence, loop
        Names of the sequence and the loop.

    Examples
    --------
    >>> FirstRows("sequence 0", "walk")([1.0, 2.0, 3.0], 2).eval(mode="FAST_COMPILE")
    array([1., 2.])
    """

    __props__ = ("sequence", "loop")
    view_map = {0: [0]}  # noqa: RUF012  (an attribute of every Op of PyTensor)

    def __init__(self, sequence: str, loop: str) -> None:
        self.sequence, self.loop = sequence, loop

    def make_node(self, rows: Any, count: Any) -> Apply:
        """Return a node whose output has as many rows as the count says."""
        rows, count = as_tensor_variable(rows), as_tensor_variable(count)
        try:
            known = int(get_scalar_constant_value(count))
        except NotScalarConstantError:
            known = None
        shape = (known, *rows.type.shape[1:])
        return Apply(self, [rows, count], [rows.type.clone(shape=shape)()])

    @property
    def failure(self) -> Exception:
        """Exception for too few rows."""
        return ValueError(f"{self.sequence} of {self.loop} ends before its steps do")

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the count and the sizes of a row."""
        return [(node.inputs[1], *shapes[0][1:])]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Return the first rows, if there are enough."""
        rows, count = inputs
        if not 0 <= count <= len(rows):
            raise self.failure
        outputs[0][0] = rows[: int(count)]


class StepIndex(Op):
    """Index that differs between the steps of a loop; an error of its use names the loop.

    Parameters
    ----------
    loop
        Name of the loop.
    """

    __props__ = ("loop",)
    view_map = {0: [0]}  # noqa: RUF012  (an attribute of every Op of PyTensor)

    def __init__(self, loop: str) -> None:
        self.loop = loop

    def make_node(self, index: Any) -> Apply:
        """Return a node whose output is like its input."""
        index = as_tensor_variable(index)
        return Apply(self, [index], [index.type()])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return the shape of the input."""
        return shapes

    def do_constant_folding(self, fgraph: FunctionGraph, node: Apply) -> bool:
        """Return False: PyTensor would replace a constant range by a slice."""
        return False

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Return the index."""
        outputs[0][0] = inputs[0]


vectorize_node.register(StepIndex, vectorize_not_needed)


def loop_of_index(node: Apply) -> str | None:
    """Return the loop whose step index a node uses."""
    if not isinstance(node.op, INDEXING):
        return None
    for variable in node.inputs[1:]:
        made = variable.owner
        while made is not None and len(made.inputs) == 1 and not isinstance(made.op, StepIndex):
            made = made.inputs[0].owner
        if made is not None and isinstance(made.op, StepIndex):
            return made.op.loop
    return None
