"""Lower elementwise Ops."""

from collections.abc import Sequence

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import Dim, dims_of


@onnx_funcify.register(Elemwise)
def lower_elemwise(op: Elemwise, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Lower the scalar op on tensors, which ONNX broadcasts.

    PyTensor broadcasts an axis only if its type has a size of one; ONNX broadcasts any size of one.
    Axes of inputs that must be equal get one name, and every call compares their sizes; sizes of
    intermediate values are not compared.
    """
    dims = _elementwise_dims(node, build, inputs) if build.shaped else None
    lowered = onnx_funcify(op.scalar_op, node, build, *inputs)
    values = [lowered] if isinstance(lowered, ir.Value) else list(lowered)
    if dims is not None:
        for value in values:
            if value.producer() is not None:
                value.shape = ir.Shape(dims)
    return values


def _elementwise_dims(node: Apply, build: Builder, inputs: Sequence[ir.Value]) -> list[Dim]:
    """Return the dimensions of the result."""
    dims: list[Dim] = []
    for axis, static in enumerate(node.outputs[0].type.shape):
        sizes: list[Dim] = [static]
        for variable, value in zip(node.inputs, inputs, strict=True):
            known = dims_of(value)
            if known is not None and variable.type.shape[axis] != 1:
                sizes.append(known[axis])
        equal = [size for size in sizes if size is not None]
        known_size = next((d for d in equal if isinstance(d, int)), None)
        may_broadcast = any(build.scope.are_computed_apart(equal[0], d) for d in equal[1:])
        first = equal[0] if equal and not may_broadcast else None
        dims.append(first if known_size is None else known_size)
    return dims
