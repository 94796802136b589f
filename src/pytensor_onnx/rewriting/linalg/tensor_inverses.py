"""Write inverses and solutions of tensors as inverses and solutions of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.linalg.inverse import TensorInv
from pytensor.tensor.linalg.solvers.lstsq import TensorSolve
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rules import part_of, rewrites_nodes

Sizes = list[TensorVariable]


@rewrites_nodes(
    [TensorInv],
    name="solve_as_matrices",
    family="linalg",
    purpose="conversion",
    identity="tensorsolve(a, b) = reshape(solve(matrix of a, b)), tensorinv(x) alike",
    requires="floats with rows, and unknowns of the rank that PyTensor declares",
    begins_at=("TensorInv", "TensorSolve"),
)
def invert_as_matrix(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Invert the matrix whose rows are the axes that come first in the result.

    Integers, which PyTensor gives an integer inverse, and no rows are left.
    """
    (x,) = node.inputs
    if node.op.ind <= 0 or not x.type.dtype.startswith("float"):
        return None
    matrix, sizes = matrix_to_invert(x, node.op.ind)
    return _as_result(node, pt.linalg.inv(matrix).reshape(sizes))


@part_of(invert_as_matrix.rule, [TensorSolve])
def solve_as_matrix(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Solve a system whose columns are the last axes, after the Op has moved its axes there.

    PyTensor's result is a matrix: unknowns of another rank are left.
    """
    x, y = node.inputs
    if x.type.ndim - y.type.ndim != node.outputs[0].type.ndim:
        return None
    matrix, sizes = matrix_to_solve(x, y, node.op.axes)
    return _as_result(node, pt.linalg.solve(matrix, y.ravel(), b_ndim=1).reshape(sizes))


def matrix_to_invert(x: TensorVariable, ind: int) -> tuple[TensorVariable, Sizes]:
    """Return the matrix with the inverse of a tensor, and the sizes of the inverse.

    Parameters
    ----------
    x
        Tensor.
    ind
        Number of leading axes, which come last in the inverse.

    Examples
    --------
    >>> matrix, sizes = matrix_to_invert(pt.zeros((2, 6, 3, 4)), 2)
    >>> matrix.type.shape, [int(size.eval(mode="ONNX")) for size in sizes]
    ((12, 12), [3, 4, 2, 6])
    """
    first, last = _sizes_of(x)[:ind], _sizes_of(x)[ind:]
    return x.reshape((_product_of(last), _product_of(first))), [*last, *first]


def matrix_to_solve(
    x: TensorVariable, y: TensorVariable, axes: Sequence[int] | None
) -> tuple[TensorVariable, Sizes]:
    """Return the matrix of a system of tensors, and the sizes of its unknowns.

    Parameters
    ----------
    x, y
        Coefficients and right-hand side.
    axes
        Axes of the coefficients that are moved to the end first.

    Examples
    --------
    >>> matrix, sizes = matrix_to_solve(pt.zeros((2, 3, 6)), pt.zeros((2, 3)), None)
    >>> matrix.type.shape, [int(size.eval(mode="ONNX")) for size in sizes]
    ((6, 6), [6])
    """
    for axis in axes or ():
        x = pt.moveaxis(x, axis, -1)
    unknowns = _sizes_of(x)[y.type.ndim :]
    return x.reshape((_product_of(_sizes_of(y)), _product_of(unknowns))), unknowns


def _sizes_of(x: TensorVariable) -> Sizes:
    """Return the sizes of all axes."""
    return [x.shape[axis] for axis in range(x.type.ndim)]


def _product_of(sizes: Sequence[TensorVariable]) -> TensorVariable:
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
