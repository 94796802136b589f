"""The Gaussian hypergeometric function of real arguments.

Polynomials are computed by themselves (`hypergeometric_polynomial`). The expansion around one
serves next to one and far below zero (`hypergeometric_connection`). Elsewhere, and where a
difference of parameters is an integer or nearly so, the differential equation is followed from zero
to the argument (`hypergeometric_equation`).
"""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import Hyp2F1
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import add_with_error, constant
from pytensor_onnx.functions.special.evaluation import in_float64, of_few
from pytensor_onnx.functions.special.hypergeometric_connection import by_expansion_around_one
from pytensor_onnx.functions.special.hypergeometric_equation import (
    follow_equation,
    largest_product,
)
from pytensor_onnx.functions.special.hypergeometric_polynomial import hypergeometric_polynomial
from pytensor_onnx.functions.special.power import portable_power

# Beyond them terms cancel so much that the result has too few digits.
_NEGATIVE, _PRODUCT = 5.0, 2500.0
# Where the expansion around one serves, up to a size of parameters and from a distance of their
# difference to integers on, unless terms cancel by more than a factor. For negative `c` the steps
# along the equation lose more.
_FAR, _NEAR, _MODEST, _BETWEEN = -1.0, 0.5, 200.0, 1 / 128
_LOSS, _NEGATIVE_LOSS = 16.0, 100.0


@define(Hyp2F1)
@in_float64
def hyp2f1(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, z: TensorVariable
) -> TensorVariable:
    """Compute the Gaussian hypergeometric function, in float64 for float32 too.

    Notes
    -----
    Infinite, as in SciPy, for ``z > 1`` and where ``c`` is a pole, unless the series ends before.
    Pfaff's and Euler's transformations (DLMF 15.8.1) lead to ``0 <= z <= 1``, and where possible
    to terms of one sign. NaN where many digits would cancel: for a parameter beyond 5 if ``c`` is
    negative, and where terms have both signs and parameters are beyond about 50, unless the
    function is a polynomial; and for polynomials of degrees of 1,000 and more.
    """
    zero, one = constant(z, 0.0), constant(z, 1.0)
    is_first = _is_pole(a) & (~_is_pole(b) | (a > b))
    a, b = pt.switch(is_first | ~_is_pole(b), a, b), pt.switch(is_first | ~_is_pole(b), b, a)
    is_polynomial = _is_pole(a)
    is_infinite = _is_pole(c) & ~(is_polynomial & (a >= c))
    is_infinite = is_infinite | (~is_polynomial & (z > one))

    # A polynomial after Euler's transformation, of a lower degree, or else the parameters here.
    swaps = ~_is_pole(c - a)
    by_euler = (_is_pole(c - a) | _is_pole(c - b)) & ~_is_pole(c) & (z < one)
    degree, other = pt.switch(swaps, b - c, a - c), pt.switch(swaps, c - a, c - b)
    by_euler = by_euler & ~(is_polynomial & (-a <= degree))
    degree, other = pt.switch(by_euler, degree, -a), pt.switch(by_euler, other, b)
    is_finite = pt.abs(a) + pt.abs(b) + pt.abs(c) + pt.abs(z) < constant(z, math.inf)
    is_short = (is_polynomial | by_euler) & ~is_infinite & is_finite
    polynomial = hypergeometric_polynomial(pt.switch(is_short, degree, zero), other, c, z)

    is_long = ~is_short & ~is_infinite & is_finite
    value, exponent, is_expanded = _by_expansion(a, b, c, z, is_long)
    value, exponent = of_few(is_long & ~is_expanded, _by_equation, [value, exponent], [a, b, c, z])
    value = pt.switch(is_short, polynomial, value)
    exponent = pt.switch(by_euler, c - a - b, pt.switch(is_polynomial, zero, exponent))
    # The factor in two parts, of which none vanishes before the result does.
    base, half = one - pt.minimum(z, one), constant(z, 0.5) * exponent
    root = pt.switch(pt.eq(base, zero), pt.pow(zero, half), portable_power(base, half))
    # What overflows on the way may have a finite product.
    is_lost = pt.isinf(value) & (root < one)
    value = pt.switch(is_lost, constant(z, math.nan), value * root * root)
    value = pt.switch(is_short | is_long, value, constant(z, math.nan))
    value = pt.switch(is_infinite & ~pt.isnan(z), constant(z, math.inf), value)
    return pt.switch(is_finite & pt.eq(z, zero), one, value)


