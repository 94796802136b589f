"""Select PyTensor's rewrites for conversion, and register rewrites of users."""

from collections.abc import Sequence
from typing import Literal

from pytensor.compile.mode import Mode, optdb
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter, NodeRewriter
from pytensor.graph.rewriting.db import EquilibriumDB, RewriteDatabaseQuery, SequenceDB

from pytensor_onnx.rewriting.elementwise.wide_numbers import widen_numbers
from pytensor_onnx.rewriting.engine.guarded import GUARDED, UNDER_CONDITION
from pytensor_onnx.rewriting.engine.walkers import Visit
from pytensor_onnx.rules import Family, Purpose, Rule, declare, ledger


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
