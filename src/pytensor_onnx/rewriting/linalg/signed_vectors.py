"""Give eigenvectors and singular vectors of the reference graph the signs that files compute."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.linalg.decomposition.eigen import Eigh
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.solvers.linear_control import SolveDiscreteARE

from pytensor_onnx.functions.linalg.vector_signs import signed, signs
from pytensor_onnx.rewriting.engine.inner_graphs import core_op
from pytensor_onnx.rewriting.linalg.riccati_equations import riccati_solution


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
