"""Matrix equations, inverses of tensors, and signs of eigenvectors."""

from __future__ import annotations

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.linalg.decomposition.eigen import Eigh
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.dtype_utils import linalg_output_dtype
from pytensor.tensor.linalg.inverse import TensorInv
from pytensor.tensor.linalg.solvers.linear_control import SolveDiscreteARE
from pytensor.tensor.linalg.solvers.lstsq import TensorSolve
from pytensor.tensor.rewriting.blockwise import blockwise_of
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.qr import signed, signs
from pytensor_onnx.rewriting.engine.walkers import core_op
from pytensor_onnx.rules import part_of, rewrites_nodes


@rewrites_nodes(
    [SolveDiscreteARE, blockwise_of(SolveDiscreteARE)],
    family="linalg",
    purpose="correctness",
    identity="X from an ordered Schur form = X by doubling",
    requires="real matrices",
)
def solve_riccati(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the graph around a generalised Schur form by doubling, for real matrices."""
    return riccati_solution(node)


def riccati_solution(node: Apply) -> list[Variable] | None:
    """Return the solution of a Riccati equation as an Op; None for other Ops."""
    if not isinstance(core_op(node.op), SolveDiscreteARE):
        return None
    dtype = linalg_output_dtype(*(x.type.dtype for x in node.inputs))
    if not dtype.startswith("float"):
        return None
    # Few graphs have such an equation.
    from pytensor_onnx.functions.linalg.equations import discrete_riccati

    (old,) = node.outputs
    new = discrete_riccati(*(x.astype(dtype) for x in node.inputs))
    return [old.type.filter_variable(new.astype(old.type.dtype), allow_convert=True)]


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


def give_signs(fgraph: FunctionGraph) -> dict[Variable, Variable]:
    """Give eigenvectors and singular vectors the signs of files, in place.

    Riccati equations are solved by SciPy, as PyTensor returns numbers where the costs are not
    symmetric. Inner graphs stay as they are.

    Returns
    -------
    dict
        The results in the place of those of each Op.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.matrix("x")
    >>> fgraph = FunctionGraph([x], [pt.linalg.eigh(x)[1]], clone=False)
    >>> len(give_signs(fgraph))
    2
    """
    replaced: dict[Variable, Variable] = {}
    for node in fgraph.toposort():
        results = _with_signs(node)
        if results is not None:
            replaced.update(zip(node.outputs, results, strict=True))
            fgraph.replace_all(list(zip(node.outputs, results, strict=True)), import_missing=True)
    return replaced


def _with_signs(node: Apply) -> Sequence[Variable] | None:
    """Return a node's results as exported files define them, or None for other Ops."""
    op = core_op(node.op)
    if isinstance(op, SolveDiscreteARE):
        return riccati_solution(node)
    if isinstance(op, Eigh):
        values, vectors = node.op.make_node(*node.inputs).outputs
        return [values, (vectors.mT * signs(vectors.mT)).mT]
    if isinstance(op, SVD) and op.compute_uv:
        u, s, vt = node.op.make_node(*node.inputs).outputs
        left = signs(u.mT)
        return [(u.mT * left).mT, s, signed(vt, left, s)]
    return None
