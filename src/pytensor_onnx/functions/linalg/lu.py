"""LU factorisations, determinants and permutations."""

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor, PivotToPermutations
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_batches import diagonals
from pytensor_onnx.functions.linalg.matrix_blocks import as_float, checked_size, poison, zero
from pytensor_onnx.functions.linalg.pivoting import eliminated, triangular
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature

_NOT_SQUARE = "expected square matrix"


@define(LUFactor, "(n,n)->(n,n),(n)")
def lu_factor(a: TensorVariable) -> list[TensorVariable]:
    """LU factors of matrices with exchanged rows, and the exchanges.

    The pivot of each column is its first number of the largest magnitude, as LAPACK's. All factors
    are NaN if a pivot is zero, as in PyTensor. The backward error is that of LAPACK.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> factorise = compile_onnx([x], pt.linalg.lu_factor(x), verify=False)
    >>> factorise([[1.0, 3.0], [2.0, 2.0]])
    [array([[2. , 2. ],
           [0.5, 2. ]]), array([1, 1], dtype=int32)]
    """
    (a,) = as_float(a)
    factors, pivots, _ = eliminated(a, checked_size(a, _NOT_SQUARE))
    regular = pt.neq(diagonals(factors), 0).all(axis=-1)
    factors += poison(regular, a.type.dtype)[..., None, None]
    return [factors, pivots.astype("int32")]


@define(LU, own_signature)
def lu(a: TensorVariable, *, permute_l: bool, p_indices: bool) -> list[TensorVariable]:
    """LU factors of matrices and the permutation of their rows, as a matrix or as indices.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> factors = pt.linalg.lu(x, p_indices=True)[:2]
    >>> compile_onnx([x], factors, verify=False)([[1.0, 3.0], [2.0, 2.0]])
    [array([1, 0], dtype=int32), array([[1. , 0. ],
           [0.5, 1. ]])]
    """
    (a,) = as_float(a)
    n, dtype = checked_size(a, _NOT_SQUARE), a.type.dtype
    factors, _, order = eliminated(a, n)
    index = pt.arange(n)
    below, above = index[:, None] > index, index[:, None] <= index
    unit = pt.eq(index[:, None], index).astype(dtype)
    lower = pt.switch(below, factors, unit)
    upper = pt.switch(above, factors, zero(dtype))
    moved = pt.eq(index[:, None], order[..., None, :])
    if permute_l:
        return [pt.matmul(moved.astype(dtype), lower), upper]
    if p_indices:
        return [(moved * index).sum(axis=-1).astype("int32"), lower, upper]
    return [moved.astype(dtype), lower, upper]


@define(PivotToPermutations, "(n)->(n)", batches=False)
def permutation(pivots: TensorVariable, *, inverse: bool) -> TensorVariable:
    """Permutation that exchanges of rows make together.

    Examples
    --------
    >>> from pytensor.tensor.linalg.decomposition.lu import pivot_to_permutation
    >>> from pytensor_onnx import compile_onnx
    >>> pivots = pt.vector("pivots", dtype="int32")
    >>> compile_onnx([pivots], pivot_to_permutation(pivots))([1, 2, 2])
    array([2, 0, 1])
    """
    n = pivots.shape[0]
    index = pt.arange(n)

    def step(
        i: TensorVariable, pivot: TensorVariable, order: TensorVariable
    ) -> list[TensorVariable]:
        both = pt.stack([i, pivot])
        return [pt.set_subtensor(order[both], order[both[::-1]])]

    (order,) = iterate(step, [index], n_steps=n, sequences=[index, pivots.astype("int64")])
    if inverse:
        return order
    return pt.set_subtensor(pt.zeros_like(index)[order], index)


def sign_of_exchanges(pivots: TensorVariable, dtype: str) -> TensorVariable:
    """Return the determinant of the permutation that exchanges make."""
    exchanged = pt.neq(pivots, pt.arange(pivots.shape[-1])).astype("int64").sum(axis=-1)
    return (1 - 2 * (exchanged % 2)).astype(dtype)


@define(Det, "(n,n)->()")
def det(a: TensorVariable) -> TensorVariable:
    """Product of the pivots of matrices, their determinant.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], pt.linalg.det(x))([[1.0, 3.0], [2.0, 2.0]])
    array(-4.)
    """
    (a,) = as_float(a)
    n = checked_size(a, _NOT_SQUARE)
    factors, pivots = triangular(a, n)
    product = product_within_range(diagonals(factors), n)
    return product * sign_of_exchanges(pivots, a.type.dtype)


def product_within_range(x: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return the products of the n elements of vectors, without overflow in partial products.

    Where partial products may leave the range of numbers, the factors are multiplied without their
    powers of two, which are multiplied in halves.

    Examples
    --------
    >>> x = pt.vector("x")
    >>> product = product_within_range(x, x.shape[0])
    >>> product.eval({x: [-1e-200, 1e-200, 1e300, 2e100]}, mode="ONNX").item()
    -2.0
    """
    # All partial products are between this number to minus and to plus the number of factors.
    largest = (pt.abs(x) + 1 / pt.abs(x)).sum()
    room = np.array(np.finfo(x.type.dtype).maxexp - 2, x.type.dtype)
    is_safe = pt.lt(pt.log2(largest) * n.astype(x.type.dtype), room)
    return ifelse(is_safe, x.prod(axis=-1), _product_of_any(x))


def _product_of_any(x: TensorVariable) -> TensorVariable:
    two = np.array(2, x.type.dtype)
    exponents = _within_range(pt.round(pt.log2(pt.abs(x))))
    exponent = exponents.sum(axis=-1)
    first = pt.floor(exponent / two)
    second = exponent - first
    near_one = (x / two**exponents).prod(axis=-1)
    return near_one * two ** _within_range(first) * two ** _within_range(second)


def _within_range(exponents: TensorVariable) -> TensorVariable:
    """Return exponents of powers of two that are neither zero nor infinite."""
    info = np.finfo(exponents.type.dtype)
    bounds = np.log2(info.smallest_subnormal), info.maxexp - 1
    return pt.clip(exponents, *(np.array(bound, exponents.type.dtype) for bound in bounds))


@define(SLogDet, "(n,n)->(),()")
def slogdet(a: TensorVariable) -> list[TensorVariable]:
    """Signs of the determinants of matrices, and logarithms of their magnitudes.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> from pytensor.tensor.linalg.summary import SLogDet
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], SLogDet()(x))([[1.0, 3.0], [2.0, 2.0]])
    [array(-1.), array(1.38629436)]
    """
    (a,) = as_float(a)
    factors, pivots = triangular(a, checked_size(a, _NOT_SQUARE))
    diagonal = diagonals(factors)
    sign = pt.sign(diagonal).prod(axis=-1) * sign_of_exchanges(pivots, a.type.dtype)
    return [sign, pt.log(pt.abs(diagonal)).sum(axis=-1)]
