"""Lower numbers of elements."""

import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.shape import ElementCount


@onnx_funcify.register(ElementCount)
def lower_element_count(op: ElementCount, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Count all elements, or multiply the sizes of some axes as floats.

    Runtimes multiply integers in other operators.
    """
    first, last = op.axes[0], op.axes[-1] + 1
    if len(op.axes) == node.inputs[0].type.ndim:
        return build.cast(build.Size(x), op.dtype)
    if len(op.axes) == last - first:
        sizes = build.sizes(x, first, last)
    else:
        sizes = build.Gather(build.shape(x), build.ints(list(op.axes)))
    return build.ReduceProd(build.cast(sizes, op.dtype), keepdims=0)
