"""Drop transposes of symmetric matrices where a matrix may be known to be symmetric.

PyTensor asks this of the operand of every transpose, and forgets the answers behind every change:
this takes a time that is quadratic in the depth of a network with gradients.
"""

from pytensor.assumptions.core import IMPLIES, SYMMETRIC
from pytensor.assumptions.dot import match_congruence
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.math import Dot
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.rewriting.linalg.utils import useless_symmetric_transpose
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import Subtensor

from pytensor_onnx.rewriting.engine.inner_graphs import core_op
from pytensor_onnx.rewriting.engine.predicates import made_by
from pytensor_onnx.rewriting.linalg.structure_rules import has_rule
from pytensor_onnx.rules import rewrites_nodes

_MOST_STEPS = 100

_SYMMETRIC = (SYMMETRIC, *(key for key, implied in IMPLIES.items() if SYMMETRIC in implied))

# The result is symmetric only if the first matrix among the operands is.
_OF_FIRST_MATRIX = (Elemwise, DimShuffle, Reshape, SpecifyShape, Subtensor, JoinDims, SplitDims)


@rewrites_nodes(
    useless_symmetric_transpose.tracks(),
    family="linalg",
    purpose="compile time",
    identity="A.T = A",
    requires="A may be known to be symmetric",
    measured="benchmarks/NOTES.md, Compilation",
)
def drop_symmetric_transpose(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Drop the transpose of a symmetric matrix."""
    if may_be_symmetric(fgraph, node.inputs[0]):
        return useless_symmetric_transpose.transform(fgraph, node) or None
    return None


def may_be_symmetric(fgraph: FunctionGraph, matrix: Variable) -> bool:
    """Return whether PyTensor may know that a matrix is symmetric.

    It does not know it of an input, of a product of two other matrices, or of the result of an
    operation for which it has no rule, as a layer of a network.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, w = pt.matrices("x", "w")
    >>> graph = FunctionGraph([x, w], [pt.tanh(x @ w), pt.exp(x @ x.T)], clone=False)
    >>> [may_be_symmetric(graph, y) for y in graph.outputs]
    [False, True]
    """
    # A declaration of the user, or another rewrite, has attached PyTensor's knowledge.
    if hasattr(fgraph, "assumption_feature") or hasattr(matrix.tag, "symmetric"):
        return True
    for _ in range(_MOST_STEPS):
        if any(_is_solve(client) for client, _ in fgraph.clients.get(matrix, ())):
            return True
        node = matrix.owner
        if node is None:
            return isinstance(matrix, Constant)
        op = core_op(node.op)
        if isinstance(op, Dot):
            return _is_symmetric_product(node)
        if not isinstance(op, _OF_FIRST_MATRIX):
            return has_rule(op, _SYMMETRIC)
        # All matrices among the operands have to be symmetric: the first one decides.
        operands = node.inputs if isinstance(op, Elemwise) else node.inputs[:1]
        matrices = [x for x in operands if x.type.ndim > 1 and not all(x.type.broadcastable)]
        if not matrices:
            return isinstance(op, Elemwise)
        matrix = matrices[0]
    return True


def _is_solve(client: Apply) -> bool:
    return isinstance(core_op(client.op), Solve)


def _is_symmetric_product(node: Apply) -> bool:
    left, right = node.inputs
    return (
        left is right
        or left in _transposed(right)
        or right in _transposed(left)
        or (match_congruence(node) is not None)
    )


def _transposed(x: Variable) -> list[Variable]:
    node = made_by(x, DimShuffle)
    return [] if node is None else list(node.inputs)
