"""Products with diagonal, triangular, symmetric and selecting matrices.

PyTensor runs these rewrites repeatedly among all others of the canonical form. Its knowledge of
each matrix is invalidated by every earlier change, which takes a time that is quadratic in the size
of a network. One pass before and one after find as much in linear time. A pass whose graph has no
product with a matrix that may be structured does not ask at all.
"""

from collections.abc import Iterable

import numpy as np
import pytensor.tensor as pt
from pytensor.assumptions.core import (
    ASSUMPTION_INFER_REGISTRY,
    CONSTANT_INFER_REGISTRY,
    DIAGONAL,
    IMPLIES,
    ORTHOGONAL,
    PERMUTATION,
    SELECTION,
    SYMMETRIC,
    AssumptionKey,
    FactState,
    check_assumption,
)
from pytensor.assumptions.dot import match_congruence
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, Eye
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.math import Dot
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.rewriting.linalg.products import selection_dot_to_indexing
from pytensor.tensor.rewriting.linalg.utils import (
    strip_left_expand_dims_and_transpose,
    useless_symmetric_transpose,
)
from pytensor.tensor.rewriting.math import dot_diag_to_elemwise
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.elementwise.arithmetic_guards import may_fit
from pytensor_onnx.rewriting.engine.predicates import applies, guard, made_by
from pytensor_onnx.rewriting.engine.walkers import Visit, core_op, ops_of
from pytensor_onnx.rules import rewrites_graphs, rewrites_nodes


def has_rule(op: Op, keys: Iterable[AssumptionKey]) -> bool:
    """Return whether PyTensor has a rule by which results of an Op have one of the structures.

    Examples
    --------
    >>> from pytensor.assumptions.core import DIAGONAL
    >>> from pytensor.tensor.basic import Eye, Join
    >>> [has_rule(op, [DIAGONAL]) for op in (Eye("float64"), Join(0))]
    [True, False]
    """
    kinds = type(op).__mro__
    return any((key, kind) in ASSUMPTION_INFER_REGISTRY for key in keys for kind in kinds)


_EQUAL_SIZES = CheckAndRaise(ValueError, "the sizes of a product with a selection matrix differ")


@node_rewriter(selection_dot_to_indexing.tracks())
def index_by_selection(fgraph: FunctionGraph, node: Apply) -> list[TensorVariable] | None:
    """Index by the selection, and by a permutation on the left too.

    PyTensor writes the rows of the other matrix into zeros for a selection on the left, and checks
    no size.

    Examples
    --------
    >>> x = pt.matrix("x", shape=(2, None))
    >>> node = (pt.constant([[0.0, 1.0], [1.0, 0.0]]) @ x).owner
    >>> fgraph = FunctionGraph([x], node.outputs, clone=False)
    >>> [result] = index_by_selection.transform(fgraph, node)
    >>> result.owner.op
    AdvancedSubtensor{idx_list}
    """
    a, b = node.inputs
    result = _permuted(fgraph, a, b, -2)
    if result is None:
        result = _permuted(fgraph, b, a, -1)
    if result is None:
        found = selection_dot_to_indexing.transform(fgraph, node)
        if not found:
            return None
        [result] = found
        if None in (a.type.shape[-1], b.type.shape[-2]):
            result = _EQUAL_SIZES(result, pt.eq(a.shape[-1], b.shape[-2]))
    [out] = node.outputs
    copy_stack_trace(out, result)
    return [out.type.filter_variable(result.astype(out.type.dtype), allow_convert=True)]


def _permuted(
    fgraph: FunctionGraph, matrix: TensorVariable, other: TensorVariable, axis: int
) -> TensorVariable | None:
    """Return the other matrix permuted along an axis, or None if `matrix` is no permutation."""
    core, is_transposed = strip_left_expand_dims_and_transpose(matrix)
    if core.type.ndim != 2 or not check_assumption(fgraph, core, PERMUTATION):
        return None
    sizes: list = [None] * other.type.ndim
    sizes[axis] = core.shape[0]
    other = pt.specify_shape(other, sizes)
    if _is_identity(core):
        return other
    # A row of the product is the row of the other matrix at the one of a row of the permutation.
    order = pt.argmax(core, axis=-1 if (axis == -2) != is_transposed else -2)
    return other[..., order, :] if axis == -2 else other[..., order]


def _is_identity(matrix: TensorVariable) -> bool:
    if isinstance(matrix, Constant):
        return np.array_equal(matrix.data, np.eye(len(matrix.data)))
    return made_by(matrix, Eye) is not None


