"""The query of rewrites for ONNX: PyTensor's rewrites, guarded or left out, and types of inputs."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode, optdb
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import GraphRewriter, NodeRewriter, copy_stack_trace
from pytensor.graph.rewriting.db import EquilibriumDB, RewriteDatabaseQuery, SequenceDB
from pytensor.graph.traversal import applys_between, graph_inputs
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Choose
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg.decomposition.eigen import Eigh
from pytensor.tensor.linalg.inverse import TensorInv
from pytensor.tensor.linalg.solvers.lstsq import Lstsq, TensorSolve
from pytensor.tensor.math import Dot
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.linalg.complex_matrices import ComplexLstsq, HermitianEigh
from pytensor_onnx.rewriting import reductions
from pytensor_onnx.rewriting.elementwise import arithmetic_guards
from pytensor_onnx.rewriting.elementwise.arithmetic_guards import chosen_of_any_shape, zero_quotient
from pytensor_onnx.rewriting.elementwise.number_widths import widen_numbers
from pytensor_onnx.rewriting.engine import batches
from pytensor_onnx.rewriting.engine.batches import drop_batches, multiply_matrices
from pytensor_onnx.rewriting.engine.predicates import GUARDED, UNDER_CONDITION
from pytensor_onnx.rewriting.engine.walkers import (
    Visit,
    core_op,
    inner_nodes,
    ops_of,
    with_inner_graph,
)
from pytensor_onnx.rewriting.indexing import index_guards
from pytensor_onnx.rewriting.indexing.index_guards import take_diagonals
from pytensor_onnx.rewriting.linalg.matrix_forms import matrix_to_solve
from pytensor_onnx.rewriting.linalg.structured_products import (
    drop_symmetric_transpose,
    multiply_by_structure,
)
from pytensor_onnx.rewriting.reductions import minimum_of_integers
from pytensor_onnx.rules import Family, Purpose, Rule, declare, ledger, rewrites_graphs

__all__ = [
    "GUARDS",
    "drop_batches",
    "drop_symmetric_transpose",
    "minimum_of_integers",
    "multiply_by_structure",
    "multiply_matrices",
    "take_diagonals",
    "zero_quotient",
]


def excluded(
    name: str, family: Family, purpose: Purpose, identity: str, requires: str, measured: str = ""
) -> str:
    """Declare that a rewrite of PyTensor is left out, and return its name.

    Parameters
    ----------
    name
        Name or tag of the rewrite.
    family, purpose, identity
        Fields of the `Rule`: the equation is PyTensor's.
    requires
        Why it is left out.
    measured
        Where the reason was measured or reported.
    """
    rule = Rule(name, "exclusion", family, purpose, identity, requires, measured=measured)
    return declare(rule).name


_SHARED_TERMS = (
    "docs/project/upstream.md"
    "#sums-and-products-of-shared-terms-grow-with-the-square-of-their-number"
)
OPEN_OPERATORS = "open_imported_operators"
"""Rewrite of other modes; see `rewriting.networks.opened_operators`."""
REWRITES_OF_OTHERS = ("pytensor_onnx.ml.layer_rewrites", "pytensor_onnx.pymc.pymc_rewrites")
"""Modules of other rooms with rewrites, which are imported before the mode rewrites a graph."""
REQUIRED = ("minimum_compile", "onnx", "lazy_ifelse")
INCOMPATIBLE = (
    GUARDED,
    "fusion",
    "inplace",
    "cxx_only",
    OPEN_OPERATORS,
    excluded("BlasOpt", "products", "conversion", "A @ B = gemm(A, B)", "no ONNX form of the Ops"),
    excluded(
        "local_sign_div",
        "elementwise",
        "correctness",
        "sign(x / y) = sign(x) / sign(y)",
        "the sign of 1 / 0 is 1, the sign of 0 is 0",
        "docs/project/upstream.md#the-sign-of-a-quotient-by-zero-is-zero",
    ),
    excluded(
        "local_add_canonizer",
        "elementwise",
        "compile time",
        "a + (b - a) = b",
        "replaced by canonize_sum, as it takes quadratic time",
        _SHARED_TERMS,
    ),
    excluded(
        "local_mul_canonizer",
        "elementwise",
        "compile time",
        "a * (b / a) = b",
        "replaced by canonize_product, as it takes quadratic time",
        _SHARED_TERMS,
    ),
    excluded(
        "local_greedy_distributor",
        "elementwise",
        "compile time",
        "c * (a + b / c) = c * a + b",
        "replaced by distribute_factors, as it takes quadratic time",
    ),
    excluded(
        "local_sigm_times_exp",
        "elementwise",
        "compile time",
        "sigmoid(x) * exp(-x) = sigmoid(-x)",
        "replaced by multiply_sigmoids, as it takes quadratic time",
    ),
    excluded(
        "pre_local_IncSubtensor_serialize",
        "indexing",
        "compile time",
        "inc(x, a, i) + inc(y, b, j) = inc(inc(x + y, a, i), b, j)",
        "replaced by join_increments, as it takes quadratic time",
    ),
    excluded(
        "local_IncSubtensor_serialize",
        "indexing",
        "compile time",
        "inc(x, a, i) + inc(y, b, j) = inc(inc(x + y, a, i), b, j)",
        "replaced by join_increments, as it takes quadratic time",
    ),
    excluded(
        "dot_diag_to_elemwise",
        "linalg",
        "compile time",
        "diag(v) @ X = v[:, None] * X",
        "replaced by multiply_by_structure, as it takes quadratic time",
    ),
    excluded(
        "selection_dot_to_indexing",
        "linalg",
        "compile time",
        "P @ X = X[p]",
        "replaced by multiply_by_structure, as it takes quadratic time and checks no size",
    ),
    excluded(
        "useless_symmetric_transpose",
        "linalg",
        "compile time",
        "A.T = A",
        "replaced by drop_symmetric_transpose, as it takes quadratic time",
    ),
    excluded(
        "topo_constant_folding",
        "structure",
        "compile time",
        "f(constants) = constant",
        "replaced by the same for nodes with constant operands",
    ),
    excluded(
        "local_elemwise_alloc",
        "elementwise",
        "correctness",
        "f(alloc(a, n), x) = f(a, x)",
        "replaced by the guarded one, which checks where n comes from",
        "docs/project/upstream.md#zeros-of-another-size-are-dropped-from-a-sum",
    ),
    excluded(
        "local_useless_unbatched_blockwise",
        "structure",
        "compile time",
        "Blockwise{f}(x[None]) = f(x)[None]",
        "replaced by the guarded one",
    ),
    excluded(
        "extract_diag_lift_pass",
        "linalg",
        "correctness",
        "diagonal(f(x)) = f(diagonal(x))",
        "replaced by guarded ones",
        "docs/project/upstream.md#diagonals-have-another-order-of-axes-or-a-negative-size",
    ),
    excluded(
        "local_batched_matmul_to_core_matmul",
        "products",
        "size",
        "Blockwise{dot}(x, W) = reshape(reshape(x) @ W)",
        "MatMul broadcasts all axes but the last two",
        "benchmarks/NOTES.md, Rules that stay, with their gain",
    ),
    excluded(
        "local_batched_matmul_to_core_matmul_with_reshape",
        "products",
        "size",
        "Blockwise{dot}(x, W) = reshape(reshape(x) @ W)",
        "MatMul broadcasts all axes but the last two",
        "benchmarks/NOTES.md, Rules that stay, with their gain",
    ),
    excluded(
        "specialize_matmul_to_batched_dot",
        "products",
        "conversion",
        "Blockwise{dot}(x, y) = BatchedDot(x, y)",
        "MatMul broadcasts all axes but the last two",
    ),
    excluded(
        "scan_reduce_nsteps",
        "loops",
        "correctness",
        "scan(f, n)[:k] = scan(f, k)",
        "replaced by reduce_steps, as the number may be negative",
        "docs/project/upstream.md#a-slice-of-steps-makes-too-many-or-a-negative-number",
    ),
    excluded(
        "scan_reduce_trace_prealloc",
        "loops",
        "correctness",
        "scan(f, n)[-1] = last state of scan(f, n)",
        "replaced by reduce_trace, as it returns other steps of loops with a condition",
        "docs/project/upstream.md#steps-of-a-loop-with-a-condition-are-counted-from-its-end",
    ),
    excluded(
        "scan_sit_sot_to_untraced",
        "loops",
        "conversion",
        "a trace of one row = an untraced state",
        "an untraced state may change its shape; a state with a trace of one row may not",
    ),
)
"""Tags and names of PyTensor's rewrites that are left out.

