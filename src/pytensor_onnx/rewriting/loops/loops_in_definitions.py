"""Rewrite definitions that contain loops and branches, without changing their formulas.

Traces shrink to the steps that are used, branches are computed on demand, and equal nodes are
merged. PyTensor's canonical and stabilising rewrites do not run.
"""

from collections.abc import Hashable

from pytensor.compile.mode import Mode
from pytensor.conditional.op import IfElse
from pytensor.conditional.rewriting import introduce_lazy_ifelse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import EquilibriumGraphRewriter, dfs_rewriter, out2in
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.scan.op import Scan
from pytensor.scan.rewriting.trace import scan_sit_sot_to_untraced
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.rewriting.basic import constant_folding
from pytensor.tensor.rewriting.shape import (
    ShapeOptimizer,
    UnShapeOptimizer,
    local_shape_ground,
    local_Shape_i_ground,
    local_shape_to_shape_i,
)
from pytensor.tensor.rewriting.subtensor import (
    local_subtensor_merge_integer,
    local_subtensor_merge_slice,
    local_useless_slice,
    local_useless_subtensor,
)

from pytensor_onnx.compat.pytensor import set_compile_mode
from pytensor_onnx.rewriting.engine.predicates import applies, are_constants
from pytensor_onnx.rewriting.loops.changed_scan import loop_like
from pytensor_onnx.rewriting.loops.last_steps import reduce_steps, reduce_trace

_INDICES = (
    local_shape_to_shape_i,
    local_shape_ground,
    local_Shape_i_ground,
    local_subtensor_merge_integer,
    local_subtensor_merge_slice,
    local_useless_slice,
    local_useless_subtensor,
    constant_folding,
)


# PyTensor rewrites branches with the mode of their graph: here it only nests inner branches.
_BRANCHES = Mode("py", RewriteDatabaseQuery(include=["lazy_ifelse"]))


def prepare_definition(fgraph: FunctionGraph) -> None:
    """Merge equal nodes of a definition, shrink the traces of its loops, nest branches; in place.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> steps = pytensor.scan(
    ...     lambda y: y / 2, outputs_info=[x], n_steps=3, return_updates=False
    ... )
    >>> fgraph = FunctionGraph([x], [steps[-1]], clone=False)
    >>> prepare_definition(fgraph)
    >>> [loop] = [node for node in fgraph.toposort() if isinstance(node.op, Scan)]
    >>> loop.op.info.n_sit_sot, loop.op.info.n_untraced_sit_sot
    (0, 1)
    """
    loops = [node.op for node in fgraph.apply_nodes if isinstance(node.op, Scan)]
    merge_equal_nodes(fgraph)
    if loops:
        _prepare_inner_graphs(fgraph)
    if any(map(_has_trace, loops)):
        _keep_read_steps(fgraph)
    if any(isinstance(node.op, IfElse) for node in fgraph.apply_nodes):
        set_compile_mode(fgraph, _BRANCHES)
        out2in(introduce_lazy_ifelse, ignore_newtrees=True).rewrite(fgraph)


def merge_equal_nodes(fgraph: FunctionGraph) -> None:
    """Compute arithmetic on constants, and merge elementwise nodes of equal operands, in place.

    Unlike PyTensor's own rewrite it tells both zeros apart.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> fgraph = FunctionGraph([x], [pt.exp(x) / pt.exp(x) * -pt.constant(2.0)], clone=False)
    >>> len(fgraph.apply_nodes)
    6
    >>> merge_equal_nodes(fgraph)
    >>> len(fgraph.apply_nodes)
    4
    """
    first: dict[Hashable, Apply] = {}
    for node in fgraph.toposort():
        if not isinstance(node.op, Elemwise | DimShuffle):
            continue
        if applies(node) and are_constants(node):
            new = constant_folding.transform(fgraph, node)
        else:
            new = first.setdefault((node.op, *map(_identity, node.inputs)), node).outputs
        if new and new is not node.outputs:
            fgraph.replace_all(list(zip(node.outputs, new, strict=True)))


def _identity(x: Variable) -> Hashable:
    return (x.type, x.data.tobytes()) if isinstance(x, Constant) else x


def _has_trace(loop: Scan) -> bool:
    """Return whether a loop has outputs with a row for each step."""
    info = loop.info
    return bool(info.n_mit_mot or info.n_mit_sot or info.n_sit_sot or info.n_nit_sot)


def _prepare_inner_graphs(fgraph: FunctionGraph) -> None:
    for node in fgraph.toposort():
        if isinstance(node.op, Scan):
            inner = node.op.fgraph.unfreeze()
            prepare_definition(inner)
            loop = loop_like(node.op, inner.inputs, inner.outputs)
            results = loop(*node.inputs, return_list=True)
            fgraph.replace_all(list(zip(node.outputs, results, strict=True)))


def _keep_read_steps(fgraph: FunctionGraph) -> None:
    indices = EquilibriumGraphRewriter(_INDICES, max_use_ratio=20)
    ShapeOptimizer().rewrite(fgraph)
    indices.rewrite(fgraph)
    for rewrite in (reduce_steps, reduce_trace, scan_sit_sot_to_untraced):
        dfs_rewriter(rewrite, ignore_newtrees=True).rewrite(fgraph)
    indices.rewrite(fgraph)
    UnShapeOptimizer().rewrite(fgraph)
