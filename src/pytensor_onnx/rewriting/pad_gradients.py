"""The gradient of a padding by constants is what is left without the padding."""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter
from pytensor.tensor.pad import Pad

from pytensor_onnx.rewriting.layers import differentiated


@graph_rewriter
def slice_gradients(fgraph: FunctionGraph) -> None:
    """Replace gradients of constant paddings of known widths by slices.

    PyTensor differentiates what the padding is made of: an array that is written to side by side.
    """
    for node in fgraph.toposort():
        padding = differentiated(node)
        if padding is None or not _is_constant(padding):
            continue
        first, *others = node.outputs
        gradient = node.inputs[-1]
        if any(fgraph.clients[other] for other in others):
            continue
        widths = padding.op.static_pad_width
        inside = tuple(slice(int(before), -int(after) or None) for before, after in widths)
        fgraph.replace(first, gradient[inside], reason="slice_gradients", import_missing=True)


def _is_constant(node: Apply) -> bool:
    is_constant = isinstance(node.op, Pad) and node.op.pad_mode == "constant"
    return is_constant and node.op.static_pad_width is not None


# After convolutions took paddings for their own, and before gradients are opened.
optdb.register("onnx_slice_gradients", slice_gradients, "onnx", position=-0.0255)
