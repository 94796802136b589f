"""Which of PyTensor's rewrites run before conversion, and where our own are registered."""

from pytensor.compile.mode import Mode, optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import NodeRewriter
from pytensor.graph.rewriting.db import EquilibriumDB, RewriteDatabaseQuery

REQUIRED = ("minimum_compile", "onnx")
INCOMPATIBLE = (
    "cxx_only",
    "BlasOpt",
    "fusion",
    "inplace",
    "local_careduce_fusion",
    "scan_reduce_trace_prealloc",
)
ONNX_QUERY = RewriteDatabaseQuery(include=["fast_run", *REQUIRED], exclude=list(INCOMPATIBLE))

_onnx_db = EquilibriumDB()
optdb.register("onnx_specialize", _onnx_db, "onnx", position=48)


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
