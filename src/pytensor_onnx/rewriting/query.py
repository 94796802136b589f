"""Which of PyTensor's rewrites run before conversion, and where our own are registered."""

from pytensor.compile.mode import Mode, optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import NodeRewriter, in2out
from pytensor.graph.rewriting.db import EquilibriumDB, RewriteDatabaseQuery
from pytensor.tensor.rewriting.basic import constant_folding

from pytensor_onnx.rewriting.guards import GUARDED

REQUIRED = ("minimum_compile", "onnx", "lazy_ifelse")
INCOMPATIBLE = (
    "cxx_only",
    # Their place is taken by `canonical_forms`.
    "local_add_canonizer",
    "local_mul_canonizer",
    "local_greedy_distributor",
    "local_sigm_times_exp",
    # Their place is taken by `structured_products`.
    "dot_diag_to_elemwise",
    "selection_dot_to_indexing",
    # The sign of 1 / 0 is 1, and not that of 0.
    "local_sign_div",
    # The place of these is taken by those that `guards` registers.
    GUARDED,
    "extract_diag_lift_pass",
    "BlasOpt",
    "fusion",
    "inplace",
    "local_careduce_fusion",
    # MatMul broadcasts the axes before the last two by itself.
    "local_batched_matmul_to_core_matmul",
    "local_batched_matmul_to_core_matmul_with_reshape",
    "specialize_matmul_to_batched_dot",
    # The place of these is taken by those of `last_steps`.
    "scan_reduce_nsteps",
    "scan_reduce_trace_prealloc",
    # A state that is not traced may change its shape, one of which only the last is kept may not.
    "scan_sit_sot_to_untraced",
)
ONNX_QUERY = RewriteDatabaseQuery(include=["fast_run", *REQUIRED], exclude=list(INCOMPATIBLE))

_onnx_db = EquilibriumDB()
optdb.register("onnx_specialize", _onnx_db, "onnx", position=48)
# What a rewrite does to a number, to fit it to what it meets, is computed before the conversion.
optdb.register("onnx_constant_folding", in2out(constant_folding), "onnx", position=48.1)


def register_onnx[R: NodeRewriter](rewrite: R) -> R:
    """Register a node rewriter that runs before conversion, in the exporter and in the linker.

    Parameters
    ----------
    rewrite
        What `pytensor.graph.node_rewriter` returns.

    Examples
    --------
    >>> from pytensor.graph import node_rewriter
    >>> from pytensor.printing import Print
    >>> @register_onnx
    ... @node_rewriter([Print])
    ... def drop_print(fgraph, node):
    ...     return list(node.inputs) if node.op.message == "drop me" else None
    """
    _onnx_db.register(rewrite.__name__, rewrite, "onnx")
    return rewrite


def rewrite_for_onnx(fgraph: FunctionGraph, mode: Mode) -> None:
    """Rewrite a graph in place as the mode asks."""
    mode.optimizer.rewrite(fgraph)
