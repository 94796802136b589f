"""The rewrites of definitions with loops: a loop keeps no more steps than are read.

None of PyTensor's canonical and stabilising rewrites run, which would change the formulas.
"""

from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import EquilibriumGraphRewriter, dfs_rewriter
from pytensor.scan.op import Scan
from pytensor.scan.rewriting.trace import scan_sit_sot_to_untraced
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

from pytensor_onnx.rewriting.last_steps import keep_what_is_read, make_what_is_read

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


def keep_read_steps(fgraph: FunctionGraph) -> None:
    """Let the loops of a definition store only the steps that are read, in place.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> steps = pytensor.scan(
    ...     lambda y: y / 2, outputs_info=[x], n_steps=3, return_updates=False
    ... )
    >>> fgraph = FunctionGraph([x], [steps[-1]], clone=False)
    >>> keep_read_steps(fgraph)
    >>> [loop] = [node for node in fgraph.toposort() if isinstance(node.op, Scan)]
    >>> loop.op.info.n_sit_sot, loop.op.info.n_untraced_sit_sot
    (0, 1)
    """
    if not any(isinstance(node.op, Scan) for node in fgraph.apply_nodes):
        return
    indices = EquilibriumGraphRewriter(_INDICES, max_use_ratio=20)
    ShapeOptimizer().rewrite(fgraph)
    indices.rewrite(fgraph)
    for rewrite in (make_what_is_read, keep_what_is_read, scan_sit_sot_to_untraced):
        dfs_rewriter(rewrite, ignore_newtrees=True).rewrite(fgraph)
    indices.rewrite(fgraph)
    UnShapeOptimizer().rewrite(fgraph)
