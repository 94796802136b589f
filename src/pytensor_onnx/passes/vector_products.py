"""Products with vectors: MatMul takes them as they are.

PyTensor multiplies matrices only. It makes a matrix of a vector before the product, and drops the
axis of size one after it.

A matrix times a vector is left as it is. ONNX Runtime refuses that product for a matrix without
rows and returns memory that nobody has written for one without columns; and where it fuses a
Transpose into it, it multiplies by the matrix that was not transposed.
"""

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import constant_ints, dims_of
from pytensor_onnx.passes.rewriting import remove_unused, replace_node, sole_producer
from pytensor_onnx.scope import ModelScope


def vector_products(model: ir.Model, scope: ModelScope) -> int:
    """Replace the product of a vector made a matrix of one row by the product of the vector.

    Parameters
    ----------
    model
        Model to change in place.
    scope
        Names, constants and functions of the model.

    Returns
    -------
    int
        How many products were changed.
    """
    count = 0
    for squeeze in list(model.graph):
        operands = _operands(squeeze)
        if operands is None:
            continue
        builder = Builder(scope)
        builder.provenance = dict(squeeze.metadata_props)
        replace_node(model.graph, squeeze, builder, [builder.MatMul(*operands)], scope.names)
        count += 1
    if count:
        remove_unused(model.graph)
    return count


def _operands(squeeze: ir.Node) -> tuple[ir.Value, ir.Value | None] | None:
    """Return the operands of the product with vectors that a Squeeze is the end of."""
    if squeeze.op_type != "Squeeze" or squeeze.domain or len(squeeze.inputs) != 2:
        return None
    value, axes = squeeze.inputs[0], constant_ints(squeeze.inputs[1])
    product = sole_producer(value, "MatMul")
    if product is None or axes is None:
        return None
    left, right = product.inputs
    rank = len(dims_of(value) or ())
    dropped = {axis - rank if axis >= 0 else axis for axis in axes}
    row, column = _vector(left, -1), _vector(right, -2)
    if dropped == {-2, -1} and rank == 2 and row is not None and column is not None:
        return row, column
    if dropped == {-2} and row is not None and len(dims_of(right) or ()) == rank:
        return row, right
    return None


def _vector(value: ir.Value | None, axis: int) -> ir.Value | None:
    """Return the vector that was made a matrix with its elements along an axis."""
    node = value.producer() if value is not None else None
    if value is None or node is None or node.op_type != "Unsqueeze" or node.domain:
        return None
    operand, dims = node.inputs[0], dims_of(value)
    added = constant_ints(node.inputs[1])
    if dims is None or added is None or len(dims_of(operand) or ()) != 1:
        return None
    kept = set(range(len(dims))) - {a % len(dims) for a in added}
    return operand if kept == {len(dims) + axis} else None