The first are no single rules: rewrites in place, fused loops, those with a guard in their
place, and the expressions of operators of imported models, which are operators here.
"""

STABLE_QUERY = RewriteDatabaseQuery(
    include=["canonicalize", "stabilize", "specialize", UNDER_CONDITION],
    exclude=["fusion", "inplace", "BlasOpt", "cxx_only", "local_sign_div", GUARDED],
)
"""PyTensor's rewrites of arithmetic, without the wrong ones."""
ONNX_QUERY = RewriteDatabaseQuery(include=["fast_run", *REQUIRED], exclude=list(INCOMPATIBLE))

SPECIALIZE = EquilibriumDB()
"""Node rewrites that run after all of PyTensor's."""


LAYERS = SequenceDB()
"""Rewrites that recognise layers of networks, before PyTensor's rewrites take layers apart."""


def register_onnx[R: NodeRewriter | GraphRewriter](
    rewrite: R, *, stage: Literal["layers", "specialize"] = "specialize"
) -> R:
    """Register a rewriter that runs before conversion, in the exporter and in the linker.

    Parameters
    ----------
    rewrite
        Rewriter made by `pytensor.graph.node_rewriter`, or in the stage ``"layers"`` a rewriter of
        whole graphs.
    stage
        ``"specialize"``, after all of PyTensor's rewrites and repeated until nothing changes, or
        ``"layers"``, before them: once each, in the order of their registration.

    Examples
    --------
    >>> from pytensor.graph import node_rewriter
    >>> from pytensor.printing import Print
    >>> @register_onnx
    ... @node_rewriter([Print])
    ... def drop_print(fgraph, node):
    ...     return list(node.inputs) if node.op.message == "drop me" else None
    """
    name = getattr(rewrite, "__name__", None) or str(rewrite)
    if stage == "layers":
        whole = rewrite if isinstance(rewrite, GraphRewriter) else Visit(rewrite)
        LAYERS.register(name, whole, "onnx", position=len(LAYERS.__position__))
    else:
        SPECIALIZE.register(name, rewrite, "onnx")
    return rewrite