def _is_pole(x: TensorVariable) -> TensorVariable:
    """Tell integers that are not positive."""
    return (x <= constant(x, 0.0)) & pt.eq(x, pt.round(x))


def _by_expansion(
    a: TensorVariable,
    b: TensorVariable,
    c: TensorVariable,
    z: TensorVariable,
    is_wanted: TensorVariable,
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return a function, the exponent of ``1 - z`` in the factor before it, and where they hold.

    They do next to one and far below zero, where a difference of parameters is no integer nor
    nearly so.
    """
    zero, one = constant(z, 0.0), constant(z, 1.0)
    is_far = z <= constant(z, _FAR)
    rest = one - z
    w = pt.switch(is_far, one / rest, rest)
    a_rest, b_rest = c - a, c - b
    _, error = add_with_error(c, -a)
    d = pt.switch(is_far, b - a, (a_rest - b) + error)
    second, second_rest = pt.switch(is_far, b_rest, b), pt.switch(is_far, b, b_rest)
    swaps = d < zero
    exponent = pt.switch(swaps, pt.switch(is_far, -b, d), pt.switch(is_far, -a, zero))
    # At one itself only the part remains that does not depend on the difference.
    is_end = pt.eq(rest, zero) & (d > zero)
    is_near = (rest > zero) & (rest < constant(z, _NEAR))
    is_modest = pt.abs(a) + pt.abs(b) + pt.abs(c) < constant(z, _MODEST)
    is_between = pt.abs(d - pt.round(d)) > constant(d, _BETWEEN)
    is_wanted = is_wanted & (is_end | (is_far | is_near) & is_between) & is_modest

    parameters = [(a, a_rest), (second, second_rest), (a_rest, a), (second_rest, second)]
    parameters = [pt.switch(swaps, other, own) for own, other in parameters]
    value, loss = of_few(
        is_wanted,
        lambda value, loss, *operands: by_expansion_around_one(*operands),
        [pt.ones_like(w), pt.zeros_like(w)],
        [*parameters, c + pt.zeros_like(w), pt.abs(d), w],
    )
    most = pt.switch(c < zero, constant(loss, _NEGATIVE_LOSS), constant(loss, _LOSS))
    return value, exponent, is_wanted & (loss < most)


def _by_equation(
    _: TensorVariable,
    __: TensorVariable,
    a: TensorVariable,
    b: TensorVariable,
    c: TensorVariable,
    z: TensorVariable,
) -> list[TensorVariable]:
    """Return a function and the exponent of ``1 - z`` in the factor before it."""
    zero, one = constant(z, 0.0), constant(z, 1.0)
    largest = pt.maximum(pt.maximum(pt.abs(a), pt.abs(b)), -c)
    cancels = (c < zero) & (largest > constant(z, _NEGATIVE))
    is_negative = z < zero
    swaps = is_negative & (pt.abs(a) > pt.abs(b))
    a, b = pt.switch(swaps, b, a), pt.switch(swaps, a, b)
    rest = one - z
    w = pt.switch(is_negative, one / rest, rest)
    exponent = pt.switch(is_negative, a, zero)
    z = pt.switch(is_negative, -z * w, z)
    b = pt.switch(is_negative, c - b, b)

    d = c - a - b
    product = largest_product(a, b)
    turns = (product > pt.maximum(c, one)) & ((c - a) * (c - b) >= zero) & (c > zero)
    turns = turns & ((pt.abs(d * pt.log(w)) < constant(d, 500.0)) | (d < zero))
    a, b = pt.switch(turns, c - a, a), pt.switch(turns, c - b, b)
    exponent = pt.switch(turns, exponent + d, exponent)
    d = pt.switch(turns, -d, d)

    product = pt.switch(turns, largest_product(a, b), product)
    cancels = cancels | (product > constant(z, _PRODUCT))
    z, w = pt.switch(cancels, zero, z), pt.switch(cancels, one, w)
    value = follow_equation(a, b, c, z, w, d, product)
    value = pt.switch(cancels, constant(z, math.nan), value)
    return [value, pt.switch(is_negative, -exponent, exponent)]
