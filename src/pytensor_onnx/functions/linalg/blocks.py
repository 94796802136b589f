"""Blocks, batches and scales of matrices."""

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.blas import gemm_no_inplace
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.dtype_utils import linalg_output_dtype
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.functions.shape import zeros

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


def flat(matrices: TensorVariable) -> TensorVariable:
    """Return matrices with all batch axes joined to one, or one added.

    Examples
    --------
    >>> import numpy as np
    >>> x = pt.tensor4("x")
    >>> flat(x).eval({x: np.zeros((2, 3, 4, 0))}, mode="ONNX").shape
    (6, 4, 0)
    """
    if matrices.type.ndim == 2:
        return matrices[None]
    if matrices.type.ndim == 3:
        return matrices
    batch = pt.prod(pt.stack(list(matrices.shape[:-2])))
    return matrices.reshape((batch, matrices.shape[-2], matrices.shape[-1]), ndim=3)


def unflat(results: TensorVariable, like: TensorVariable, *sizes: TensorVariable) -> TensorVariable:
    """Return results of flattened matrices with the batch axes that the matrices had.

    Parameters
    ----------
    results
        Results with one batch axis, the first.
    like
        Matrices before they were flattened.
    sizes
        Sizes of a result.
    """
    if like.type.ndim == 2:
        return results[0]
    if like.type.ndim == 3:
        return results
    return results.reshape((*like.shape[:-2], *sizes), ndim=like.type.ndim - 2 + len(sizes))


