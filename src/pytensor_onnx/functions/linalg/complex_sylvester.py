"""Sylvester's equation of complex triangular matrices, by real and imaginary parts."""

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex_numbers.parts import Parts, extent, quotient
from pytensor_onnx.functions.linalg.batches import diagonals, flat, unflat
from pytensor_onnx.functions.linalg.blocks import checked_size
from pytensor_onnx.functions.linalg.scaling import finite, power_of_two
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.complex_matrices import SylvesterOfParts

_EPS = np.finfo("float64").eps


@define(SylvesterOfParts, own_signature)
def triangular_sylvester(
    a_real: TensorVariable,
    a_imag: TensorVariable,
    b_real: TensorVariable,
    b_imag: TensorVariable,
    c_real: TensorVariable,
    c_imag: TensorVariable,
) -> list[TensorVariable]:
    """Parts of the solution of ``A @ X + X @ B = C`` for upper triangular matrices A and B.

    Each step finds one more diagonal of X, from the lower left corner on. All elements are NaN
    where an eigenvalue of A and one of -B are equal up to rounding errors, so that there is no
    solution or more than one; LAPACK changes the eigenvalues there. complex64 is computed in
    float64.

    Examples
    --------
    >>> import pytensor
    >>> a, b, c = (pt.zmatrix(name) for name in "abc")
    >>> solve = pytensor.function([a, b, c], pt.linalg.solve_sylvester(a, b, c), mode="ONNX")
    >>> solve([[1j, 2.0], [0.0, 1.0]], [[1.0]], [[1 + 1j], [0.0]]).round(6)
    array([[1.+0.j],
           [0.+0.j]])
    """
    like, dtype = c_real, c_real.type.dtype
    m = checked_size(a_real, "expected square matrix")
    n = checked_size(b_real, "expected square matrix")
    fits = pt.eq(like.shape[-2], m) & pt.eq(like.shape[-1], n)
    m = CheckAndRaise(ValueError, "incompatible dimensions")(m, fits)
    valid, (ar, ai, br, bi) = _finite(a_real, a_imag, b_real, b_imag)
    batch = ar.shape[0]
    both = [*(x.reshape((batch, 1, m * m)) for x in (ar, ai))]
    both += [*(x.reshape((batch, 1, n * n)) for x in (br, bi))]
    scale = power_of_two(pt.concatenate(both, axis=2), axis=(1, 2))
    a, b = (Parts(*(pt.triu(x * scale) for x in parts)) for parts in ((ar, ai), (br, bi)))
    c = Parts(*(flat(x).astype("float64") for x in (c_real, c_imag)))
    rows, columns = (Parts(*(diagonals(x) for x in parts)) for parts in (a, b))
    sums = rows[:, :, None] + columns[:, None, :]
    one = Parts(pt.ones_like(sums.real), pt.zeros_like(sums.real))
    x = _by_diagonals(a, b, c, quotient(one, sums), m, n)
    is_regular = pt.gt(extent(sums), _EPS).all(axis=(1, 2))
    valid += pt.switch(is_regular, 0.0, np.nan)[:, None, None]
    return [unflat((part * scale + valid).astype(dtype), like, m, n) for part in x]


def _finite(*operands: TensorVariable) -> tuple[TensorVariable, list[TensorVariable]]:
    """Return a summand of the results, and the operands in float64 without other elements."""
    found = [finite(flat(x).astype("float64")) for x in operands]
    return sum(valid for valid, _ in found), [x for _, x in found]


def _by_diagonals(
    a: Parts, b: Parts, c: Parts, inverse: Parts, m: TensorVariable, n: TensorVariable
) -> Parts:
    """Return the solution, where elements are multiplied by ``inverse`` when all others are found.

    Diagonals have the numbers 0, 1, 2, …, from the lower left corner on.
    """
    number = m - 1 - pt.arange(m)[:, None] + pt.arange(n)

    def step(k: TensorVariable, *parts: TensorVariable) -> list[TensorVariable]:
        *states, number = parts
        x, rest, a, b, inverse = (Parts(*states[i : i + 2]) for i in range(0, 10, 2))
        is_here = pt.eq(number, k)
        found = Parts(*(pt.switch(is_here, part, 0.0) for part in rest * inverse))
        return [*(x + found), *(rest - a @ found - found @ b)]

    count = pt.maximum(m + n - 1, 0)
    start = Parts(pt.zeros_like(c.real), pt.zeros_like(c.imag))
    found = iterate(
        step,
        [*start, *c],
        [*a, *b, *inverse, number],
        n_steps=count,
        sequences=[pt.arange(count)],
    )
    return Parts(*found[:2])
