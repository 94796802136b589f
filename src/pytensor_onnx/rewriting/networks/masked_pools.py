"""Mask gradients of max pooling before they are routed, where they are fewer."""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import GT, Switch
from pytensor.tensor.basic import switch
from pytensor.tensor.math import gt

from pytensor_onnx.ops.networks.network_op import NetworkOp
from pytensor_onnx.rewriting.engine.predicates import applies, filling_of, only_client
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [NetworkOp],
    family="networks",
    purpose="speed",
    identity="switch(x > 0, route(x, y, g), 0) = route(x, y, switch(y > 0, g, 0))",
    requires="y is the max pool of x",
    measured="benchmarks/NOTES.md",
)
def mask_before_routing(
    fgraph: FunctionGraph, node: Apply
) -> dict[Variable, Variable] | list[Variable] | None:
    """Set gradients to zero where a maximum is not positive, in place of its elements.

    A ReLU before a pool makes such a mask. A maximum is positive where its element is.
    """
    client = only_client(fgraph, node.outputs[0])
    if not _is_of_pool(node) or not applies(client, Switch):
        return None
    x, y, gradient = node.inputs
    is_positive, routed, otherwise = client.inputs
    comparison = is_positive.owner
    if routed is not node.outputs[0] or not applies(comparison, GT):
        return None
    zero, masked = comparison.inputs[1], client.outputs[0]
    if comparison.inputs[0] is not x or not (_is_zero(zero) and _is_zero(otherwise)):
        return None
    if masked.type.dtype != gradient.type.dtype:
        return None
    routed = node.op(x, y, switch(gt(y, zero), gradient, otherwise))
    return {masked: masked.type.filter_variable(routed, allow_convert=True)}


def _is_of_pool(node: Apply) -> bool:
    """Return whether a node is the gradient of a max pool with the maxima of that pool."""
    # Pools import onnx_ir, which the import of this package does not wait for.
    from pytensor_onnx.ops.networks.pool_ops import MaxPool, MaxPoolGradient

    if type(node.op) is not MaxPoolGradient:
        return False
    x, y, _ = node.inputs
    pooled = y.owner
    is_pooled = pooled is not None and type(pooled.op) is MaxPool and pooled.inputs[0] is x
    return is_pooled and pooled.op.windows == node.op.windows


def _is_zero(x: Variable) -> bool:
    return all(x.type.broadcastable) and filling_of(x) == 0
