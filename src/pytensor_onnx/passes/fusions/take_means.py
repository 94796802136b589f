"""Compute the mean of a known number of elements by one operator.

A ReduceMean divides the sum by the number of elements; a product with the reciprocal rounds twice.
Gradients of normalisations use the sums too, in joined vectors with the steps of the parameters.
These vectors join the means instead, and one product multiplies them by the numbers of elements.

Means over the last axes stay as they are: the runtime may take them and the operators after them
for a layer norm.
"""

from math import prod

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.passes.rewriting import given, int_attribute, remove_unused, replace_node


def take_means(model: ir.Model, scope: ModelScope) -> int:
    """Replace sums that are multiplied by the reciprocal of the number of their elements."""
    graph, n_means = model.graph, 0
    joins: dict[ir.Node, dict[int, int]] = {}
    for total in list(graph):
        n = _number_of_elements(total)
        if n is None:
            continue
        users = [user for user, _ in total.outputs[0].uses()]
        means = [user for user in users if _is_mean(user, total, n)]
        others = [user for user in users if user not in means]
        if not means or not all(_joins_vectors(user, graph) for user in others):
            continue
        # The means may be joined to the same vectors, so that operands are known by position.
        for join, position in total.outputs[0].uses():
            if join not in means:
                joins.setdefault(join, {})[position] = n
        builder = Builder(scope)
        builder.provenance = dict(means[0].metadata_props)
        keepdims = int_attribute(total, "keepdims", 1)
        mean = builder.ReduceMean(*total.inputs, keepdims=keepdims)
        replace_node(graph, total, builder, [mean], scope.names)
        for product in means:
            if product.outputs[0].is_graph_output():
                mean.name = product.outputs[0].name
            ir.convenience.replace_all_uses_with(
                product.outputs, [mean], replace_graph_outputs=True
            )
            graph.remove(product, safe=True)
        n_means += 1
    for join, numbers in joins.items():
        _multiply(graph, join, numbers, scope)
    if n_means:
        remove_unused(graph)
    return n_means


def _number_of_elements(total: ir.Node) -> int | None:
    """Return the number of terms in each element of a sum, None if it is unknown or zero."""
    if total.op_type != "ReduceSum" or total.domain or total.outputs[0].is_graph_output():
        return None
    dims = dims_of(total.inputs[0])
    axes = constant_ints(total.inputs[1]) if len(total.inputs) > 1 else None
    if (
        not dims
        or not axes
        or total.outputs[0].dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
    ):
        return None
    reduced = sorted(axis % len(dims) for axis in axes)
    if reduced == list(range(len(dims) - len(reduced), len(dims))):
        return None
    sizes = [size for size in (dims[axis] for axis in reduced) if isinstance(size, int)]
    return prod(sizes) or None if len(sizes) == len(reduced) else None


def _is_mean(node: ir.Node, total: ir.Node, n: int) -> bool:
    """Return whether a node divides a sum by a number, or multiplies by its rounded reciprocal."""
    if node.op_type not in ("Mul", "Div") or node.domain or node.graph is not total.graph:
        return False
    others = [x for x in node.inputs if x is not total.outputs[0]]
    number = others[0] if len(others) == 1 else None
    if number is None or number.const_value is None or number.is_graph_input():
        return False
    if node.op_type == "Div" and number is node.inputs[0]:
        return False
    array = number.const_value.numpy()
    wanted = array.dtype.type(n) if node.op_type == "Div" else 1 / array.dtype.type(n)
    rank = len(dims_of(total.outputs[0]) or ())
    return array.size == 1 and array.ndim <= rank and array.item() == wanted.item()


def _joins_vectors(node: ir.Node, graph: ir.Graph) -> bool:
    """Return whether a node joins vectors of known lengths."""
    shapes = [dims_of(x) or () for x in node.inputs]
    return (
        node.op_type == "Concat"
        and not node.domain
        and node.graph is graph
        and all(len(dims) == 1 and isinstance(dims[0], int) for dims in shapes)
    )


def _multiply(graph: ir.Graph, join: ir.Node, numbers: dict[int, int], scope: ModelScope) -> None:
    """Multiply the means that take the place of sums in joined vectors by the numbers of terms."""
    operands = [given(x) for x in join.inputs]
    lengths = [n for x in operands for n in dims_of(x) or () if isinstance(n, int)]
    factors = [np.full(length, numbers.get(i, 1)) for i, length in enumerate(lengths)]
    builder = Builder(scope)
    builder.provenance = dict(join.metadata_props)
    dtype = given(operands[0]).dtype
    assert dtype is not None
    joined = builder.Concat(*operands, axis=0)
    product = builder.Mul(joined, builder.constant(np.concatenate(factors).astype(dtype.numpy())))
    replace_node(graph, join, builder, [product], scope.names)
