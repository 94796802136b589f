"""Replace products with diagonal and selection matrices by scalings and indexing, in two passes.

PyTensor runs these rewrites repeatedly among all others of the canonical form. Its knowledge of
each matrix is invalidated by every earlier change, which takes a time that is quadratic in the size
of a network. One pass before and one after find as much in linear time. A pass whose graph has no
product with a matrix that may be structured does not ask at all.
"""

from pytensor.assumptions.core import (
    CONSTANT_INFER_REGISTRY,
    DIAGONAL,
    ORTHOGONAL,
    PERMUTATION,
    SELECTION,
    FactState,
)
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.math import Dot
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.rewriting.math import dot_diag_to_elemwise
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)

from pytensor_onnx.rewriting.elementwise.arithmetic_guards import may_fit
from pytensor_onnx.rewriting.engine.guarded import guard
from pytensor_onnx.rewriting.engine.inner_graphs import core_op
from pytensor_onnx.rewriting.engine.predicates import applies
from pytensor_onnx.rewriting.engine.walkers import Visit, ops_of
from pytensor_onnx.rewriting.linalg.selection_matrices import index_by_selection
from pytensor_onnx.rewriting.linalg.structure_rules import has_rule
from pytensor_onnx.rules import rewrites_graphs

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
