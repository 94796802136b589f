"""Matrices of at most three rows, a number that is known: loops written out, for all at once.

Factorisation and substitution are the algorithms of larger matrices and as accurate. Cramer's rule
is not (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.10.1), so that
general systems and inverses have no form here.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_blocks import poison, zero

LARGEST = 3
"""Number of rows up to which loops are written out."""


def is_small(n: int | None) -> bool:
    """Return whether a size is known, small and not zero.

    Examples
    --------
    >>> [is_small(n) for n in (None, 0, 1, 3, 4)]
    [False, False, True, True, False]
    """
    return n is not None and 0 < n <= LARGEST


def factor_of_small(a: TensorVariable, n: int, *, lower: bool) -> TensorVariable:
    """Return Cholesky factors, computed from one triangle of each matrix.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> factor_of_small(x, 2, lower=False).eval({x: [[4.0, 2.0], [0.0, 5.0]]}, mode="ONNX")
    array([[2., 1.],
           [0., 2.]])
    """
    elements = a.reshape((-1, n * n)).T

    def element(i: int, j: int) -> TensorVariable:
        return elements[[i * n + j if lower else j * n + i]]

    factor: dict[tuple[int, int], TensorVariable] = {}
    for j in range(n):
        for i in range(j, n):
            rest = element(i, j)
            for k in range(j):
                rest = rest - factor[i, k] * factor[j, k]
            factor[i, j] = pt.sqrt(rest) if i == j else rest / factor[j, j]
    roots = pt.concatenate([factor[j, j] for j in range(n)], axis=0)
    # Also false for the root of a negative number.
    positive = ((roots > 0) & (roots < np.inf)).all(axis=0)
    none = pt.zeros_like(factor[0, 0])
    places = [(i, j) if lower else (j, i) for i in range(n) for j in range(n)]
    rows = pt.concatenate([factor.get(place, none) for place in places], axis=0)
    return (rows + poison(positive, a.type.dtype)).T.reshape(a.shape, ndim=a.type.ndim)


def solution_of_small(
    a: TensorVariable, b: TensorVariable, n: int, *, lower: bool, unit_diagonal: bool
) -> TensorVariable:
    """Return the solutions of triangular systems, read from one triangle of each matrix.

    Examples
    --------
    >>> a, b = pt.matrix("a"), pt.matrix("b")
    >>> x = solution_of_small(a, b, 2, lower=True, unit_diagonal=False)
    >>> x.eval({a: [[2.0, 9.0], [1.0, 1.0]], b: [[4.0], [5.0]]}, mode="ONNX")
    array([[2.],
           [3.]])
    """
    found: dict[int, TensorVariable] = {}
    for i in range(n) if lower else reversed(range(n)):
        rest = b[..., [i], :]
        for j, x in found.items():
            rest = rest - a[..., [i], :][..., [j]] * x
        found[i] = rest if unit_diagonal else rest / a[..., [i], :][..., [i]]
    x = pt.concatenate([found[i] for i in range(n)], axis=-2)
    if unit_diagonal:
        return x
    regular = pt.neq(pt.diagonal(a, axis1=-2, axis2=-1), zero(a.type.dtype)).all(axis=-1)
    return x + poison(regular, a.type.dtype)[..., None, None]
