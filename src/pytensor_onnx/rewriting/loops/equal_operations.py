"""Compute equal operations of a step once.

PyTensor's gradients of a step repeat its operations for each input. Its compilers merge these when
they compile the step; the rewrites of loops that move operations out of it need them merged before.
"""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.scan.op import Scan

from pytensor_onnx.rewriting.loops.changed_scan import loop_like
from pytensor_onnx.rules import rewrites_nodes


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
