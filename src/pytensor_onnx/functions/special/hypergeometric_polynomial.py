"""Hypergeometric functions that are polynomials, by a recurrence over the degree."""

import math

import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.special.arithmetic import constant

_DEGREE = 1000
# A value so much smaller than that of the degree below is next to a root.
_SMALL = 1 / 16


def hypergeometric_polynomial(
    n: TensorVariable, b: TensorVariable, c: TensorVariable, z: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the hypergeometric function for ``a = -n``, and where it has lost digits.

    NaN for degrees of 1,000 and more. The recurrence is stable for positive `c` and ``z < 1``, but
    for values next to roots.
    """
    is_known = n < constant(n, _DEGREE)
    is_other = (c < constant(c, 0.0)) | (z > constant(z, 1.0))
    zero = constant(n, 0.0)
    value, before = _by_recurrence(pt.switch(is_known & (c > zero), n, zero), b, c, z)
    is_lost = is_other | (pt.abs(value) < constant(z, _SMALL) * pt.abs(before))
    return pt.switch(is_known, value, constant(n, math.nan)), is_lost & is_known & (n > zero)


def _by_recurrence(
    n: TensorVariable, b: TensorVariable, c: TensorVariable, z: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Follow the recurrence over the first parameter (DLMF 15.5.11) to the degrees n and n - 1."""

    def step(
        k: TensorVariable,
        before: TensorVariable,
        value: TensorVariable,
        n: TensorVariable,
        b: TensorVariable,
        c: TensorVariable,
        z: TensorVariable,
    ) -> tuple:
        one = constant(k, 1.0)
        change = k * (one - z) * (value - before)
        following = value + (change - b * z * value) / (c + k)
        is_before = k < n
        before, value = pt.switch(is_before, value, before), pt.switch(is_before, following, value)
        return (k + one, before, value), until(pt.all(k + one >= n))

    start = pt.ones_like(z)
    _, before, value = iterate(
        step, [constant(z, 0.0), start, start], [n, b, c, z], n_steps=_DEGREE
    )
    return value, before
