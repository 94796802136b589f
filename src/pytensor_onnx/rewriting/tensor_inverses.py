"""Write inverses and solutions of tensors as those of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.linalg.inverse import TensorInv
from pytensor.tensor.linalg.solvers.lstsq import TensorSolve
from pytensor.tensor.variable import TensorVariable


@node_rewriter([TensorInv])
def invert_as_matrix(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Invert the matrix whose rows are the axes that come first in the result.

    Integers, which PyTensor gives an integer inverse, and no rows are left.
    """
    (x,) = node.inputs
    ind = node.op.ind
    if ind <= 0 or not x.type.dtype.startswith("float"):
        return None
    first, last = sizes_of(x)[:ind], sizes_of(x)[ind:]
    matrix = x.reshape((product_of(last), product_of(first)))
    return _as_result(node, pt.linalg.inv(matrix).reshape((*last, *first)))


@node_rewriter([TensorSolve])
def solve_as_matrix(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Solve a system whose columns are the last axes, after the Op has moved its axes there.

    PyTensor's result is a matrix: unknowns of another rank are left.
    """
    x, y = node.inputs
    if x.type.ndim - y.type.ndim != node.outputs[0].type.ndim:
        return None
    for axis in node.op.axes or ():
        x = pt.moveaxis(x, axis, -1)
    unknowns = sizes_of(x)[y.type.ndim :]
    matrix = x.reshape((product_of(sizes_of(y)), product_of(unknowns)))
    return _as_result(node, pt.linalg.solve(matrix, y.ravel(), b_ndim=1).reshape(unknowns))


def sizes_of(x: TensorVariable) -> list[TensorVariable]:
    """Return the sizes of all axes."""
    return [x.shape[axis] for axis in range(x.type.ndim)]


def product_of(sizes: Sequence[TensorVariable]) -> TensorVariable:
    """Return the product of sizes."""
    total: TensorVariable = pt.constant(1, dtype="int64")
    for size in sizes:
        total = total * size
    return total


def _as_result(node: Apply, new: TensorVariable) -> list[Variable] | None:
    """Return a new result, if it has the dtype of a node's."""
    (old,) = node.outputs
    if new.type.dtype != old.type.dtype:
        return None
    return [old.type.filter_variable(new, allow_convert=True)]
