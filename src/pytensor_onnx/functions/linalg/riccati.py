"""The discrete algebraic Riccati equation, by doubling."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.linalg.matrix_batches import flat, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import checked_size
from pytensor_onnx.functions.linalg.scaling import finite, power_of_two
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.shape import zeros
from pytensor_onnx.ops.linalg.riccati_ops import DiscreteRiccati

# Doublings, enough for a closed loop with eigenvalues up to 1 - 1e-14.
_DOUBLINGS = 60
# The power of the closed loop below which the solution stays the same.
_VANISHING = np.float64(1e-30)
# The residual of a solution, relative to the terms of the equation.
_RESIDUAL = 1e-6


@define(DiscreteRiccati, DiscreteRiccati.gufunc_signature)
def discrete_riccati(
    a: TensorVariable, b: TensorVariable, q: TensorVariable, r: TensorVariable
) -> TensorVariable:
    """Stabilising solution of ``A' X A - X - A' X B (R + B' X B)⁻¹ B' X A + Q = 0``.

    E. K.-W. Chu, H.-Y. Fan, W.-W. Lin and C.-S. Wang, Structure-preserving algorithms for periodic
    discrete-time algebraic Riccati equations, International Journal of Control 77, 2004: each step
    squares the closed loop. One step of Newton's method, whose equation is solved by doubling too,
    corrects the solution. All elements are NaN where there is no stabilising solution, where R is
    singular, and where Q or R is not symmetric. float32 is computed in float64.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> a, b, q, r = pt.matrices("abqr")
    >>> x = pt.linalg.solve_discrete_are(a, b, q, r)
    >>> solve = compile_onnx([a, b, q, r], x, verify=False)
    >>> solve([[1.0]], [[1.0]], [[1.0]], [[1.0]]).round(6)
    array([[1.618034]])
    """
    m, n = checked_size(a, "expected square matrix"), checked_size(r, "expected square matrix")
    fits = [
        pt.eq(b.shape[-2], m),
        pt.eq(b.shape[-1], n),
        pt.eq(q.shape[-2], m),
        pt.eq(q.shape[-1], m),
    ]
    m = CheckAndRaise(ValueError, "incompatible dimensions")(m, pt.all(pt.stack(fits)))
    valid, (wide, inputs, costs, weights) = _finite([flat(x) for x in (a, b, q, r)])
    batch = wide.shape[0]
    both = [costs.reshape((batch, 1, m * m)), weights.reshape((batch, 1, n * n))]
    scale = power_of_two(pt.concatenate(both, axis=2), axis=(1, 2))
    costs, weights = costs * scale, weights * scale
    start = pt.matmul(inputs, pt.linalg.solve(weights, inputs.mT, b_ndim=2))
    x = _doubled(wide, start, costs, m)
    gain = _gain(wide, inputs, weights, x)
    closed = wide - pt.matmul(inputs, gain)
    x = _summed(closed, costs + pt.matmul(gain.mT, pt.matmul(weights, gain)))
    x = 0.5 * (x + x.mT)
    valid = valid + _checked(wide, inputs, costs, weights, x)
    return unflat((x / scale + valid).astype(a.type.dtype), a, m, m)


def _finite(
    operands: Sequence[TensorVariable],
) -> tuple[TensorVariable, list[TensorVariable]]:
    """Return a summand of the results, and the operands in float64 without other elements."""
    found = [finite(x.astype("float64")) for x in operands]
    return sum(valid for valid, _ in found), [x for _, x in found]


def _doubled(
    a: TensorVariable, g: TensorVariable, h: TensorVariable, m: TensorVariable
) -> TensorVariable:
    """Return the limit of the doubling algorithm, NaN where the closed loop does not vanish."""

    def step(
        a: TensorVariable, g: TensorVariable, h: TensorVariable
    ) -> tuple[list[TensorVariable], until]:
        identity = pt.eye(a.shape[1])
        sides = pt.concatenate([a, g], axis=2)
        solved = pt.linalg.solve(identity + pt.matmul(g, h), sides, b_ndim=2)
        first, second = solved[:, :, : a.shape[1]], solved[:, :, a.shape[1] :]
        g = g + pt.matmul(pt.matmul(a, second), a.mT)
        h = h + pt.matmul(pt.matmul(a.mT, h), first)
        a = pt.matmul(a, first)
        return [a, 0.5 * (g + g.mT), 0.5 * (h + h.mT)], until(~pt.gt(_largest(a), _VANISHING).any())

    a, _, h = iterate(step, [a, g, h], n_steps=_DOUBLINGS)
    return h + pt.switch(pt.le(_largest(a), _VANISHING), 0.0, np.nan)[:, None, None]


def _summed(a: TensorVariable, q: TensorVariable) -> TensorVariable:
    """Return the solution of ``X = A' X A + Q``, the sum of ``A'ᵏ Q Aᵏ``, by doubling."""

    def step(a: TensorVariable, x: TensorVariable) -> tuple[list[TensorVariable], until]:
        x = x + pt.matmul(pt.matmul(a.mT, x), a)
        a = pt.matmul(a, a)
        return [a, x], until(~pt.gt(_largest(a), _VANISHING).any())

    a, x = iterate(step, [a, q], n_steps=_DOUBLINGS)
    return x + pt.switch(pt.le(_largest(a), _VANISHING), 0.0, np.nan)[:, None, None]


def _gain(
    a: TensorVariable, b: TensorVariable, r: TensorVariable, x: TensorVariable
) -> TensorVariable:
    """Return the feedback ``(R + B' X B)⁻¹ B' X A``."""
    across = pt.matmul(b.mT, x)
    return pt.linalg.solve(r + pt.matmul(across, b), pt.matmul(across, a), b_ndim=2)


def _checked(
    a: TensorVariable,
    b: TensorVariable,
    q: TensorVariable,
    r: TensorVariable,
    x: TensorVariable,
) -> TensorVariable:
    """Return zero for solutions of the equation, and NaN for other matrices."""
    along = pt.matmul(pt.matmul(a.mT, x), a)
    lost = pt.matmul(pt.matmul(pt.matmul(a.mT, x), b), _gain(a, b, r, x))
    residual = _largest(along - x - lost + q)
    terms = _largest(along) + _largest(lost) + _largest(q) + _largest(x)
    skew = _largest(r - r.mT)
    fits = pt.le(residual, _RESIDUAL * terms) & pt.le(skew, _RESIDUAL * _largest(r))
    return pt.switch(fits, 0.0, np.nan)[:, None, None]


def _largest(x: TensorVariable) -> TensorVariable:
    """Return the largest magnitude of each matrix, zero if it has no elements."""
    padded = pt.concatenate([pt.abs(x), zeros((x.shape[0], 1, x.shape[2]))], axis=1)
    padded = pt.concatenate([padded, zeros((x.shape[0], x.shape[1] + 1, 1))], axis=2)
    return padded.max(axis=(1, 2))
