"""Walks over the nodes of a model, and facts about single nodes."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.operators.entries import WITH_BODIES


def all_nodes(owner: ir.Graph | ir.Function) -> Iterator[ir.Node]:
    """Yield the nodes of a graph or function in order, each before the nodes of its bodies.

    The walk of onnx_ir, which looks for graphs in the attributes of each node, takes three times
    as long.

    Examples
    --------
    >>> text = "(bool c, float x) => (float y) {y = If(c) <then_branch = a () => (float z) "
    >>> text += "{z = Neg(x)}, else_branch = b () => (float z) {z = Abs(x)}>}"
    >>> model = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    >>> [node.op_type for node in all_nodes(model.graph)]
    ['If', 'Neg', 'Abs']
    """
    for node in owner:
        yield node
        for body in bodies_of(node):
            yield from all_nodes(body)


def nodes_of_model(model: ir.Model) -> Iterator[ir.Node]:
    """Yield the nodes of the graph of a model, of its functions, and of the bodies in both."""
    yield from all_nodes(model.graph)
    for function in model.functions.values():
        yield from all_nodes(function)


def bodies_of(node: ir.Node) -> Sequence[ir.Graph]:
    """Return the graphs among the attributes of a node."""
    if node.op_type not in WITH_BODIES or node.domain:
        return ()
    attributes = node.attributes.values()
    return [a.as_graph() for a in attributes if a.type == ir.AttributeType.GRAPH]


def operator_counts(model: ir.Model) -> Counter[str]:
    """Return the number of nodes of each operator, in subgraphs as well."""
    return Counter(
        f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        for node in all_nodes(model.graph)
    )


def function_sizes(model: ir.Model) -> list[tuple[str, int]]:
    """Return the number of nodes of each model-local function."""
    return [(f"{f.domain}::{f.name}", len(f)) for f in model.functions.values()]


_GUARDED = "guarded"
_CHECKED = "sizes are checked"
_RARE = "the else branch is rare"
_ABSOLUTE = "absolute error is good enough"
_IMPORTED = "as in the imported model"


def mark_guarded(value: ir.Value) -> None:
    """Mark the node of a value as part of a decomposition that corrects it."""
    _node_of(value).meta[_GUARDED] = True


def is_bare(node: ir.Node) -> bool:
    """Return whether a node is no part of a decomposition that corrects it."""
    return _GUARDED not in node.meta


def mark_checked(value: ir.Value) -> ir.Node:
    """Mark the pool or convolution of a value, whose windows fit or have been checked."""
    node = _node_of(value)
    node.meta[_CHECKED] = True
    return node


def is_checked(node: ir.Node) -> bool:
    """Return whether the windows of a pool or convolution fit, or have been checked."""
    return _CHECKED in node.meta


def mark_rare(value: ir.Value) -> None:
    """Mark the If of a value, whose else branch serves NaN and empty arrays only."""
    _node_of(value).meta[_RARE] = True


def usual_nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    """Yield the nodes of a graph and of its subgraphs, except branches that are rare.

    Parameters
    ----------
    graph
        Graph as conversion makes it; one that was read from a file has no marks.
    """
    for node in graph:
        yield node
        for name, attribute in node.attributes.items():
            is_rare = _RARE in node.meta and name == "else_branch"
            if attribute.type == ir.AttributeType.GRAPH and not is_rare:
                yield from usual_nodes(attribute.as_graph())


def accept_absolute_error(value: ir.Value) -> None:
    """Mark the node of a value, for which only the absolute error matters."""
    _node_of(value).meta[_ABSOLUTE] = True


def is_absolute_error_accepted(node: ir.Node) -> bool:
    """Return whether only the absolute error of a node matters."""
    return _ABSOLUTE in node.meta


def mark_imported(value: ir.Value) -> None:
    """Mark the node of a value, which is that of an imported model."""
    _node_of(value).meta[_IMPORTED] = True


def is_imported(node: ir.Node) -> bool:
    """Return whether a node is that of an imported model."""
    return _IMPORTED in node.meta


def _node_of(value: ir.Value) -> ir.Node:
    node = value.producer()
    if node is None:
        raise TypeError("only the result of a node can be marked")
    return node


def is_float32(number: float, dtype: ir.DataType) -> bool:
    """Return whether a float attribute, which is float32, holds a number as a dtype does.

    Examples
    --------
    >>> is_float32(0.1, ir.DataType.DOUBLE), is_float32(0.1, ir.DataType.FLOAT)
    (False, True)
    """
    return dtype != ir.DataType.DOUBLE or float(np.float32(number)) == number


FUNCTION_DOMAIN = "pytensor"

STANDARD_DOMAIN = "pytensor.standard"
"""Domain of functions whose name determines the computation, in every file.

Runtimes may have kernels for them. No function of a user, and none whose name tells less than its
body depends on, is in this domain.
"""

DOMAINS = {FUNCTION_DOMAIN: 1, STANDARD_DOMAIN: 1}
"""Versions of the domains of functions."""
