"""Replace products of reshaped vectors by a MatMul of vectors.

PyTensor multiplies matrices only. It reshapes a vector to a matrix before the product, and drops
the axis of size one after it; a vector on the left becomes one to the right of the transposed
matrix.

A matrix times a vector is left as it is. ONNX Runtime refuses that product for a matrix without
rows and returns uninitialised memory for one without columns; if it fuses a Transpose into the
product, it multiplies by the untransposed matrix.
"""

import math
from collections.abc import Mapping

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.large_constants import content_key
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_rules import (
    int_attribute,
    remove_unused,
    replace_node,
    reshape_constant,
    sole_producer,
)

LARGE = 16_384
"""Elements of a matrix of float64 from which a copy for each step of a loop costs more."""


@model_pass(
    family="products",
    purpose="speed",
    identity="squeeze(v[None] @ A) = v @ A",
    begins_at=("MatMul", "Transpose"),
    requires="a vector, and in a loop a short state",
    measured="benchmarks/NOTES.md, Small states",
)
def vector_products(model: ir.Model, scope: ModelScope) -> int:
    """Replace the product of a reshaped vector by the product of the vector on the left."""
    count = 0
    lengths = _lengths_of_states(model)
    _negate_before_transposing(model, scope)
    for squeeze in list(all_nodes(model.graph)):
        operands, graph = _operands(squeeze), squeeze.graph
        if operands is None or graph is None:
            continue
        if graph is not model.graph and not _is_fast_in_loop(*operands, lengths):
            continue
        builder = Builder(scope)
        value = squeeze.inputs[0]
        product = value.producer() if value is not None else None
        # The metadata are those of the product; the Squeeze is a detail of PyTensor's form.
        made_from = dict(product.metadata_props) if product is not None else {}
        builder.provenance = {**squeeze.metadata_props, **made_from}
        vectors, matrices = operands
        flat = [_flat(builder, vector) for vector in vectors]
        result = builder.MatMul(*flat, *matrices)
        replace_node(graph, squeeze, builder, [result], scope.names)
        count += 1
    if count:
        for graph in (*model.graph.subgraphs(), model.graph):
            remove_unused(graph)
    return count


def _negate_before_transposing(model: ir.Model, scope: ModelScope) -> None:
    """Negate a matrix before it is transposed, so that a product can use it untransposed."""
    for node in list(all_nodes(model.graph)):
        transpose = sole_producer(node.inputs[0], "Transpose") if node.op_type == "Neg" else None
        if transpose is not None and node.graph is not None:
            builder = Builder(scope)
            builder.provenance = dict(node.metadata_props)
            perm = transpose.attributes.get_ints("perm", None)
            turned = builder.op("Transpose", builder.Neg(transpose.inputs[0]), perm=perm)
            replace_node(node.graph, node, builder, [turned], scope.names)


def _lengths_of_states(model: ir.Model) -> dict[ir.Value, int]:
    """Return the lengths of the vectors that are states of loops, as their steps compute them."""
    lengths = {}
    for node in all_nodes(model.graph):
        if node.op_type == "Scan" and not node.domain:
            body = node.attributes["body"].as_graph()
            n_states = len(body.inputs) - int_attribute(node, "num_scan_inputs", 0)
            for before, after in zip(body.inputs[:n_states], body.outputs, strict=False):
                dims = dims_of(after) or ()
                if len(dims) == 1 and isinstance(dims[0], int):
                    lengths[before] = dims[0]
    return lengths


def _is_fast_in_loop(
    vectors: list[ir.Value], matrices: list[ir.Value], lengths: Mapping[ir.Value, int]
) -> bool:
    """Return whether a vector on the left is as fast as a column, with a matrix transposed once.

    ONNX Runtime copies a matrix of float64 for each product with a vector on its left, which takes
    six times as long as the product with a column from 256 x 1024 on.
    """
    length = lengths.get(vectors[0])
    return all(
        m.dtype != ir.DataType.DOUBLE or (_size(m, length) or LARGE) < LARGE for m in matrices
    )


def _size(matrix: ir.Value, length: int | None) -> int | None:
    """Return the number of elements of a matrix, None if it is not known.

    Parameters
    ----------
    matrix
        Right operand of a product.
    length
        Length of the vector on the left, None if it is not known.
    """
    dims = dims_of(matrix) or ()
    if len(dims) != 2:
        return None
    sizes = [dims[0] if length is None else length, dims[1]]
    known = [size for size in sizes if isinstance(size, int)]
    return math.prod(known) if len(known) == 2 else None


def _operands(squeeze: ir.Node) -> tuple[list[ir.Value], list[ir.Value]] | None:
    """Return the vectors, and the matrix if any, of the product before a Squeeze."""
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
    """Return an operand as a vector; constants may still be matrices."""
    if vector.const_value is None or len(dims_of(vector) or ()) == 1:
        return vector
    array = vector.const_value.numpy()
    is_stored = ((array.size,), content_key(array)) in builder.scope.initializers
    if is_stored or len(vector.uses()) > 1:
        return builder.constant(array.ravel())
    reshape_constant(vector, [vector.const_value.size], builder.scope)
    return vector


def _vector(value: ir.Value, axis: int) -> ir.Value | None:
    """Return the vector that was reshaped to a matrix along an axis.

    A constant is returned as a matrix.
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
    """Return the array whose last two axes a value has transposed."""
    node = value.producer()
    if node is None or node.op_type != "Transpose" or node.domain:
        return None
    rank = len(dims_of(node.inputs[0]) or ())
    perm = node.attributes.get_ints("perm", range(rank)[::-1])
    return node.inputs[0] if list(perm) == [*range(rank - 2), rank - 1, rank - 2] else None
