"""Replace the gradient of a constant padding by a slice."""

from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.pad import Pad

from pytensor_onnx.ml.layers.inlining import differentiated
from pytensor_onnx.rules import rewrites_graphs


@rewrites_graphs(
    family="networks",
    purpose="size",
    identity="grad(pad(x), x) = g[a:-b]",
    requires="constant padding of known widths",
    begins_at=("OpFromGraph",),
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def slice_gradients(fgraph: FunctionGraph) -> None:
    """Replace gradients of constant paddings of known widths by slices.

    PyTensor differentiates the implementation of the padding: an array that is written to side by
    side.
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
