"""Inline layers of pytensor-ml and their gradients."""

from functools import partial

from pytensor.compile.builders import OpFromGraph, SymbolicOp
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op

from pytensor_onnx.rules import RuleOfGraphs, rewrites_nodes

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


@rewrites_nodes(
    [SymbolicOp],
    family="networks",
    purpose="size",
    identity="layer(x) = its inner graph, and grad(layer) = its inner graph",
    ensures="results keep their names",
    begins_at=("SymbolicOp", "OpFromGraph"),
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def inline_layers(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace a layer by its inner graph; the results keep their names.

    Layers are wrapped for pytensor-ml's own rewrites. As functions of the model they would hide
    their operations from other rewrites, such as the fusion of a product and its bias.
    """
    if not is_layer(node.op):
        return None
    results = inline_ofg_node(node)
    for old, new in zip(node.outputs, results, strict=True):
        if new.owner is not None and new.name is None:
            new.name = old.name
    return results


@partial(RuleOfGraphs, inline_layers.rule)
def inline_gradients(fgraph: FunctionGraph) -> None:
    """Replace the gradient of an Op with an inner graph by its own inner graph.

    PyTensor wraps the gradient in an `OpFromGraph`, which recomputes the Op and computes the
    gradients with respect to all inputs, also unused ones, such as the data of the first layer.
    """
    for node in reversed(fgraph.toposort()):
        if differentiated(node) is not None:
            replacements = zip(node.outputs, inline_ofg_node(node), strict=True)
            fgraph.replace_all(list(replacements), reason="inline_gradients")


def differentiated(node: Apply) -> Apply | None:
    """Return the node whose gradient a node computes: it takes its inputs and outputs, and more.

    A user's `OpFromGraph` with such inputs would be inlined too, which changes no result.
    """
    if not isinstance(node.op, OpFromGraph):
        return None
    for owner in dict.fromkeys(v.owner for v in node.inputs if v.owner is not None):
        known = [*owner.inputs, *owner.outputs]
        wraps = isinstance(owner.op, OpFromGraph) and _wraps_derivatives_of(owner.op, node.op)
        if wraps and known == node.inputs[: len(known)] != node.inputs:
            return owner
    return None


def _wraps_derivatives_of(op: OpFromGraph, derivative: Op) -> bool:
    """Return whether PyTensor would make an Op of this class for the gradient of another."""
    # PyTensor before 3.3.8 has one class for all.
    return type(derivative) is getattr(op, "derivative_op_type", OpFromGraph)
