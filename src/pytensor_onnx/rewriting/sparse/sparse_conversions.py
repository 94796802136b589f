"""Convert between sparse matrices, their vectors, and dense matrices."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.raise_op import CheckAndRaise
from pytensor.sparse.basic import (
    CSM,
    Cast,
    CSMProperties,
    DenseFromSparse,
    SparseFromDense,
    Transpose,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    rewrites,
    row_pointers,
    same_size,
)


@rewrites(CSMProperties)
def properties(op: CSMProperties, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the vectors, and the shape in the dtype that PyTensor has it in."""
    x = Compressed.of(node.inputs[0], inputs[0])
    x.indptr.tag.matrix = x
    return [[x.data], [x.indices], [x.indptr], [pt.cast(x.shape, "int32")]]


@rewrites(CSM)
def from_vectors(op: CSM, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return checked vectors, without surplus entries after the last one."""
    data, indices, indptr, shape = (tensors[0] for tensors in inputs)
    known = _matrix_with(op.format, indices, indptr, shape)
    sized = indices if known is None else known.data
    data = same_size(
        data,
        [(data.shape[0], sized.shape[0])],
        "Data must have the same number of elements as indices",
    )
    if known is not None:
        return [known.with_data(data).tensors]
    n_major, n_minor = shape[0], shape[1]
    if op.format == "csc":
        n_major, n_minor = n_minor, n_major
    # A runtime would count negative indices from the end, and take others for the next row.
    indices = CheckAndRaise(IndexError, "index out of range of the sparse matrix")(
        indices, pt.all(pt.ge(indices, 0)), pt.all(pt.lt(indices, n_minor))
    )
    indptr = CheckAndRaise(ValueError, "index pointer values must not decrease")(
        indptr, pt.all(pt.ge(indptr[1:], indptr[:-1]))
    )
    indptr = same_size(
        indptr,
        [(indptr.shape[0] - 1, n_major), (indptr[0], 0)],
        "index pointer should start with 0 and have an element for each row (CSR) or column "
        "(CSC) and one more",
    )
    last = CheckAndRaise(
        ValueError,
        "Last value of index pointer should be less than the size of index and data arrays",
    )(indptr[-1], indptr[-1] <= indices.shape[0])
    return [Compressed(op.format, data[:last], indices[:last], indptr, shape).tensors]


def _matrix_with(
    format: str, indices: TensorVariable, indptr: TensorVariable, shape: TensorVariable
) -> Compressed | None:
    """Return the sparse matrix that all vectors are properties of, or None if there is none."""
    known = getattr(indptr.tag, "matrix", None)
    if known is None or known.format != format or known.indices is not indices:
        return None
    is_own = shape.owner is not None and shape.owner.inputs[0] is known.shape
    return known if is_own and shape.type.dtype == "int32" else None


@rewrites(DenseFromSparse)
def to_dense(op: DenseFromSparse, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the sums of the entries of each place."""
    return [[Compressed.of(node.inputs[0], inputs[0]).dense()]]


@rewrites(SparseFromDense)
def to_sparse(op: SparseFromDense, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return the elements that are not zero."""
    if op.format not in ("csr", "csc"):
        return None
    return [from_dense(inputs[0][0], op.format).tensors]


def from_dense(x: TensorVariable, format: str) -> Compressed:
    """Return the elements of a dense matrix that are not zero."""
    if format == "csc":
        return from_dense(x.T, "csr").transposed
    rows, cols = pt.nonzero(x)
    return Compressed("csr", x[rows, cols], cols, row_pointers(rows, x.shape[0]), pt.shape(x))


@rewrites(Transpose)
def transpose(op: Transpose, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the vectors in the other format."""
    return [Compressed.of(node.inputs[0], inputs[0]).transposed.tensors]


@rewrites(Cast)
def cast(op: Cast, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the matrix in another dtype; a real one drops the imaginary parts."""
    x = Compressed.of(node.inputs[0], inputs[0])
    data = x.data if op.out_type.startswith("complex") else pt.real(x.data)
    return [x.with_data(pt.cast(data, op.out_type)).tensors]
