"""Give numbers the dtype and rank of their operands before equal constants are merged.

PyTensor does the same in its canonical form, in quadratic time: when all zeros of a graph are one
constant, a change of one use visits all others, and each new node copies the set of all variables.
So it is done first, and in place.
"""

from pytensor.graph.basic import Apply, Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.rewriting.basic import constant_folding
from pytensor.tensor.rewriting.elemwise import local_upcast_elemwise_constant_inputs

REASON = "fit_numbers"


@graph_rewriter
def fit_numbers(fgraph: FunctionGraph) -> None:
    """Constant-fold casts and expansions of numbers.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> graph = FunctionGraph([x], [pt.maximum(x, 0)], clone=False)
    >>> fit_numbers.rewrite(graph)
    >>> graph.outputs[0].owner.inputs[1].type
    TensorType(float64, shape=(1, 1))
    """
    for node in fgraph.toposort():
        if isinstance(node.op, DimShuffle):
            _fold_axes(fgraph, node)
        elif isinstance(node.op, Elemwise):
            _upcast(fgraph, node)


def _fold_axes(fgraph: FunctionGraph, node: Apply) -> None:
    (x,) = node.inputs
    if isinstance(x, Constant) and x.data.size == 1:
        folded = constant_folding.transform(fgraph, node)
        if folded:
            fgraph.replace(node.outputs[0], folded[0], reason=REASON)


def _upcast(fgraph: FunctionGraph, node: Apply) -> None:
    if not any(isinstance(x, Constant) for x in node.inputs):
        return
    upcast = local_upcast_elemwise_constant_inputs.transform(fgraph, node)
    if not upcast:
        return
    for i, (old, new) in enumerate(zip(node.inputs, upcast[0].owner.inputs, strict=True)):
        if new is not old:
            # The rewrite preserves the type of the node and changes the type of this input only.
            fgraph.change_node_input(node, i, new, reason=REASON, check=False)
