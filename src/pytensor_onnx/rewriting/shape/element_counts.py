"""Multiply the sizes of one array in one operation."""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Cast
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import mul
from pytensor.tensor.shape import Shape_i, shape_padleft

from pytensor_onnx.encodings import encoding_of
from pytensor_onnx.ops.shape import ElementCount
from pytensor_onnx.rewriting.engine.predicates import applies
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [mul],
    family="shape",
    purpose="size",
    identity="float(x.shape[0]) * float(x.shape[2]) = float(x.shape[0] * x.shape[2])",
    measured="docs/measurements.md, Means of known numbers",
)
def count_elements(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace ``float(x.shape[0]) * float(x.shape[2])`` by a count, as in the divisor of a mean."""
    out = node.outputs[0]
    sizes: dict[Variable, dict[int, Variable]] = {}
    for factor in node.inputs:
        size = _size_as_float(factor)
        if size is not None:
            array, axis = size
            sizes.setdefault(array, {}).setdefault(axis, factor)
    replaced = {array: axes for array, axes in sizes.items() if len(axes) > 1}
    if not replaced:
        return None
    dtype = out.type.dtype
    if any(factor.type.dtype != dtype for axes in replaced.values() for factor in axes.values()):
        return None
    rest = list(node.inputs)
    for array, axes in replaced.items():
        for factor in axes.values():
            rest.remove(factor)
        rest.append(ElementCount(tuple(sorted(axes)), dtype)(array))
    result = mul(*rest) if len(rest) > 1 else rest[0]
    return [shape_padleft(result, out.type.ndim - result.type.ndim)]


def _size_as_float(factor: Variable) -> tuple[Variable, int] | None:
    """Return the array and the axis of a size that is cast to a float, else None."""
    node = factor.owner
    if node is not None and isinstance(node.op, DimShuffle) and not node.inputs[0].type.ndim:
        node = node.inputs[0].owner
    if not applies(node, Cast):
        return None
    size = node.inputs[0].owner
    if size is None or not isinstance(size.op, Shape_i):
        return None
    # A sparse matrix has a vector of its sizes, and no operator that counts its elements.
    if encoding_of(size.inputs[0].type) is not None:
        return None
    return (size.inputs[0], size.op.i) if node.outputs[0].type.dtype.startswith("float") else None
