"""Inner graphs of loops, loops with other ones, and loops in definitions."""

from collections.abc import Hashable, Sequence

from pytensor.compile.mode import Mode
from pytensor.conditional.op import IfElse
from pytensor.conditional.rewriting import introduce_lazy_ifelse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    MergeOptimizer,
    dfs_rewriter,
    in2out,
    out2in,
)
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.scan.op import Scan, ScanInfo
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
from pytensor_onnx.rewriting.loops.loop_lengths import check_lengths
from pytensor_onnx.rewriting.loops.scan_outputs import reduce_steps, reduce_trace
from pytensor_onnx.rewriting.loops.step_lookups import check_read_step
from pytensor_onnx.rules import part_of, rewrites_nodes


def loop_like(
    op: Scan,
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    info: ScanInfo | None = None,
) -> Scan:
    """Return a loop with another inner graph, and the name and options of a given loop.

    Parameters
    ----------
    op
        The given loop.
    inputs, outputs
        Inputs and outputs of the inner graph.
    info
        `ScanInfo` of the inner graph; by default that of the given loop.
    """
    return Scan(
        inputs,
        outputs,
        op.info if info is None else info,
        mode=op.mode,
        truncate_gradient=op.truncate_gradient,
        name=op.name,
        profile=op.profile,
        allow_gc=op.allow_gc,
        strict=op.strict,
    )


@part_of(check_lengths.rule, [Scan])
def check_inner_loops(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Check the sequence lengths and step indices of the loops within a loop.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x, n = pt.matrix("x"), pt.iscalar("n")
    >>> def total(row, n):
    ...     steps = pytensor.scan(
    ...         lambda e: e * 2, [row], n_steps=n, name="doubled", return_updates=False
    ...     )
    ...     return steps.sum()
    >>> totals = pytensor.scan(total, [x], None, [n], return_updates=False)
    >>> pytensor.function([x, n], totals, mode="ONNX")([[1.0, 2.0]], 3)
    Traceback (most recent call last):
    ValueError: sequence 0 of doubled ends before its steps do
    """
    op = node.op
    if not any(isinstance(inner.op, Scan) for inner in op.fgraph.apply_nodes):
        return None
    inner = op.fgraph.unfreeze()
    for check in (check_inner_loops, check_read_step, check_lengths):
        in2out(check, ignore_newtrees=True).rewrite(inner)
    loop = loop_like(op, inner.inputs, inner.outputs)
    return loop(*node.inputs, return_list=True)


# Compute equal operations of a step once.
#
# PyTensor's gradients of a step repeat its operations for each input. Its compilers merge these
# when they compile the step; the rewrites of loops that move operations out of it need them merged
# before.


@rewrites_nodes(
    [Scan],
    name="compute_before_loop",
    family="loops",
    purpose="speed",
    identity="scan(x ↦ g(f(x))) = scan(g, f of all steps), where f is a draw or a product",
    requires="f depends on no state but that of the generator; few words for each step",
    measured="benchmarks/NOTES.md",
)
def merge_equal_operations(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Merge equal operations in the inner graph of a Scan.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> h = pytensor.scan(lambda e, h: pt.tanh(e * h), [x], [pt.ones(())], return_updates=False)
    >>> f = pytensor.function([x], pt.grad(h[-1], x), mode="ONNX")
    >>> scans = (node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan))
    >>> [[str(n.op) for n in scan.fgraph.toposort()].count("Tanh") for scan in scans]
    [1, 1]
    """
    inner = node.op.fgraph.unfreeze()
    count = len(inner.apply_nodes)
    MergeOptimizer().rewrite(inner)
    if len(inner.apply_nodes) == count:
        return None
    results = loop_like(node.op, inner.inputs, inner.outputs)(*node.inputs, return_list=True)
    return list(results)


# Rewrite definitions that contain loops and branches, without changing their formulas.
#
# Traces shrink to the steps that are used, branches are computed on demand, and equal nodes are
# merged. PyTensor's canonical and stabilising rewrites do not run.

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