def not_empty(matrices: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return matrices of n rows and n, where empty matrices become a single zero.

    Examples
    --------
    >>> import numpy as np
    >>> x = pt.tensor3("x")
    >>> padded, n = not_empty(x, x.shape[1])
    >>> padded.eval({x: np.zeros((2, 0, 0))}, mode="ONNX").shape
    (2, 1, 1)
    """
    batch, size = matrices.shape[0], pt.maximum(n, 1)
    wide = pt.concatenate([matrices, zeros((batch, n, size - n))], axis=2)
    return pt.concatenate([wide, zeros((batch, size - n, size))], axis=1), size


def batch_last(matrices: TensorVariable) -> TensorVariable:
    """Return matrices with the batch axis last, where elementwise operations are fast."""
    return matrices.transpose(1, 2, 0)


def batch_first(matrices: TensorVariable) -> TensorVariable:
    """Return matrices with the batch axis first, where products are taken."""
    return matrices.transpose(2, 0, 1)


def diagonals(matrices: TensorVariable) -> TensorVariable:
    """Return the diagonals of matrices."""
    return pt.diagonal(matrices, axis1=-2, axis2=-1)


def as_columns(b: TensorVariable, b_ndim: int) -> TensorVariable:
    """Return right-hand sides as matrices, one column for a vector."""
    return b if b_ndim == 2 else b[..., None]


def from_columns(x: TensorVariable, b_ndim: int) -> TensorVariable:
    """Return solutions in the form of the right-hand sides given to `as_columns`."""
    return x if b_ndim == 2 else x[..., 0]


@define(BlockDiagonal, own_signature)
def block_diagonal(*blocks: TensorVariable) -> TensorVariable:
    """Matrix of the blocks along its diagonal, zeros elsewhere.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x, y = pt.matrices("x", "y")
    >>> compile_onnx([x, y], pt.linalg.block_diag(x, y))([[1.0, 2.0]], [[3.0]])
    array([[1., 2., 0.],
           [0., 0., 3.]])
    """
    dtype = pt.add(*blocks).type.dtype if len(blocks) > 1 else blocks[0].type.dtype
    width = sum(block.shape[-1] for block in blocks)
    rows, before = [], pt.constant(0, dtype="int64")
    for block in blocks:
        after = width - before - block.shape[-1]
        left, right = (pt.zeros((*block.shape[:-1], size), dtype=dtype) for size in (before, after))
        rows.append(pt.concatenate([left, block.astype(dtype), right], axis=-1))
        before = before + block.shape[-1]
    return pt.concatenate(rows, axis=-2)


_EXPONENTS = {"float32": 120, "float64": 1000}


def power_of_two(a: TensorVariable, axis: int | tuple[int, ...]) -> TensorVariable:
    """Return a power of two near the reciprocal of the largest element along axes.

    It is one where all elements are zero, or one of them is not finite.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> power_of_two(x, axis=0).eval({x: np.array([[3.0, 0.0], [-4.0, 0.0]])}, mode="ONNX")
    array([[0.25, 1.  ]])
    """
    dtype = a.type.dtype
    one = np.ones((), dtype)
    axes = (axis,) if isinstance(axis, int) else axis
    largest = pt.abs(a)
    for i in axes:
        shape = [1 if i == j else largest.shape[j] for j in range(a.type.ndim)]
        largest = pt.concatenate([largest, zeros(shape, dtype)], axis=i).max(axis=i, keepdims=True)
    usable = pt.gt(largest, zero(dtype)) & pt.lt(largest, np.full((), np.inf, dtype))
    largest = pt.switch(usable, largest, one)
    exponent = -pt.floor(pt.log2(largest))
    limit = np.full((), _EXPONENTS[dtype], dtype)
    return np.full((), 2, dtype) ** pt.clip(exponent, -limit, limit)


def finite(a: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return zero for each finite matrix and else NaN, and the matrices, zero where not finite.

    The loops of iterations end then, and NaN is added to their results.
    """
    is_finite = pt.isfinite(a).all(axis=(1, 2), keepdims=True)
    return poison(is_finite, a.type.dtype), pt.switch(is_finite, a, zero(a.type.dtype))


def scaled_parts(
    parts: Parts, n: TensorVariable
) -> tuple[Parts, TensorVariable, TensorVariable, TensorVariable]:
    """Return complex matrices in one batch of float64, brought near one and not empty.

    Parameters
    ----------
    parts
        Real and imaginary parts of square matrices.
    n
        Number of their rows.

    Returns
    -------
    tuple
        The parts, the number of rows, at least one, the scale, and zero for each finite matrix and
        else NaN.
    """
    valid_real, real = finite(flat(parts.real).astype("float64"))
    valid_imag, imag = finite(flat(parts.imag).astype("float64"))
    scale = power_of_two(pt.concatenate([real, imag], axis=2), axis=(1, 2))
    (real, size), (imag, _) = not_empty(real * scale, n), not_empty(imag * scale, n)
    return Parts(real, imag), size, scale, valid_real + valid_imag


def length(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return the length of ``(x, y)``, without over- and underflow."""
    larger = nonzero(pt.maximum(pt.abs(x), pt.abs(y)))
    return larger * pt.sqrt((x / larger) ** 2 + (y / larger) ** 2)


def nonzero(x: TensorVariable) -> TensorVariable:
    """Return one in the place of zero, for divisors of zeros."""
    return pt.switch(pt.eq(x, 0.0), 1.0, x)


def behind(rows: TensorVariable) -> TensorVariable:
    """Return rows moved by one place, with a zero before them."""
    return pt.concatenate([pt.zeros_like(rows[:, :1]), rows[:, :-1]], axis=1)


def ahead(rows: TensorVariable) -> TensorVariable:
    """Return rows without their first elements, with a zero behind them."""
    return pt.concatenate([rows[:, 1:], pt.zeros_like(rows[:, :1])], axis=1)


def lower_diagonal(t: TensorVariable) -> TensorVariable:
    """Return the elements below the diagonals, followed by a zero."""
    return _followed_by_zero(t, -1)


def upper_diagonal(t: TensorVariable) -> TensorVariable:
    """Return the elements above the diagonals, followed by a zero."""
    return _followed_by_zero(t, 1)


def _followed_by_zero(t: TensorVariable, offset: int) -> TensorVariable:
    found = pt.diagonal(t, offset=offset, axis1=1, axis2=2)
    return pt.concatenate([found, zeros((t.shape[0], 1))], axis=1)[:, : t.shape[1]]
