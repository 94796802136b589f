"""Replace products of reshaped vectors by a MatMul of vectors.

PyTensor multiplies matrices only. It reshapes a vector to a matrix before the product, and drops
the axis of size one after it; a vector on the left becomes one to the right of the transposed
matrix.

A matrix times a vector is left as it is. ONNX Runtime refuses that product for a matrix without
rows and returns uninitialised memory for one without columns; if it fuses a Transpose into the
product, it multiplies by the untransposed matrix.
"""

import math
from collections.abc import Iterable, Sequence

import onnx_ir as ir

from pytensor_onnx.digests import content_key
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.sizes import constant_ints
from pytensor_onnx.passes.matching import (
    constant_of,
    is_constant,
    is_operator,
    producer_of,
    required,
    sole_producer,
)
from pytensor_onnx.passes.node_rules import node_rule
from pytensor_onnx.passes.node_walk import NodeBuilder
from pytensor_onnx.passes.stored_constants import reshape_constant

LARGE = 16_384
"""Elements of a matrix of float64 from which a copy for each step of a loop costs more."""


@node_rule(
    "Neg",
    "Squeeze",
    family="products",
    purpose="speed",
    identity="squeeze(v[None] @ A) = v @ A",
    requires="a vector, and in a loop a short state",
    measured="benchmarks/NOTES.md, Small states",
)
def vector_products(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    """Replace the product of a reshaped vector by the product of the vector on the left.

    A matrix is negated before it is transposed, so that the product can use it untransposed.
    """
    return _negate_first(build, node) if node.op_type == "Neg" else _product(build, node)


def _negate_first(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    transpose = sole_producer(node.inputs[0], "Transpose")
    if transpose is None:
        return None
    perm = transpose.attributes.get_ints("perm", None)
    result: ir.Value = build.op("Transpose", build.Neg(transpose.inputs[0]), perm=perm)
    return result


def _product(build: NodeBuilder, squeeze: ir.Node) -> ir.Value | None:
    product, operands = sole_producer(squeeze.inputs[0], "MatMul"), None
    if product is not None and len(squeeze.inputs) == 2:
        operands = _operands(product, squeeze)
    if product is None or operands is None:
        return None
    vectors, matrices = operands
    if build.within and not _is_fast_in_loop(vectors[0], matrices, build.within):
        return None
    build.credit(squeeze, product)
    result: ir.Value = build.MatMul(*(_flat(build, vector) for vector in vectors), *matrices)
    return result


def _is_fast_in_loop(
    vector: ir.Value, matrices: Sequence[ir.Value], loops: Sequence[ir.Node]
) -> bool:
    """Return whether a vector on the left is as fast as a column, with a matrix transposed once.

    ONNX Runtime copies a matrix of float64 for each product with a vector on its left, which takes
    six times as long as the product with a column from 256 x 1024 on.
    """
    doubles = [matrix for matrix in matrices if matrix.dtype == ir.DataType.DOUBLE]
    length = _length_of_state(vector, loops) if doubles else None
    return all((_size(matrix, length) or LARGE) < LARGE for matrix in doubles)


def _length_of_state(vector: ir.Value, loops: Iterable[ir.Node]) -> int | None:
    """Return the length of a vector that is a state of a loop, as the steps compute it."""
    for loop in loops:
        if is_operator(loop, "Scan"):
            body = loop.attributes["body"].as_graph()
            n_states = len(body.inputs) - loop.attributes.get_int("num_scan_inputs", 0)
            for before, after in zip(body.inputs[:n_states], body.outputs, strict=False):
                dims = dims_of(after) or ()
                if before is vector and len(dims) == 1 and isinstance(dims[0], int):
                    return dims[0]
    return None


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


def _operands(product: ir.Node, squeeze: ir.Node) -> tuple[list[ir.Value], list[ir.Value]] | None:
    """Return the vectors, and the matrix if any, of the product before a Squeeze."""
    left, right = map(required, product.inputs)
    axes = constant_ints(squeeze.inputs[1])
    if axes is None:
        return None
    rank = len(dims_of(product.outputs[0]) or ())
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
    array = constant_of(vector)
    if array is None or array.ndim == 1:
        return vector
    is_stored = ((array.size,), content_key(array)) in builder.scope.initializers
    if is_stored or len(vector.uses()) > 1:
        return builder.constant(array.ravel())
    reshape_constant(vector, [array.size], builder.scope)
    return vector


def _vector(value: ir.Value, axis: int) -> ir.Value | None:
    """Return the vector that was reshaped to a matrix along an axis.

    A constant is returned as a matrix.
    """
    dims = dims_of(value)
    if dims is None:
        return None
    if is_constant(value):
        kept = {i for i, size in enumerate(dims) if size != 1}
        return value if kept == {len(dims) + axis} else None
    node = producer_of(value, "Unsqueeze")
    if node is None:
        return None
    operand, added = node.inputs[0], constant_ints(node.inputs[1])
    if added is None or len(dims_of(operand) or ()) != 1:
        return None
    kept = set(range(len(dims))) - {a % len(dims) for a in added}
    return operand if kept == {len(dims) + axis} else None


def _transposed(value: ir.Value) -> ir.Value | None:
    """Return the array whose last two axes a value has transposed."""
    node = producer_of(value, "Transpose")
    if node is None:
        return None
    rank = len(dims_of(node.inputs[0]) or ())
    perm = node.attributes.get_ints("perm", range(rank)[::-1])
    return node.inputs[0] if list(perm) == [*range(rank - 2), rank - 1, rank - 2] else None
