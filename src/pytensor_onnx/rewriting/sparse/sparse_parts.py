"""Parts of sparse matrices and their conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.raise_op import CheckAndRaise
from pytensor.sparse.basic import (
    CSM,
    Cast,
    CSMProperties,
    DenseFromSparse,
    SparseFromDense,
    Transpose,
)
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.complex_numbers import REAL, ComplexNumbers
from pytensor_onnx.encodings.registry import Rewrite, Tensors, registered
from pytensor_onnx.encodings.sparse_matrices import SparseMatrices
from pytensor_onnx.ops.encoded import Decode, Encode
from pytensor_onnx.ops.sparse import EntryRows, RowProducts, ScaledRowSums, SegmentSum, Take
from pytensor_onnx.rewriting.complex.complex_elementwise import ENCODING as COMPLEX, is_complex
from pytensor_onnx.rewriting.complex.complex_linalg import product_of_parts
from pytensor_onnx.rewriting.complex.complex_structure import by_part

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


@COMPLEX.rewrites(Take, SegmentSum)
def by_real_and_imaginary_part(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Take or add the real and the imaginary parts."""
    return by_part(op, node, inputs, slice(1))


@COMPLEX.rewrites(ScaledRowSums, RowProducts)
def multiply_rows(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Multiply complex rows by the products of their real and imaginary parts."""
    return product_of_parts(op, node, inputs, factors=(0, 2))


def less(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return whether numbers are less than others, in SciPy's order."""
    return _ordered(pt.lt, x, y)


def greater(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return whether numbers are greater than others, in SciPy's order."""
    return _ordered(pt.gt, x, y)


def _ordered(
    compare: Callable[[TensorVariable, TensorVariable], TensorVariable],
    x: TensorVariable,
    y: TensorVariable,
) -> TensorVariable:
    """Compare by the real parts, equal ones by the imaginary parts.

    NumPy's comparison of arrays is false for NaN in any part, SciPy's for NaN in a compared one.
    """
    if not is_complex(x):
        return compare(x, y)
    by_imag = compare(pt.imag(x), pt.imag(y))
    return pt.switch(pt.eq(pt.real(x), pt.real(y)), by_imag, compare(pt.real(x), pt.real(y)))