def stabilised(graphs: Sequence[Variable]) -> list[Variable]:
    """Return graphs of PyTensor's operations after its rewrites for numerical stability.

    Rewrites such as that of ``log(1 - sigmoid(x))`` do not apply to an operation whose operands are
    used elsewhere, as in a gradient: here they run before other graphs share the operands.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.scalar("x")
    >>> (y,) = stabilised([pt.log(1.0 - pt.sigmoid(x))])
    >>> float(y.eval({x: 800.0}, mode="FAST_COMPILE"))
    -800.0
    """
    fgraph = FunctionGraph(outputs=list(graphs), clone=True, copy_inputs=False)
    widen_numbers.rewrite(fgraph)
    optdb.query(STABLE_QUERY).rewrite(fgraph)
    return list(fgraph.outputs)


def switched_off_exclusions() -> list[str]:
    """Return the rewrites of PyTensor whose exclusion is switched off."""
    return [name for name, rule in ledger().items() if rule.kind == "exclusion" and rule.is_off]


def with_included(query: RewriteDatabaseQuery, names: Sequence[str]) -> RewriteDatabaseQuery:
    """Return a query that includes rewrites that it excluded."""
    return RewriteDatabaseQuery(
        include=[*query.include, *names],
        require=query.require,
        exclude=[name for name in query.exclude if name not in names],
        position_cutoff=query.position_cutoff,
    )


def rewrite_for_onnx(fgraph: FunctionGraph, mode: Mode) -> None:
    """Rewrite a graph in place with the rewrites of a mode."""
    mode.optimizer.rewrite(fgraph)


GUARDS = (
    *arithmetic_guards.GUARDS,
    *batches.GUARDS,
    *index_guards.GUARDS,
    *reductions.GUARDS,
)
"""Rewrites of PyTensor with the condition under which each is correct."""


_MOVING = (AdvancedSubtensor, DimShuffle, JoinDims, Reshape, SplitDims, Subtensor)


