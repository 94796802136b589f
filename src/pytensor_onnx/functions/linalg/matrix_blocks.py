"""Blocks of matrices: their number and size, and the products between them."""

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.blas import gemm_no_inplace
from pytensor.tensor.linalg.dtype_utils import linalg_output_dtype
from pytensor.tensor.variable import TensorVariable

BLOCK = 25
"""Rows of a block of one matrix, which are eliminated without a loop."""

SHORT = 10
"""Rows of the block that a matrix of no more rows is, which is eliminated in less time."""

END = np.iinfo(np.int32).max
"""End of windows that reach to the last row."""

BATCH_BLOCK = 12
"""Rows of a block of a batch of matrices, which are eliminated by a loop over rows."""


def checked_size(matrix: TensorVariable, message: str) -> TensorVariable:
    """Return the order of square matrices, with a ValueError for others when the graph runs.

    The check is one of a number, since a check of the matrix would copy it.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> int(checked_size(x, "expected square matrix").eval({x: np.eye(2)}, mode="ONNX"))
    2
    """
    rows, columns = matrix.shape[-2], matrix.shape[-1]
    if matrix.type.shape[-2] is not None and matrix.type.shape[-2] == matrix.type.shape[-1]:
        return columns
    return CheckAndRaise(ValueError, message)(columns, pt.eq(rows, columns))


def checked_sizes(
    matrix: TensorVariable, columns: TensorVariable, not_square: str, unequal: str
) -> TensorVariable:
    """Return the order of square matrices that have as many rows as others, else fail.

    The message says which of both does not hold.
    """
    n = checked_size(matrix, not_square)
    return CheckAndRaise(ValueError, unequal)(n, pt.eq(matrix.shape[-1], columns.shape[-2]))


def as_float(*operands: TensorVariable) -> list[TensorVariable]:
    """Return operands in the dtype in which LAPACK computes.

    Examples
    --------
    >>> [x.dtype for x in as_float(pt.imatrix(), pt.fmatrix())]
    ['float64', 'float64']
    >>> [x.dtype for x in as_float(pt.matrix(dtype="float16"))]
    ['float32']
    """
    dtype = linalg_output_dtype(*(x.type.dtype for x in operands))
    return [x.astype(dtype) for x in operands]


def less_product(c: TensorVariable, x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return ``c - x @ y``, for matrices by one operator.

    Examples
    --------
    >>> c, x = pt.matrix("c"), pt.matrix("x")
    >>> less_product(c, x, x).eval({c: np.ones((1, 1)), x: np.full((1, 1), 3.0)}, mode="ONNX")
    array([[-8.]])
    """
    return c - pt.matmul(x, y) if c.type.ndim > 2 else _product_added(c, -1, x, y)


def plus_product(c: TensorVariable, x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return ``c + x @ y``, for matrices by one operator.

    Examples
    --------
    >>> c, x = pt.matrix("c"), pt.matrix("x")
    >>> plus_product(c, x, x).eval({c: np.ones((1, 1)), x: np.full((1, 1), 3.0)}, mode="ONNX")
    array([[10.]])
    """
    return c + pt.matmul(x, y) if c.type.ndim > 2 else _product_added(c, 1, x, y)


def _product_added(
    c: TensorVariable, factor: int, x: TensorVariable, y: TensorVariable
) -> TensorVariable:
    scale, one = (np.array(value, c.type.dtype) for value in (factor, 1))
    return gemm_no_inplace(c, scale, x, y, one)


def nothing(size: TensorVariable) -> TensorVariable:
    """Return the number zero, for the number of rows of an initial state that gains rows.

    A zero that is known would be taken for the number of rows in every step.

    Examples
    --------
    >>> size = pt.lscalar("size")
    >>> int(nothing(size).eval({size: 3}, mode="ONNX"))
    0
    """
    return pt.minimum(size, 0)


def block_count(size: TensorVariable, block: int = BLOCK) -> TensorVariable:
    """Return the number of blocks that have so many rows together.

    Examples
    --------
    >>> size = pt.lscalar("size")
    >>> int(block_count(size).eval({size: 26}, mode="ONNX"))
    2
    """
    return (size + (block - 1)) // block


def padded(
    matrix: TensorVariable, n: TensorVariable, size: TensorVariable, *beside: TensorVariable
) -> TensorVariable:
    """Return a square matrix with rows and columns of zeros added, and with others beside it.

    Examples
    --------
    >>> x, size = pt.matrix("x"), pt.lscalar("size")
    >>> padded(x, x.shape[0], size, 2 * x).eval({x: np.ones((1, 1)), size: 2}, mode="ONNX")
    array([[1., 0., 2.],
           [0., 0., 0.]])
    """
    dtype = matrix.type.dtype
    wide = pt.concatenate([matrix, pt.zeros((n, size - n), dtype), *beside], axis=1)
    return pt.concatenate([wide, pt.zeros((size - n, wide.shape[1]), dtype)], axis=0)


def symmetric(matrix: TensorVariable, n: TensorVariable, *, lower: bool) -> TensorVariable:
    """Return symmetric matrices of order n, made of one triangle of given matrices.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> whole = symmetric(x, x.shape[0], lower=True)
    >>> whole.eval({x: np.array([[1.0, 2.0], [3.0, 4.0]])}, mode="ONNX")
    array([[1., 3.],
           [3., 4.]])
    """
    row, column = pt.arange(n)[:, None], pt.arange(n)
    return pt.switch(row >= column if lower else row <= column, matrix, matrix.mT)


def zero(dtype: str) -> np.ndarray:
    """Return the number zero."""
    return np.zeros((), dtype)


def poison(valid: TensorVariable, dtype: str) -> TensorVariable:
    """Return the summand of a result: zero where the result is valid, and NaN elsewhere."""
    return pt.switch(valid, zero(dtype), np.full((), np.nan, dtype))
