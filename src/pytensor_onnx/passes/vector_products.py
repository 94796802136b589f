"""Products with vectors: MatMul takes them as they are.

PyTensor multiplies matrices only. It makes a matrix of a vector before the product, and drops the
axis of size one after it; a vector on the left it takes to the right of the transposed matrix.

A matrix times a vector is left as it is. ONNX Runtime refuses that product for a matrix without
rows and returns memory that nobody has written for one without columns; and where it fuses a
Transpose into it, it multiplies by the matrix that was not transposed.
"""

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import constant_ints, dims_of
from pytensor_onnx.passes.rewriting import (
    remove_unused,
    replace_node,
    reshape_constant,
    sole_producer,
)
from pytensor_onnx.scope import ModelScope, content_key


def vector_products(model: ir.Model, scope: ModelScope) -> int:
    """Replace the product of a vector made a matrix by the product of the vector on the left."""
    count = 0
    for squeeze in list(model.graph):
        operands = _operands(squeeze)
        if operands is None:
            continue
        builder = Builder(scope)
        value = squeeze.inputs[0]
        product = value.producer() if value is not None else None
        # The product is the operation, the Squeeze only how PyTensor writes it.
        made_from = dict(product.metadata_props) if product is not None else {}
        builder.provenance = {**squeeze.metadata_props, **made_from}
        vectors, matrices = operands
        flat = [_flat(builder, vector) for vector in vectors]
        result = builder.MatMul(*flat, *matrices)
        replace_node(model.graph, squeeze, builder, [result], scope.names)
        count += 1
    if count:
        remove_unused(model.graph)
    return count


def _operands(squeeze: ir.Node) -> tuple[list[ir.Value], list[ir.Value]] | None:
    """Return the vectors, and the matrix if any, of the product that a Squeeze is the end of."""
    if squeeze.op_type != "Squeeze" or squeeze.domain or len(squeeze.inputs) != 2:
        return None
    value, axes = squeeze.inputs[0], constant_ints(squeeze.inputs[1])
    product = sole_producer(value, "MatMul")
    if product is None or axes is None:
        return None
    left, right = product.inputs
    if left is None or right is None:
        return None
    rank = len(dims_of(value) or ())
    dropped = {axis - rank if axis >= 0 else axis for axis in axes}
    row, column = _vector(left, -1), _vector(right, -2)
    if dropped == {-2, -1} and rank == 2 and row is not None and column is not None:
        return [row, column], []
    if dropped == {-2} and row is not None and len(dims_of(right) or ()) == rank:
        return [row], [right]
    if dropped == {-1} and column is not None and len(dims_of(left) or ()) == rank:
        matrix = _transposed(left)
        return None if matrix is None else ([column], [matrix])
    return None


def _flat(builder: Builder, vector: ir.Value) -> ir.Value:
    """Return a vector, of a constant that is a matrix still."""
    if vector.const_value is None or len(dims_of(vector) or ()) == 1:
        return vector
    array = vector.const_value.numpy()
    is_stored = ((array.size,), content_key(array)) in builder.scope.initializers
    if is_stored or len(vector.uses()) > 1:
        return builder.constant(array.ravel())
    reshape_constant(vector, [vector.const_value.size], builder.scope)
    return vector


def _vector(value: ir.Value, axis: int) -> ir.Value | None:
    """Return the vector that was made a matrix with its elements along an axis.

    A constant is returned as it is, a matrix still.
    """
    dims = dims_of(value)
    if dims is None:
        return None
    if value.const_value is not None:
        if value.is_graph_input():
            return None
        kept = {i for i, size in enumerate(dims) if size != 1}
        return value if kept == {len(dims) + axis} else None
    node = value.producer()
    if node is None or node.op_type != "Unsqueeze" or node.domain:
        return None
    operand, added = node.inputs[0], constant_ints(node.inputs[1])
    if added is None or len(dims_of(operand) or ()) != 1:
        return None
    kept = set(range(len(dims))) - {a % len(dims) for a in added}
    return operand if kept == {len(dims) + axis} else None


def _transposed(value: ir.Value) -> ir.Value | None:
    """Return the array whose last two axes are exchanged in a value."""
    node = value.producer()
    if node is None or node.op_type != "Transpose" or node.domain:
        return None
    rank = len(dims_of(node.inputs[0]) or ())
    perm = node.attributes.get_ints("perm", range(rank)[::-1])
    return node.inputs[0] if list(perm) == [*range(rank - 2), rank - 1, rank - 2] else None