@rewrites_graphs(
    family="structure",
    purpose="correctness",
    identity="declared type = type of the computed value",
    requires="an Op whose declared type is known to be wrong",
    ensures="the types of dependent results follow",
    begins_at=("Lstsq", "TensorSolve", "Choose", "Eigh"),
    measured="docs/project/upstream.md#results-have-another-dtype-or-rank-than-their-type",
)
def correct_types(fgraph: FunctionGraph) -> None:
    """Replace Ops with results of a wrong type, and infer the types of dependent results anew.

    These are least squares of vectors, solutions of tensors that are no matrices, choices of arrays
    with more axes than the numbers or broadcast with them, eigenvectors of Hermitian matrices, and
    least squares of complex ones. An Op is left, and refused later, where a dependent Op does not
    take the right type. Complex results that PyTensor takes for real ones may be moved only: it has
    dropped `conj`, say.

    Examples
    --------
    >>> from pytensor.tensor.linalg import lstsq
    >>> x, y = pt.matrix("x"), pt.vector("y")
    >>> fgraph = FunctionGraph([x, y], [lstsq(x, y, -1.0)[0]], clone=False)
    >>> correct_types.rewrite(fgraph)
    >>> fgraph.outputs[0].type.ndim
    1
    """
    updated = set(fgraph.update_mapping or ())
    correct_all(fgraph, [i for i in range(len(fgraph.outputs)) if i not in updated])


def _may_be_wrong(op: Op) -> bool:
    return type(core_op(op)) in _CORRECTIONS or isinstance(op, OpFromGraph | Scan)


def with_right_types(results: Sequence[Variable]) -> Sequence[Variable]:
    """Return results of a graph with the right types, the given ones where these are right.

    Examples
    --------
    >>> from pytensor.tensor.linalg import lstsq
    >>> x, y = pt.matrix("x"), pt.vector("y")
    >>> [result.type.ndim for result in with_right_types([lstsq(x, y, -1.0)[0], x])]
    [1, 2]
    """
    if not any(type(core_op(n.op)) in _CORRECTIONS for n in applys_between([], results)):
        return results
    given = [x for x in graph_inputs(results) if not isinstance(x, Constant)]
    fgraph = FunctionGraph(given, results, copy_inputs=False, copy_orphans=False)
    correct_all(fgraph, range(len(results)))
    return list(fgraph.outputs)


def correct_all(fgraph: FunctionGraph, results: Sequence[int]) -> None:
    """Correct the types in a graph and its loops, in place.

    Parameters
    ----------
    fgraph
        Graph.
    results
        Positions of the outputs that may change their type.
    """
    if not any(map(_may_be_wrong, ops_of(fgraph))):
        return
    while functions := [n for n in fgraph.toposort() if _is_wrong_inside(n, OpFromGraph)]:
        for node in functions:
            new = inline_ofg_node(node)
            fgraph.replace_all(list(zip(node.outputs, new, strict=True)), reason="correct_types")
    for node in fgraph.toposort():
        correct = _CORRECTIONS.get(type(core_op(node.op)))
        corrected = correct(node) if correct else None
        if corrected is not None:
            _replace(fgraph, node, corrected, results)
        elif _is_wrong_inside(node, Scan):
            loop = with_inner_graph(node.op, lambda inner: correct_all(inner, []))
            new = loop.make_node(*node.inputs).outputs
            fgraph.replace_all(list(zip(node.outputs, new, strict=True)), reason="correct_types")


def _is_wrong_inside(node: Apply, kind: type[Op]) -> bool:
    """Return whether an Op of a kind has an Op in its inner graphs whose types are corrected."""
    return isinstance(node.op, kind) and any(
        type(core_op(inner.op)) in _CORRECTIONS for inner in inner_nodes(node.op)
    )