KEYS = (DIAGONAL, SELECTION, PERMUTATION, ORTHOGONAL)
"""The structures that the rewrites ask for, and those from which PyTensor derives these."""
PROPAGATING = (
    DimShuffle,
    Elemwise,
    Dot,
    Subtensor,
    AdvancedSubtensor,
    IncSubtensor,
    AdvancedIncSubtensor,
    Reshape,
    SpecifyShape,
    JoinDims,
    SplitDims,
    BlockDiagonal,
    KroneckerProduct,
    Cholesky,
    MatrixInverse,
    MatrixPinv,
)
"""Ops whose results have a structure only if an operand has one."""


_NO_CHECK = "products-with-structured-matrices-check-no-sizes"
_NO_ROWS = "a-constant-without-rows-fails-to-rewrite-as-a-selection"


def fits_and_has_elements(node: Apply) -> bool:
    """Return whether operands fit and are not empty: PyTensor looks for the ones in a selection."""
    return may_fit(node) and not any(0 in x.type.shape for x in node.inputs)


_multiply_by_structure = Visit(
    *(
        guard(
            rewrite,
            fits_and_has_elements,
            family="linalg",
            purpose="correctness",
            identity=identity,
            requires="equal inner sizes, and elements",
            measured=f"docs/project/upstream.md#{defect}",
        ).guarded()
        for rewrite, identity, defect in (
            (dot_diag_to_elemwise, "diag(v) @ X = v[:, None] * X", _NO_CHECK),
            (index_by_selection, "P @ X = X[p]", _NO_ROWS),
        )
    )
)


@rewrites_graphs(
    family="linalg",
    purpose="compile time",
    identity="diag(v) @ X = v[:, None] * X, and P @ X = X[p]",
    requires="a product with a matrix that may have a structure",
    begins_at=("Dot",),
    measured="benchmarks/NOTES.md, Compilation",
)
def multiply_by_structure(fgraph: FunctionGraph) -> None:
    """Apply PyTensor's rewrites of structured products if a product may have such an operand.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> v, x = pt.vector("v"), pt.matrix("x")
    >>> graph = FunctionGraph([v, x], [pt.diag(v) @ x], clone=False)
    >>> multiply_by_structure.rewrite(graph)
    >>> any(isinstance(node.op, Dot) for node in graph.apply_nodes)
    False
    """
    if _has_structured_product(fgraph):
        _multiply_by_structure.rewrite(fgraph)


def _has_structured_product(fgraph: FunctionGraph) -> bool:
    if not any(isinstance(core_op(op), Dot) for op in ops_of(fgraph)):
        return False
    structured = _declared(fgraph)
    for node in fgraph.toposort():
        op = core_op(node.op)
        if isinstance(op, Dot) and _has_structured_operand(node, structured):
            return True
        if _may_be_structured(node, op, structured):
            structured.update(node.outputs)
    return False


def _declared(fgraph: FunctionGraph) -> set[Variable]:
    """Return the variables whose structure PyTensor knows: it removes users' declarations early."""
    feature = getattr(fgraph, "assumption_feature", None)
    known = feature.cache.items() if feature is not None else ()
    return {x for (x, key), state in known if key in KEYS and state is FactState.TRUE}


def _has_structured_operand(node: Apply, structured: set[Variable]) -> bool:
    return any(
        not _is_scalar_of(x, node) and (x in structured or _is_structured_constant(x))
        for x in node.inputs
    )


def _is_scalar_of(x: Variable, node: Apply) -> bool:
    """Return whether PyTensor takes a matrix of one number for a scalar of an elementwise node."""
    return (
        applies(node)
        and len(node.inputs) > 1
        and x.type.ndim > 1
        and all(x.type.broadcastable[-2:])
    )


def _is_structured_constant(x: Variable) -> bool:
    if x.owner is not None or not isinstance(x, Constant) or getattr(x.type, "ndim", 0) < 2:
        return False
    rules = [CONSTANT_INFER_REGISTRY[key] for key in KEYS if key in CONSTANT_INFER_REGISTRY]
    return any(rule(x) is FactState.TRUE for rule in rules)


def _may_be_structured(node: Apply, op: Op, structured: set[Variable]) -> bool:
    """Return whether PyTensor may know a structure of the results."""
    if isinstance(op, PROPAGATING):
        return _has_structured_operand(node, structured)
    if isinstance(op, Alloc):
        rows_and_columns = node.outputs[0].type.shape[-2:]
        is_square = None not in rows_and_columns and len(set(rows_and_columns)) == 1
        return is_square or _has_structured_operand(node, structured)
    return has_rule(op, KEYS)


# Drop transposes of symmetric matrices where a matrix may be known to be symmetric.
#
# PyTensor asks this of the operand of every transpose, and forgets the answers behind every change:
# this takes a time that is quadratic in the depth of a network with gradients.

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
