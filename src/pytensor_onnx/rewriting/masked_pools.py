"""Mask gradients of max pooling before they are routed, where they are fewer."""

from typing import TypeGuard

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.scalar.basic import GE, GT, Cast, Mul, ScalarMaximum, Sub, Switch
from pytensor.tensor.basic import get_underlying_scalar_constant_value, switch
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import gt

from pytensor_onnx.ops.networks.base import NetworkOp


@node_rewriter([NetworkOp])
def mask_before_routing(
    fgraph: FunctionGraph, node: Apply
) -> dict[Variable, Variable] | list[Variable] | None:
    """Set gradients to zero where a maximum is not positive, in place of its elements.

    A ReLU before a pool makes such a mask. A maximum is positive where its element is.
    """
    client = _only_client(fgraph, node.outputs[0])
    if not _is_of_pool(node) or not _computes(client, Switch):
        return None
    x, y, gradient = node.inputs
    is_positive, routed, otherwise = client.inputs
    comparison = is_positive.owner
    if routed is not node.outputs[0] or not _computes(comparison, GT):
        return None
    zero, masked = comparison.inputs[1], client.outputs[0]
    if comparison.inputs[0] is not x or not (_is(0, zero) and _is(0, otherwise)):
        return None
    if masked.type.dtype != gradient.type.dtype:
        return None
    routed = node.op(x, y, switch(gt(y, zero), gradient, otherwise))
    return {masked: masked.type.filter_variable(routed, allow_convert=True)}


@node_rewriter([NetworkOp])
def multiply_before_routing(
    fgraph: FunctionGraph, node: Apply
) -> dict[Variable, Variable] | list[Variable] | None:
    """Multiply gradients by ``y > 0`` of the maxima, in place of ``1 - (0 >= x)``.

    PyTensor's gradient of ``maximum(0, x)`` is such a product. A transposition may come between.
    The factor of a maximum that is NaN is zero, as no element of its window equals it.
    """
    routed = node.outputs[0]
    client = _only_client(fgraph, routed)
    if not _is_of_pool(node) or client is None:
        return None
    axes = None
    if isinstance(client.op, DimShuffle) and client.op.is_transpose:
        axes, routed = client.op.new_order, client.outputs[0]
        client = _only_client(fgraph, routed)
    if not _computes(client, Mul) or len(client.inputs) != 2:
        return None
    x, y, gradient = node.inputs
    factor, product = client.inputs[client.inputs[0] is routed], client.outputs[0]
    compared = _compared_with_zero(factor)
    if compared is None or product.type.dtype != gradient.type.dtype:
        return None
    sources = [s for s in (x, _source_of_relu(x)) if s is not None]
    if not any(_is_transposed(compared, source, axes) for source in sources):
        return None
    is_positive = gt(y, np.zeros((), y.type.dtype)).astype(factor.type.dtype)
    result = node.op(x, y, gradient * is_positive)
    result = result if axes is None else result.dimshuffle(axes)
    return {product: product.type.filter_variable(result, allow_convert=True)}


def _is_of_pool(node: Apply) -> bool:
    """Return whether a node is the gradient of a max pool with the maxima of that pool."""
    # Pools import onnx_ir, which the import of this package does not wait for.
    from pytensor_onnx.ops.networks.pool import MaxPool, MaxPoolGradient

    if type(node.op) is not MaxPoolGradient:
        return False
    x, y, _ = node.inputs
    pooled = y.owner
    is_pooled = pooled is not None and type(pooled.op) is MaxPool and pooled.inputs[0] is x
    return is_pooled and pooled.op.windows == node.op.windows


def _only_client(fgraph: FunctionGraph, x: Variable) -> Apply | None:
    clients = fgraph.clients[x]
    return clients[0][0] if len(clients) == 1 and x not in fgraph.outputs else None


def _compared_with_zero(factor: Variable) -> Variable | None:
    """Return the array ``x`` of a factor ``1 - (0 >= x)``."""
    subtraction = factor.owner
    if not _computes(subtraction, Sub) or not _is(1, subtraction.inputs[0]):
        return None
    number = subtraction.inputs[1].owner
    comparison = number.inputs[0].owner if _computes(number, Cast) else None
    if not _computes(comparison, GE) or not _is(0, comparison.inputs[0]):
        return None
    return comparison.inputs[1]


def _source_of_relu(y: Variable) -> Variable | None:
    """Return the array ``x`` of ``y = maximum(0, x)``."""
    node = y.owner
    if not _computes(node, ScalarMaximum) or len(node.inputs) != 2:
        return None
    first, second = node.inputs
    return second if _is(0, first) else first if _is(0, second) else None


def _is_transposed(moved: Variable, x: Variable, axes: tuple[int, ...] | None) -> bool:
    """Return whether an array is another one with its axes in this order, None for the same."""
    if axes is None:
        return moved is x
    for result, source, order in ((moved, x, axes), (x, moved, tuple(np.argsort(axes)))):
        node = result.owner
        if node is not None and isinstance(node.op, DimShuffle) and node.inputs[0] is source:
            return node.op.new_order == order
    return False


def _computes(node: Apply | None, scalar_op: type) -> TypeGuard[Apply]:
    op = None if node is None else node.op
    return isinstance(op, Elemwise) and type(op.scalar_op) is scalar_op


def _is(number: int, x: Variable) -> bool:
    """Return whether an array is this number, repeated along axes of one element."""
    return all(x.type.broadcastable) and (
        get_underlying_scalar_constant_value(x, raise_not_constant=False) == number
    )
