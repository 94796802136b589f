"""The Gaussian hypergeometric function of real arguments.

Polynomials are computed by themselves (`hypergeometric_polynomial`). The expansion around one
serves next to one and far below zero (`hypergeometric_connection`). Elsewhere, and where a
difference of parameters is an integer or nearly so, the differential equation is followed from zero
to the argument (`hypergeometric_equation`). Where terms of both signs cancel for negative `c`, and
next to roots of polynomials, sums in twice the precision serve (`hypergeometric_sums`).
"""

import math

import pytensor.tensor as pt
from pytensor.scalar.math import Hyp2F1
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import add_with_error, constant, split_rows
from pytensor_onnx.functions.special.hypergeometric_connection import (
    Rounded,
    by_expansion_around_one,
)
from pytensor_onnx.functions.special.hypergeometric_equation import (
    Parameters,
    Place,
    follow_equation,
    largest_product,
)
from pytensor_onnx.functions.special.hypergeometric_polynomial import hypergeometric_polynomial
from pytensor_onnx.functions.special.hypergeometric_sums import LAST, by_sums
from pytensor_onnx.functions.special.power import (
    log_of_normal_with_rest,
    power_of_logarithm,
)
from pytensor_onnx.functions.special.wide_evaluation import in_float64, of_few

# Beyond them terms cancel so much that the result has too few digits.
_NEGATIVE, _PRODUCT = 5.0, 2500.0
# Where the expansion around one serves, up to a size of parameters and from a distance of their
# difference to integers on, unless terms cancel by more than a factor. For negative `c` the
# series in twice the precision loses less, where it converges, and steps along the equation more.
_FAR, _NEAR, _MODEST, _BETWEEN = -1.0, 0.5, 200.0, 2.0**-30
_NEXT, _LOSS, _FAR_LOSS = 1 / 128, 50.0, 1000.0


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
    to terms of one sign. NaN where many digits would cancel: for parameters beyond about 20, or 5
    for ``z < -9``, if ``c`` is negative, and where terms have both signs and parameters are beyond
    about 50, unless the function is a polynomial; and for polynomials of degrees of 1,000 and more.
    """
    zero, one, nan = (constant(z, n) for n in (0.0, 1.0, math.nan))
    is_first, is_second = _is_pole(a), _is_pole(b)
    is_polynomial = is_first | is_second
    swaps = is_second & ~(is_first & (a > b))
    a, b = pt.switch(swaps, b, a), pt.switch(swaps, a, b)
    is_pole, is_above = _is_pole(c), z > one
    is_infinite = is_pole & ~(is_polynomial & (a >= c))
    is_infinite = is_infinite | (~is_polynomial & is_above)

    # A polynomial after Euler's transformation, of a lower degree, or else the parameters here.
    a_rest, b_rest = c - a, c - b
    is_first, is_second = _is_pole(a_rest), _is_pole(b_rest)
    by_euler = (is_first | is_second) & ~is_pole & (z < one)
    # A recurrence to the higher one of two degrees would cancel.
    is_first = is_first & ~(is_second & (b_rest > a_rest))
    degree, other = pt.switch(is_first, a - c, b - c), pt.switch(is_first, b_rest, a_rest)
    by_euler = by_euler & ~(is_polynomial & (-a <= degree))
    degree, other = pt.switch(by_euler, degree, -a), pt.switch(by_euler, other, b)
    is_finite = pt.abs(a) + pt.abs(b) + pt.abs(c) + pt.abs(z) < constant(z, math.inf)
    is_regular = is_finite & ~is_infinite
    is_polynomial_here = is_polynomial | by_euler
    is_short = is_polynomial_here & is_regular
    is_long = is_regular & ~is_polynomial_here
    polynomial, has_roots = hypergeometric_polynomial(
        pt.switch(is_short, degree, zero), other, c, z
    )

    base = one - pt.minimum(z, one)
    scaled = base * constant(z, 2.0**-60)
    logarithm, rest = log_of_normal_with_rest(scaled, constant(z, 60.0))
    of = Parameters(a, b, c)
    value, exponent = _by_expansion(of, z, logarithm, rest, is_long)
    is_left, loss = is_long & pt.isnan(value), pt.zeros_like(value)
    value, exponent, loss = of_few(
        is_left, _by_equation, [value, exponent, loss], [of, z, logarithm]
    )
    value, exponent = pt.switch(is_short, polynomial, value), pt.switch(is_short, zero, exponent)
    is_lost = (is_short & has_roots) | (is_long & (loss > constant(z, _LOSS)))
    first, second = pt.switch(is_short, -degree, a), pt.switch(is_short, other, b)
    value, exponent = of_few(
        is_lost, by_sums, [value, exponent], [first, second, c, z, is_short], as_rows=True
    )
    exponent = pt.switch(by_euler, exponent + (c - a - b), exponent)
    # The factor in two parts, of which none vanishes before the result does.
    half = constant(z, 0.5) * exponent
    root = power_of_logarithm(half, logarithm, rest)
    root = pt.switch(pt.eq(base, zero), pt.pow(zero, half), root)
    # What overflows on the way may have a finite product.
    is_lost = pt.isinf(value) & (root < one)
    value = pt.switch(is_lost, nan, value * root * root)
    value = pt.switch(is_infinite & ~pt.isnan(z), constant(z, math.inf), value)
    return pt.switch(is_finite & pt.eq(z, zero), one, value)


def _is_pole(x: TensorVariable) -> TensorVariable:
    """Tell integers that are not positive."""
    return pt.eq(x, pt.minimum(pt.round(x), constant(x, 0.0)))


def _by_expansion(
    of: Parameters,
    z: TensorVariable,
    logarithm: TensorVariable,
    log_rest: TensorVariable,
    is_wanted: TensorVariable,
) -> tuple[TensorVariable, TensorVariable]:
    """Return a function and the exponent of ``1 - z`` in the factor before it.

    They serve next to one and far below zero, where a difference of parameters is no integer nor
    nearly so. Elsewhere, and where terms cancel, the function is NaN.

    Parameters
    ----------
    of, z
        Parameters and argument.
    logarithm, log_rest
        The logarithm of ``1 - z`` in two parts.
    is_wanted
        Where neither a polynomial nor an infinity is the result.
    """
    a, b, c = of
    zero, one = constant(z, 0.0), constant(z, 1.0)
    is_far, rest = z <= constant(z, _FAR), one - z
    a_rest, error = add_with_error(c, -a)
    d = pt.switch(is_far, b - a, (a_rest - b) + error)
    exponent = pt.switch(is_far, -pt.switch(d < zero, b, a), pt.minimum(d, zero))
    # At one itself only the part remains that does not depend on the difference.
    is_end = pt.eq(rest, zero) & (d > zero)
    is_near = (rest > zero) & (rest < constant(z, _NEAR))
    is_modest = pt.abs(a) + pt.abs(b) + pt.abs(c) < constant(z, _MODEST)
    is_between = pt.abs(d - pt.round(d)) > constant(d, _BETWEEN)
    is_wanted = is_wanted & (is_end | (is_far | is_near) & is_between) & is_modest
    nan = pt.full_like(z, math.nan)
    operands = [of, d, z, logarithm, log_rest]
    [value] = of_few(is_wanted, _expanded, [nan], operands, as_rows=True)
    return value, exponent


def _expanded(
    _: TensorVariable,
    of: Parameters,
    d: TensorVariable,
    z: TensorVariable,
    logarithm: TensorVariable,
    log_rest: TensorVariable,
) -> list[TensorVariable]:
    """Return the function by the expansion around one, NaN where terms cancel."""
    zero, one = constant(z, 0.0), constant(z, 1.0)
    is_far, swaps, rest = z <= constant(z, _FAR), d < zero, one - z
    a, b = _with_complement(of.a, of.c, swaps), _with_complement(of.b, of.c, is_far ^ swaps)
    w = pt.switch(is_far, one / rest, rest)
    size = pt.abs(d)
    power = power_of_logarithm(pt.switch(is_far, -size, size), logarithm, log_rest)
    value, loss = by_expansion_around_one(a, b, of.c, size, w, power)
    # Steps along the equation lose more the farther they go, and nothing next to integers.
    most = pt.clip(constant(z, -10.0) * z, constant(z, _LOSS), constant(z, _FAR_LOSS))
    is_next = pt.abs(d - pt.round(d)) < constant(d, _NEXT)
    most = pt.switch(is_next, constant(z, _LOSS), most)
    return [pt.switch(loss < most, value, constant(z, math.nan))]


def _with_complement(a: TensorVariable, c: TensorVariable, swaps: TensorVariable) -> Rounded:
    """Return rows of ``a`` and ``c - a``, in this order or the other, and their errors."""
    rest, error = add_with_error(c, -a)
    none = pt.zeros_like(a)
    return Rounded(
        pt.switch(swaps, pt.concatenate([rest, a]), pt.concatenate([a, rest])),
        pt.switch(swaps, pt.concatenate([error, none]), pt.concatenate([none, error])),
    )


def _by_equation(
    _: TensorVariable,
    __: TensorVariable,
    ___: TensorVariable,
    of: Parameters,
    z: TensorVariable,
    logarithm: TensorVariable,
) -> list[TensorVariable]:
    """Return a function, the exponent of ``1 - z`` in the factor before it, and the loss.

    The loss is the factor by which terms cancel where `by_sums` loses less, and else zero. The
    logarithm is that of ``1 - z``.
    """
    a, b, c = of
    zero, one = constant(z, 0.0), constant(z, 1.0)
    largest = pt.maximum(pt.maximum(pt.abs(a), pt.abs(b)), -c)
    is_negative = z < zero
    swaps = is_negative & (pt.abs(a) > pt.abs(b))
    a, b = pt.switch(swaps, b, a), pt.switch(swaps, a, b)
    rest = one - z
    w = pt.switch(is_negative, one / rest, rest)
    logarithm = pt.switch(is_negative, -logarithm, logarithm)
    exponent = pt.switch(is_negative, a, zero)
    z = pt.switch(is_negative, -z * w, z)
    b = pt.switch(is_negative, c - b, b)

    d = c - a - b
    products = largest_product(pt.stack([a, c - a]), pt.stack([b, c - b]))
    product, turned = split_rows(products, 2)
    turns = (product > pt.maximum(c, one)) & ((c - a) * (c - b) >= zero) & (c > zero)
    turns = turns & ((pt.abs(d * logarithm) < constant(d, 500.0)) | (d < zero))
    a, b = pt.switch(turns, c - a, a), pt.switch(turns, c - b, b)
    exponent = pt.switch(turns, exponent + d, exponent)
    d = pt.switch(turns, -d, d)

    product = pt.switch(turns, turned, product)
    is_near = (c < zero) & (z <= constant(z, LAST))
    cancels = (c < zero) & ~is_near & (largest > constant(z, _NEGATIVE))
    cancels = cancels | (product > constant(z, _PRODUCT))
    z, w = pt.switch(cancels, zero, z), pt.switch(cancels, one, w)
    value, loss = follow_equation(Parameters(a, b, c), Place(z, w), logarithm, d, product)
    value = pt.switch(cancels, constant(z, math.nan), value)
    loss = pt.switch(is_near, pt.switch(cancels, constant(z, math.inf), loss), zero)
    return [value, pt.switch(is_negative, -exponent, exponent), loss]
