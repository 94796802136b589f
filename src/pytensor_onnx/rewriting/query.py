"""Select PyTensor's rewrites for conversion, and register rewrites of users."""

from collections.abc import Sequence

from pytensor.compile.mode import Mode, optdb
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import NodeRewriter
from pytensor.graph.rewriting.db import EquilibriumDB, RewriteDatabaseQuery

from pytensor_onnx.rewriting.arithmetic.numbers import widen_numbers
from pytensor_onnx.rewriting.guards.guarded import GUARDED, UNDER_CONDITION

REQUIRED = ("minimum_compile", "onnx", "lazy_ifelse")
INCOMPATIBLE = (
    "cxx_only",
    # Replaced by `canonical_forms`.
    "local_add_canonizer",
    "local_mul_canonizer",
    "local_greedy_distributor",
    "local_sigm_times_exp",
    # Replaced by `join_increments`.
    "pre_local_IncSubtensor_serialize",
    "local_IncSubtensor_serialize",
    # Replaced by `structured_products`.
    "dot_diag_to_elemwise",
    "selection_dot_to_indexing",
    # Replaced by `symmetric_transposes`.
    "useless_symmetric_transpose",
    # Replaced by the same for nodes with constant operands.
    "topo_constant_folding",
    # Wrong: the sign of 1 / 0 is 1, the sign of 0 is 0.
    "local_sign_div",
    # Replaced by the guarded rewrites.
    GUARDED,
    "local_useless_unbatched_blockwise",
    "extract_diag_lift_pass",
    "BlasOpt",
    "fusion",
    "inplace",
    "local_careduce_fusion",
    # Unnecessary: MatMul broadcasts all axes but the last two.
    "local_batched_matmul_to_core_matmul",
    "local_batched_matmul_to_core_matmul_with_reshape",
    "specialize_matmul_to_batched_dot",
    # Replaced by `last_steps`.
    "scan_reduce_nsteps",
    "scan_reduce_trace_prealloc",
    # An untraced state may change its shape; a state with a trace of one row may not.
    "scan_sit_sot_to_untraced",
)
STABLE_QUERY = RewriteDatabaseQuery(
    include=["canonicalize", "stabilize", "specialize", UNDER_CONDITION],
    exclude=["fusion", "inplace", "BlasOpt", "cxx_only", "local_sign_div", GUARDED],
)
"""PyTensor's rewrites of arithmetic, without the wrong ones."""
ONNX_QUERY = RewriteDatabaseQuery(include=["fast_run", *REQUIRED], exclude=list(INCOMPATIBLE))

SPECIALIZE = EquilibriumDB()
"""Node rewrites that run after all of PyTensor's."""


def register_onnx[R: NodeRewriter](rewrite: R) -> R:
    """Register a node rewriter that runs before conversion, in the exporter and in the linker.

    Parameters
    ----------
    rewrite
        Rewriter made by `pytensor.graph.node_rewriter`.

    Examples
    --------
    >>> from pytensor.graph import node_rewriter
    >>> from pytensor.printing import Print
    >>> @register_onnx
    ... @node_rewriter([Print])
    ... def drop_print(fgraph, node):
    ...     return list(node.inputs) if node.op.message == "drop me" else None
    """
    SPECIALIZE.register(rewrite.__name__, rewrite, "onnx")
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


def rewrite_for_onnx(fgraph: FunctionGraph, mode: Mode) -> None:
    """Rewrite a graph in place with the rewrites of a mode."""
    mode.optimizer.rewrite(fgraph)
