"""Layers of pytensor-ml are opened, so that the graph holds the operations they consist of."""

from pytensor.compile.builders import SymbolicOp
from pytensor.compile.mode import optdb
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter

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


# Just before PyTensor opens the graphs that their makers marked for it.
optdb.register("onnx_inline_layers", dfs_rewriter(inline_layers), "onnx", position=-0.02)
