"""Layers of pytensor-ml and their gradients are opened, down to the operations they consist of."""

from pytensor.compile.builders import OpFromGraph, SymbolicOp
from pytensor.compile.mode import optdb
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import dfs_rewriter, graph_rewriter, node_rewriter

LAYER_CLASS = ("pytensor_ml.base", "LayerOp")


def is_layer(op: Op) -> bool:
    """Return whether an Op is a layer of pytensor-ml, which need not be installed.

    Examples
    --------
    >>> from pytensor.tensor.special import Softmax
    >>> is_layer(Softmax(axis=-1))
    False
    """
    return any((c.__module__, c.__qualname__) == LAYER_CLASS for c in type(op).__mro__)


@node_rewriter([SymbolicOp])
def inline_layers(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace a layer by its inner graph; the results keep their names.

    A layer wraps its operations to be found by rewrites of its own. As a function of the model it
    would hide them from all others, such as the one that gives the product the bias.
    """
    if not is_layer(node.op):
        return None
    results = inline_ofg_node(node)
    for old, new in zip(node.outputs, results, strict=True):
        if new.owner is not None and new.name is None:
            new.name = old.name
    return results


@graph_rewriter
def inline_gradients(fgraph: FunctionGraph) -> None:
    """Replace the gradient of an Op that has an inner graph by its own inner graph.

    PyTensor wraps it up in an `OpFromGraph`, which computes once more what the Op does, and the
    gradients by all inputs, such as the data of the first layer, which nobody asks for.
    """
    for node in reversed(fgraph.toposort()):
        if differentiated(node) is not None:
            replacements = zip(node.outputs, inline_ofg_node(node), strict=True)
            fgraph.replace_all(list(replacements), reason="inline_gradients")


def differentiated(node: Apply) -> Apply | None:
    """Return what a node is the gradient of: it takes its inputs and outputs, and more.

    An `OpFromGraph` of the user's that does so would be opened too, which changes no result.
    """
    if type(node.op) is not OpFromGraph:
        return None
    for owner in dict.fromkeys(v.owner for v in node.inputs if v.owner is not None):
        known = [*owner.inputs, *owner.outputs]
        if isinstance(owner.op, OpFromGraph) and known == node.inputs[: len(known)] != node.inputs:
            return owner
    return None


# While the layers stand, by which their gradients are known.
optdb.register("onnx_inline_gradients", inline_gradients, "onnx", position=-0.025)
# Just before PyTensor opens the graphs that their makers marked for it.
optdb.register("onnx_inline_layers", dfs_rewriter(inline_layers), "onnx", position=-0.02)
