"""The vectors of a compressed sparse matrix, and the rows and columns of its entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors, registered
from pytensor_onnx.encodings.sparse_matrices import SparseMatrices
from pytensor_onnx.ops.sparse_matrices import EntryRows, SegmentSum

ENCODING = registered(SparseMatrices)


@dataclass(frozen=True)
class Compressed:
    """A matrix of compressed rows (CSR) or columns (CSC).

    Attributes
    ----------
    format
        ``csr`` or ``csc``.
    data, indices, indptr
        Vectors of SciPy's.
    shape
        Vector of the two sizes.
    """

    format: str
    data: TensorVariable
    indices: TensorVariable
    indptr: TensorVariable
    shape: TensorVariable

    @classmethod
    def of(cls, variable: Variable, tensors: Tensors) -> Compressed:
        """Return the matrix of a variable and its tensors."""
        return cls(variable.type.format, *tensors)

    @property
    def tensors(self) -> list[TensorVariable]:
        """The tensors, in the order of the encoding."""
        return [
            self.data,
            pt.cast(self.indices, "int32"),
            pt.cast(self.indptr, "int32"),
            pt.cast(self.shape, "int64"),
        ]

    @property
    def is_by_rows(self) -> bool:
        """Whether the rows are compressed."""
        return self.format == "csr"

    @property
    def n_major(self) -> TensorVariable:
        """Number of the compressed rows or columns."""
        return self.indptr.shape[0] - 1

    @property
    def n_minor(self) -> TensorVariable:
        """Size along the other axis."""
        return self.shape[1 if self.is_by_rows else 0]

    @property
    def n_rows(self) -> TensorVariable:
        """Number of rows."""
        return self.n_major if self.is_by_rows else self.n_minor

    @property
    def n_cols(self) -> TensorVariable:
        """Number of columns."""
        return self.n_minor if self.is_by_rows else self.n_major

    @property
    def major(self) -> TensorVariable:
        """Compressed row or column of each entry."""
        return EntryRows()(self.indptr, self.indices)

    @property
    def rows(self) -> TensorVariable:
        """Row of each entry."""
        return self.major if self.is_by_rows else self.indices

    @property
    def cols(self) -> TensorVariable:
        """Column of each entry."""
        return self.indices if self.is_by_rows else self.major

    @property
    def transposed(self) -> Compressed:
        """The transposed matrix, in the other format."""
        other = "csc" if self.is_by_rows else "csr"
        return Compressed(other, self.data, self.indices, self.indptr, self.shape[::-1])

    def with_data(self, data: TensorVariable) -> Compressed:
        """Return the matrix with other values of its entries."""
        return replace(self, data=data)

    def places(self) -> TensorVariable:
        """Position of each entry in the elements of the dense matrix, row by row."""
        return flat_positions(self.rows, self.cols, self.n_cols)

    def dense(self) -> TensorVariable:
        """Return the dense matrix."""
        return dense_of(self.data, self.rows, self.cols, self.n_rows, self.n_cols)


def is_sparse(variable: Variable) -> bool:
    """Return whether a variable is a sparse matrix."""
    return isinstance(variable.type, SparseTensorType)


def dense_of(
    data: TensorVariable,
    rows: TensorVariable,
    cols: TensorVariable,
    n_rows: TensorVariable,
    n_cols: TensorVariable,
) -> TensorVariable:
    """Return the dense matrix of entries; several entries may have one place."""
    elements = SegmentSum()(data, flat_positions(rows, cols, n_cols), n_rows * n_cols)
    return elements.reshape((n_rows, n_cols))


def flat_positions(
    rows: TensorVariable, cols: TensorVariable, n_cols: TensorVariable
) -> TensorVariable:
    """Return the positions of elements in a matrix that is flattened row by row."""
    return pt.cast(rows, "int64") * n_cols + cols


def row_pointers(rows: TensorVariable, n_rows: TensorVariable) -> TensorVariable:
    """Return the position of the first entry of each row, and the number of entries."""
    counts = SegmentSum()(pt.ones_like(rows, dtype="int64"), rows + 1, n_rows + 1)
    return pt.cast(counts.cumsum(), "int32")


def same_size(
    x: TensorVariable, sizes: Sequence[tuple[TensorVariable, TensorVariable]], message: str
) -> TensorVariable:
    """Return a value if pairs of sizes are equal, else fail with PyTensor's error."""
    return CheckAndRaise(ValueError, message)(x, *(pt.eq(a, b) for a, b in sizes))


def checked_shape(dense: TensorVariable, x: Compressed) -> TensorVariable:
    """Return a dense matrix if it has the shape of a sparse one, else fail."""
    sizes = [(dense.shape[0], x.n_rows), (dense.shape[1], x.n_cols)]
    return same_size(dense, sizes, "inconsistent shapes")
