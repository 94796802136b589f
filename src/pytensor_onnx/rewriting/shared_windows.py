"""Compute convolutions in training from the windows that the gradients of their filters gather."""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.ops.networks.base import NetworkOp
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [NetworkOp],
    family="networks",
    purpose="speed",
    identity="conv(x, w) and its gradient = w @ windows(x)",
    requires="the gradient of the filters gathers the windows anyway",
    measured="docs/measurements.md, Convolutions and their gradients",
)
def share_windows(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Multiply the filters by the windows of the images where their gradient gathers them.

    Gathering takes longer than the product for few windows; here, it is done once for both.
    """
    # Convolutions import onnx_ir, which the import of this package does not wait for.
    from pytensor_onnx.ops.networks.conv import Conv, ConvFilterGradient
    from pytensor_onnx.ops.networks.shared_windows import ConvOfSharedWindows, may_share_windows

    if type(node.op) is not Conv:
        return None
    images, filters, *_ = node.inputs
    if not may_share_windows(node.op, images, filters):
        return None
    geometry = node.op.geometry()
    is_gathered = any(
        isinstance(client.op, ConvFilterGradient)
        and client.op.geometry() == geometry
        and client.inputs[0] is images
        and client.inputs[1].type.shape[2:] == node.outputs[0].type.shape[2:]
        for client, _ in fgraph.clients[images]
    )
    return [ConvOfSharedWindows(**geometry)(*node.inputs)] if is_gathered else None
