"""The vectors of a compressed sparse matrix, and the rows and columns of its entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.raise_op import CheckAndRaise
from pytensor.sparse.basic import Cast
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.complex_numbers import REAL, ComplexNumbers
from pytensor_onnx.encodings.registry import Rewrite, Tensors, registered
from pytensor_onnx.encodings.sparse_matrices import SparseMatrices
from pytensor_onnx.ops.encoded import Decode, Encode
from pytensor_onnx.ops.sparse import EntryRows, SegmentSum

ENCODING = registered(SparseMatrices)
_PAIRS = registered(ComplexNumbers)
_COMPARED = ("bool", "uint8")
"""Dtypes of comparisons, which are real for complex operands."""


def rewrites(*op_types: type[Op]) -> Callable[[Rewrite], Rewrite]:
    """Register the rewrite of an Op to operations on vectors of real or complex numbers.

    The function is as in `Encoding.rewrites`, except that complex numbers are no pairs: it takes
    and returns complex tensors, whose operations the encoding of complex numbers rewrites then.
    """

    def register(rewrite: Rewrite) -> Rewrite:
        @wraps(rewrite)
        def with_pairs(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
            if _is_typed_as_real(node):
                return None
            opened = [_opened(v, tensors) for v, tensors in zip(node.inputs, inputs, strict=True)]
            results = rewrite(op, node, opened)
            return None if results is None else [list(map(_closed, group)) for group in results]

        ENCODING.rewrites(*op_types)(with_pairs)
        return rewrite

    return register


def _is_typed_as_real(node: Apply) -> bool:
    """Return whether PyTensor has the type of real numbers for complex results."""
    has_complex = any(map(_has_complex_numbers, node.inputs))
    is_real = all(v.type.dtype not in (*REAL, *_COMPARED) for v in node.outputs)
    return has_complex and is_real and not isinstance(node.op, Cast)


def _has_complex_numbers(variable: Variable) -> bool:
    return (is_sparse(variable) and variable.type.dtype in REAL) or _PAIRS.serves(variable.type)


def _opened(variable: Variable, tensors: Tensors) -> Tensors:
    """Return the tensors of a variable, with complex numbers for pairs."""
    if not _has_complex_numbers(variable):
        return tensors
    type_ = variable.type
    if is_sparse(variable):
        type_ = TensorType(type_.dtype, shape=(None,))
    return [Decode(type_)(tensors[0]), *tensors[1:]]


def _closed(x: Variable) -> Variable:
    """Return pairs for complex numbers."""
    if not _PAIRS.serves(x.type):
        return x
    if x.owner is not None and isinstance(x.owner.op, Decode):
        return x.owner.inputs[0]
    return Encode(x.type)(x)


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


def in_precision(x: TensorVariable, dtype: str) -> TensorVariable:
    """Return a factor of a product of some dtype in that dtype; a real one stays real."""
    return pt.cast(x, dtype if _PAIRS.serves(x.type) else REAL.get(dtype, dtype))


def same_size(
    x: TensorVariable, sizes: Sequence[tuple[TensorVariable, TensorVariable]], message: str
) -> TensorVariable:
    """Return a value if pairs of sizes are equal, else fail with PyTensor's error."""
    return CheckAndRaise(ValueError, message)(x, *(pt.eq(a, b) for a, b in sizes))


def checked_shape(dense: TensorVariable, x: Compressed) -> TensorVariable:
    """Return a dense matrix if it has the shape of a sparse one, else fail."""
    sizes = [(dense.shape[0], x.n_rows), (dense.shape[1], x.n_cols)]
    return same_size(dense, sizes, "inconsistent shapes")