def _replace(
    fgraph: FunctionGraph, node: Apply, corrected: Sequence[Variable], results: Sequence[int]
) -> None:
    """Replace the results of a node, and the results of the nodes that depend on their types.

    The node is left if one of these does not take the right type, or is a result that keeps its
    own.
    """
    for inner in applys_between(node.inputs, corrected):
        copy_stack_trace(node.outputs, inner.outputs)
    pairs = list(zip(node.outputs, corrected, strict=True))
    same = [(old, new) for old, new in pairs if old.type.is_super(new.type)]
    known = _recorded([(old, new) for old, new in pairs if not old.type.is_super(new.type)])
    for other in fgraph.toposort():
        if known.keys().isdisjoint(other.inputs):
            continue
        made = _made_again(other, known)
        if made is None:
            return
        known |= _recorded(zip(other.outputs, made, strict=True))
    kept = {output for i, output in enumerate(fgraph.outputs) if i not in results}
    if any(not old.type.is_super(known[old].type) for old in kept & known.keys()):
        return
    fgraph.replace_all(list(_recorded(same).items()), import_missing=True, reason="correct_types")
    for old, new in known.items():
        for client, i in list(fgraph.clients[old]):
            if isinstance(client.op, Output):
                fgraph.change_node_input(client, i, new, check=False, import_missing=True)


def _recorded(pairs: Iterable[tuple[Variable, Variable]]) -> dict[Variable, Variable]:
    """Return new results by the old ones, and give them the names and the user's lines of these."""
    replaced = dict(pairs)
    for old, new in replaced.items():
        new.name = old.name
        copy_stack_trace(old, new)
    return replaced


def _made_again(node: Apply, known: dict[Variable, Variable]) -> Sequence[Variable] | None:
    """Return a node's results for new input types, or None if the node refuses the types."""
    pairs = [(x, known.get(x, x)) for x in node.inputs]
    inputs = [new for _, new in pairs]
    is_moved = isinstance(node.op, _MOVING)
    if not is_moved and any(_is_complex(old) != _is_complex(new) for old, new in pairs):
        return None
    if isinstance(core_op(node.op), Dot):
        # That of PyTensor takes matrices only, its values are those of NumPy.
        return [pt.matmul(*inputs)]
    try:
        results: list[Variable] = node.clone_with_new_inputs(inputs, strict=False).outputs
    except (AssertionError, IndexError, TypeError, ValueError):
        return None
    return results


def _is_complex(x: Variable) -> bool:
    return isinstance(x, TensorVariable) and x.type.dtype.startswith("complex")


def _least_squares(node: Apply) -> Sequence[Variable] | None:
    """Return the results for a vector, which PyTensor takes for a matrix, or of complex numbers."""
    x, y, rcond = node.inputs
    is_complex = _is_complex(x) or _is_complex(y)
    op = ComplexLstsq() if is_complex else node.op
    if y.type.ndim != 1:
        return op.make_node(x, y, rcond).outputs if is_complex else None
    solution, *others = op(x, y[:, None], rcond)
    return [solution[:, 0], *others]


def _solution(node: Apply) -> Sequence[Variable] | None:
    """Return solutions that PyTensor takes for matrices, or for integers."""
    x, y = (_as_float(operand) for operand in node.inputs)
    matrix, sizes = matrix_to_solve(x, y, node.op.axes)
    found = pt.linalg.solve(matrix, y.ravel(), b_ndim=1).reshape(sizes, ndim=len(sizes))
    return None if found.type.in_same_class(node.outputs[0].type) else [found]


def _inverse(node: Apply) -> Sequence[Variable] | None:
    """Return inverses of integers, which PyTensor takes for integers."""
    (x,) = node.inputs
    return None if _as_float(x) is x else node.op.make_node(_as_float(x)).outputs


def _as_float(x: TensorVariable) -> TensorVariable:
    return x if x.type.dtype.startswith(("float", "complex")) else x.astype("float64")


def _eigenvectors(node: Apply) -> Sequence[Variable] | None:
    """Return eigenvalues and eigenvectors of complex matrices, whose vectors are complex."""
    if not any(map(_is_complex, node.inputs)):
        return None
    signature = ",".join(["(m,m)"] * len(node.inputs)) + "->(m),(m,m)"
    op = Blockwise(HermitianEigh(core_op(node.op).lower), signature=signature)
    return op.make_node(*node.inputs).outputs


_CORRECTIONS: dict[type[Op], Callable[[Apply], Sequence[Variable] | None]] = {
    Choose: chosen_of_any_shape,
    Eigh: _eigenvectors,
    Lstsq: _least_squares,
    TensorInv: _inverse,
    TensorSolve: _solution,
}
