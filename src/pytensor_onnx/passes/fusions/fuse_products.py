"""Products fused with what surrounds them."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.digests import content_key
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.dims import Dims, constant_ints, dims_of
from pytensor_onnx.passes.matching import (
    constant_of,
    is_constant,
    is_operator,
    producer_of,
    required,
    reshape_constant,
    sole_producer,
)
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_rules import node_rule
from pytensor_onnx.passes.node_walk import NodeBuilder

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


@node_rule(
    "Add",
    "MatMul",
    "Sub",
    family="products",
    purpose="size",
    identity="A.T @ B + c = Gemm(A, B, c, transA=1)",
    requires="matrices, and no other use of the product",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def fuse_gemm(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    """Replace a matrix product by a Gemm if that removes a node.

    A bias that is added or subtracted is fused if the product has no other use and the bias is
    broadcast one way; a factor's Transpose, if the transposed matrix has no other use. Steps of
    loops get no transposed factors, which would be turned in each step.
    """
    if node.op_type == "MatMul":
        is_turned = not build.within and any(map(_sole_transpose, node.inputs))
        is_last = is_turned and _is_product_of_matrices(node) and not _gets_bias(node)
        return _gemm(build, node, None, {}) if is_last else None
    found = _product_and_bias(node)
    if found is None:
        return None
    return _gemm(build, *found, {"beta": -1.0} if node.op_type == "Sub" else {})


def _gemm(
    build: NodeBuilder, product: ir.Node, bias: ir.Value | None, attributes: dict[str, Any]
) -> ir.Value:
    operands: list[ir.Value | None] = []
    for factor, attribute in zip(product.inputs, ("transA", "transB"), strict=True):
        transpose = _sole_transpose(factor)
        operands.append(factor if transpose is None else transpose.inputs[0])
        if transpose is not None:
            attributes[attribute] = 1
    operands += [] if bias is None else [bias]
    result: ir.Value = build.Gemm(*operands, **attributes)
    return result


def _gets_bias(product: ir.Node) -> bool:
    """Return whether a bias is fused into a product, where the walk comes to its sum."""
    found = (_product_and_bias(user) for user in product.outputs[0].consumers())
    return any(pair is not None and pair[0] is product for pair in found)


def _product_and_bias(node: ir.Node) -> tuple[ir.Node, ir.Value] | None:
    """Return the product and the bias that a node adds or subtracts."""
    if not is_operator(node, "Add", "Sub"):
        return None
    for value, bias in (node.inputs, node.inputs[::-1])[: 2 if node.op_type == "Add" else 1]:
        product = sole_producer(value, "MatMul")
        if (
            bias is not None
            and product is not None
            and _is_product_of_matrices(product)
            and _broadcasts_one_way(dims_of(bias), dims_of(value))
        ):
            return product, bias
    return None


def _is_product_of_matrices(node: ir.Node) -> bool:
    return node.outputs[0].dtype in _FLOATS and all(
        len(dims_of(factor) or ()) == 2 for factor in node.inputs
    )


def _broadcasts_one_way(bias: Dims | None, product: Dims | None) -> bool:
    """Return whether a bias need not make the product larger.

    Elements of the sequences of a loop have sizes of no name. They equal those of the product, as
    PyTensor broadcasts axes only that are known to have the size one.
    """
    if bias is None or product is None or len(bias) > len(product):
        return False
    tail = product[len(product) - len(bias) :]
    return all(b in (1, p) or (b is None and p != 1) for b, p in zip(bias, tail, strict=True))


def _sole_transpose(factor: ir.Value | None) -> ir.Node | None:
    """Return the Transpose of a factor whose only use is the product."""
    node = sole_producer(factor, "Transpose")
    perm = node.attributes.get_ints("perm", (1, 0)) if node is not None else ()
    return node if tuple(perm) == (1, 0) else None


@node_rule(
    "Clip",
    family="elementwise",
    purpose="correctness",
    identity="clip(relu(x), a, b) = clip(x, max(a, 0), max(b, 0))",
    in_functions=True,
    requires="constant bounds",
    ensures="no Clip after a Relu, which ONNX Runtime refuses in float64",
)
def fuse_relu_clip(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    """Fuse a Relu into a Clip with constant bounds."""
    if len(node.inputs) != 3:
        return None
    x, low, high = node.inputs
    relu = producer_of(x, "Relu")
    least, most = constant_of(low), constant_of(high)
    if relu is None or least is None or most is None:
        return None
    return build.Clip(relu.inputs[0], np.clip(np.zeros_like(least), least, most), high)


def products_of_elements(
    counts: Sequence[int],
    taps: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    starts: Sequence[int],
) -> np.ndarray:
    """Return the products that are summed for each element of the result, by their positions.

    Parameters
    ----------
    counts, taps, sizes
        Sizes of an image, of the filters, and of the result.
    strides, dilations
        Distances between the windows of neighbouring elements, and between taps.
    starts
        Elements cropped from the start of each axis.

    Returns
    -------
    numpy.ndarray
        Positions in an array (*taps, *counts), of shape (products, prod(sizes)). Elements with
        fewer products than others have the position after the last one.

    Examples
    --------
    >>> products_of_elements([3], [2], [4], [1], [1], [0])
    array([[0, 1, 2, 5],
           [6, 3, 4, 6]])
    """
    rank = len(sizes)
    indices = np.indices((*taps, *counts)).reshape(2 * rank, -1).T
    places = indices[:, :rank] * dilations + indices[:, rank:] * strides - np.asarray(starts)
    of_elements: list[list[int]] = [[] for _ in range(int(np.prod(sizes)))]
    for product, place in enumerate(places.tolist()):
        if all(0 <= at < size for at, size in zip(place, sizes, strict=True)):
            of_elements[int(np.ravel_multi_index(place, sizes))].append(product)
    most = max(1, *map(len, of_elements))
    return np.array([group + [len(places)] * (most - len(group)) for group in of_elements]).T


# Store a weight once if the model uses both the weight and its transpose.
#
# PyTensor folds the transpose of a constant before the conversion. An embedding table that is also
# the last layer, as in most language models, would be stored twice.

SMALLEST = 1024
"""Number of elements from which on a node costs less than the copy."""


@model_pass(
    family="products",
    purpose="size",
    identity="A and constant A.T = A and transpose(A)",
    requires="a large constant matrix",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def share_transposed(model: ir.Model, scope: ModelScope) -> int:
    """Replace a constant matrix that is the transpose of another one by a Transpose node.

    The constant with the name of a parameter is kept. A runtime computes the Transpose once, when
    it loads the model.
    """
    graph, named = model.graph, set(scope.constant_names.values())
    matrices = [
        (value, array)
        for value in graph.initializers.values()
        if (array := constant_of(value)) is not None and _is_large_matrix(value, array)
    ]
    matrices.sort(key=lambda pair: pair[0].name not in named)
    kept: dict[tuple[int, ...], list[tuple[ir.Value, np.ndarray]]] = {}
    count = 0
    for value, array in matrices:
        others = kept.get(array.shape[::-1], ())
        source = next((other for other, own in others if _same_bits(array, own.T)), None)
        if source is None:
            kept.setdefault(array.shape, []).append((value, array))
            continue
        build = Builder(scope)
        ir.convenience.replace_all_uses_with(value, build.Transpose(source, perm=[1, 0]))
        name_values(build.nodes, scope.names)
        graph.insert_before(next(iter(graph)), build.nodes)
        del graph.initializers[str(value.name)]
        count += 1
    return count


def _is_large_matrix(value: ir.Value, array: np.ndarray) -> bool:
    return array.ndim == 2 and array.size >= SMALLEST and not value.is_graph_output()


def _same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    if first.dtype != second.dtype:
        return False
    bits = f"u{first.dtype.itemsize}"
    # Most pairs differ in the first row.
    return all(
        np.array_equal(
            np.ascontiguousarray(first[rows]).view(bits),
            np.ascontiguousarray(second[rows]).view(bits),
        )
        for rows in (slice(1), slice(None))
    )


# Replace products of reshaped vectors by a MatMul of vectors.
#
# PyTensor multiplies matrices only. It reshapes a vector to a matrix before the product, and drops
# the axis of size one after it; a vector on the left becomes one to the right of the transposed
# matrix.
#
# A matrix times a vector is left as it is. ONNX Runtime refuses that product for a matrix without
# rows and returns uninitialised memory for one without columns; if it fuses a Transpose into the
# product, it multiplies by the untransposed matrix.

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
