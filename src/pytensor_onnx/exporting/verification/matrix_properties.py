"""Properties of matrices that a graph relies on, such as symmetry, and samples that have them."""

from collections.abc import Callable, Sequence

import numpy as np
from pytensor.assumptions.core import FactState
from pytensor.assumptions.specify import SpecifyAssumptions
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.shape import SpecifyShape

from pytensor_onnx.rewriting.engine.walkers import core_op, inner_nodes

_OF_SOLVERS = {
    "sym": "symmetric",
    "her": "symmetric",
    "pos": "positive_definite",
    "tridiagonal": "tridiagonal",
}
# Sums and congruences of such matrices are such matrices.
_INHERITED = {"symmetric", "positive_definite"}
_MASKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "lower_triangular": np.tril,
    "upper_triangular": np.triu,
    "diagonal": lambda a: np.triu(np.tril(a)),
    "tridiagonal": lambda a: np.triu(np.tril(a, 1), -1),
}


class Promises:
    """Properties that a graph takes for granted, for each of its inputs.

    They are those of `pytensor.assume`, of ``assume_a`` of `pt.linalg.solve` and of Cholesky
    factors. PyTensor's rewrites rely on them, and its modes differ for other matrices. Matrices
    that are computed from inputs are taken to have them if the inputs are symmetric.

    Parameters
    ----------
    graph
        A graph as written.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> a, b = pt.dmatrices("a", "b")
    >>> graph = FunctionGraph([a, b], [pt.linalg.solve(a, b, assume_a="sym")], clone=False)
    >>> kept, other = Promises(graph).keep([np.array([[1.0, 2], [4, 5]])] * 2)
    >>> kept.tolist(), other.tolist()
    ([[1.0, 3.0], [3.0, 5.0]], [[1.0, 2.0], [4.0, 5.0]])
    """

    def __init__(self, graph: FunctionGraph) -> None:
        own: dict[Variable, set[str]] = {variable: set() for variable in graph.inputs}
        computed: set[str] = set()
        for node in graph.toposort():
            if names := _promised(node.op):
                own.get(_source(node.inputs[0]), computed).update(names)
            for inner in inner_nodes(node.op):
                computed |= _promised(inner.op)
        inherited = computed & _INHERITED
        self._of_inputs = [names or inherited for names in own.values()]

    def keep(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return arrays with the properties, made from any arrays; the others stay as they are.

        Parameters
        ----------
        arrays
            One for each of the first inputs.
        """
        return [_with(names, array) for names, array in zip(self._of_inputs, arrays, strict=False)]


def _promised(op: Op) -> set[str]:
    """Return the properties that an Op takes its first operand to have."""
    op = core_op(op)
    if isinstance(op, SpecifyAssumptions):
        return {key.name for key, state in op.assumptions if state is FactState.TRUE}
    if isinstance(op, Cholesky):
        return {"positive_definite"}
    if isinstance(op, Solve) and op.assume_a in _OF_SOLVERS:
        return {_OF_SOLVERS[op.assume_a]}
    return set()


def _source(variable: Variable) -> Variable:
    """Return the variable whose value another has by definition."""
    while variable.owner is not None and isinstance(
        variable.owner.op, SpecifyAssumptions | SpecifyShape
    ):
        variable = variable.owner.inputs[0]
    return variable


def _with(names: set[str], array: np.ndarray) -> np.ndarray:
    """Return an array like another that has properties, if its rank and shape allow it."""
    if "unique_indices" in names:
        return array.ravel().argsort().reshape(array.shape).astype(array.dtype)
    if "unit_magnitude" in names:
        array = np.where(array < 0, -1, 1).astype(array.dtype)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or not array.size:
        return array
    if names & {"permutation", "selection"}:
        chosen = array[..., 0].argsort(axis=-1)
        return (chosen[..., None] == np.arange(array.shape[-1])).astype(array.dtype)
    if "orthogonal" in names:
        # LAPACK has no float16.
        return np.linalg.qr(array.astype("float64"))[0].astype(array.dtype)
    if names & _INHERITED:
        array = ((array + array.swapaxes(-1, -2)) / 2).astype(array.dtype)
    for mask in names & _MASKS.keys():
        array = _MASKS[mask](array)
    if "positive_definite" in names:
        rows = np.abs(array).sum(axis=-1, keepdims=True, dtype=array.dtype)
        diagonal = (2 * rows + (rows == 0)) * np.eye(array.shape[-1], dtype=array.dtype)
        array = (array + diagonal).astype(array.dtype)
    return array
