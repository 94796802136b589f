"""Compute the positions of nonzero elements."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.basic import Nonzero

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder

_COUNT = "pytensor_onnx.count"


@onnx_funcify.register(Nonzero)
def lower_nonzero(op: Nonzero, node: Apply, build: Builder, x: ir.Value) -> list[ir.Value]:
    """Return the positions along each axis; NaN counts as nonzero."""
    return nonzero(build, x, node.inputs[0].type.ndim, true_count(build, x))


def nonzero(build: Builder, x: ir.Value, rank: int, count: str | None = None) -> list[ir.Value]:
    """Return the positions of nonzero elements: a vector for each axis, constants for a constant.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    x
        Value of one dimension or more.
    rank
        Number of its dimensions.
    count
        Name of the dimension for the number of positions.
    """
    if x.const_value is not None:
        return [build.constant(axis) for axis in np.nonzero(x.const_value.numpy())]
    positions = nonzero_matrix(build, x, rank, count)
    if rank == 1:
        return [build.Squeeze(positions, build.ints([0]))]
    return [build.Gather(positions, np.int64(axis), axis=0) for axis in range(rank)]


def nonzero_matrix(build: Builder, x: ir.Value, rank: int, count: str | None = None) -> ir.Value:
    """Return the positions of the elements that are not zero, one in each column."""
    positions = build.NonZero(x)
    positions.shape = ir.Shape([rank, count])
    return positions


def true_count(build: Builder, x: ir.Value) -> str:
    """Return the name of the dimension for the number of elements that are not zero.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder
    >>> from pytensor_onnx.graph.scope import ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x, y = (ir.val(name, dtype=ir.DataType.BOOL, shape=("n",)) for name in "xy")
    >>> true_count(build, x), true_count(build, y), true_count(build, x)
    ('x_count', 'y_count', 'x_count')
    """
    if _COUNT not in x.meta:
        x.meta[_COUNT] = build.scope.computed_dim(f"{x.name or 'nonzero'}_count")
    return x.meta[_COUNT]
