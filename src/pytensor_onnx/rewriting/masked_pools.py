"""Mask gradients of max pooling before they are routed, where they are fewer."""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.scalar.basic import GT, Switch
from pytensor.tensor.basic import get_underlying_scalar_constant_value, switch
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import gt

from pytensor_onnx.ops.networks.base import NetworkOp


@node_rewriter([NetworkOp])
def mask_before_routing(
    fgraph: FunctionGraph, node: Apply
) -> dict[Variable, Variable] | list[Variable] | None:
    """Set gradients to zero where a maximum is not positive, in place of its elements.

    A ReLU before a pool makes such a mask. A maximum is positive where its element is.
    """
    # Pools import onnx_ir, which the import of this package does not wait for.
    from pytensor_onnx.ops.networks.pool import MaxPool, MaxPoolGradient

    clients = fgraph.clients[node.outputs[0]]
    if type(node.op) is not MaxPoolGradient or len(clients) != 1:
        return None
    x, y, gradient = node.inputs
    pooled = y.owner
    if pooled is None or type(pooled.op) is not MaxPool or pooled.inputs[0] is not x:
        return None
    ((client, position),) = clients
    if pooled.op.windows != node.op.windows or position != 1 or not _computes(client, Switch):
        return None
    is_positive, _, otherwise = client.inputs
    comparison = is_positive.owner
    if not (_computes(comparison, GT) and comparison.inputs[0] is x and _is_zero(otherwise)):
        return None
    zero, masked = comparison.inputs[1], client.outputs[0]
    if not _is_zero(zero) or masked.type.dtype != gradient.type.dtype:
        return None
    routed = node.op(x, y, switch(gt(y, zero), gradient, otherwise))
    return {masked: masked.type.filter_variable(routed, allow_convert=True)}


def _computes(node: Apply | None, scalar_op: type) -> bool:
    op = None if node is None else node.op
    return isinstance(op, Elemwise) and type(op.scalar_op) is scalar_op


def _is_zero(x: Variable) -> bool:
    return all(x.type.broadcastable) and (
        get_underlying_scalar_constant_value(x, raise_not_constant=False) == 0
    )
