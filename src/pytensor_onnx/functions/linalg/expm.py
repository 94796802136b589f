"""The matrix exponential."""

from math import factorial

import pytensor.tensor as pt
from pytensor.tensor.linalg.products import Expm
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_batches import flat, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import as_float, checked_size
from pytensor_onnx.functions.linalg.scaling import finite
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define

# Coefficients of the numerator of the diagonal Padé approximant of degree 13, equation 10.33.
_PADE = [float(factorial(26 - k) // (factorial(13 - k) * factorial(k))) for k in range(14)]
# Largest norm for which the approximant is exact in float64.
_RADIUS = 4.25
_SQUARINGS = 1100


@define(Expm, "(m,m)->(m,m)")
def expm(a: TensorVariable) -> TensorVariable:
    """Matrix exponential by scaling and squaring, with a Padé approximant of degree 13.

    N. J. Higham, Functions of Matrices, SIAM 2008, algorithm 10.20. Each matrix of a batch has its
    own scale. All elements are NaN where one is not finite. float32 is computed in float64.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], pt.linalg.expm(x))([[0.0, 1.0], [0.0, 0.0]]).round(12)
    array([[1., 1.],
           [0., 1.]])
    """
    (a,) = as_float(a)
    n = checked_size(a, "expected a square matrix")
    # The sizes are read after their check.
    matrices = flat(a)[:, :n]
    valid, x = finite(matrices.astype("float64"))
    sums = pt.concatenate([pt.abs(x).sum(axis=1), pt.zeros((x.shape[0], 1))], axis=1)
    norm = sums.max(axis=1)
    squarings = pt.ceil(pt.log2(pt.maximum(norm / _RADIUS, 1.0)))
    squarings = pt.clip(squarings, 0.0, float(_SQUARINGS))[:, None, None]
    numerator, denominator = _pade(x * 0.5**squarings, n)
    if a.type.ndim == 2:
        # One matrix is eliminated by blocks, a batch column by column.
        approximant = pt.linalg.solve(denominator[0], numerator[0], b_ndim=2)[None]
    else:
        approximant = pt.linalg.solve(denominator, numerator, b_ndim=2)

    def step(k: TensorVariable, x: TensorVariable, count: TensorVariable) -> list[TensorVariable]:
        return [pt.switch(pt.lt(k, count), pt.matmul(x, x), x)]

    counts = pt.concatenate([squarings[:, 0, 0], pt.zeros((1,))])
    n_steps = counts.max().astype("int64")
    (result,) = iterate(
        step, [approximant], [squarings], n_steps=n_steps, sequences=[pt.arange(n_steps)]
    )
    result = (result + valid).astype(a.type.dtype)
    return unflat(result, a, n, n)


def _pade(x: TensorVariable, n: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return both parts of the diagonal Padé approximant of degree 13 of the exponential."""
    b = _PADE
    identity = pt.eq(pt.arange(n)[:, None], pt.arange(n)[None, :]).astype("float64")
    x2 = pt.matmul(x, x)
    x4 = pt.matmul(x2, x2)
    x6 = pt.matmul(x4, x2)

    def half(k: int) -> TensorVariable:
        high = pt.matmul(x6, b[k + 12] * x6 + b[k + 10] * x4 + b[k + 8] * x2)
        return high + b[k + 6] * x6 + b[k + 4] * x4 + b[k + 2] * x2 + b[k] * identity

    even, odd = half(0), pt.matmul(x, half(1))
    return even + odd, even - odd
