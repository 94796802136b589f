"""Exponentials for definitions, which are equal in every bit in all runtimes.

The operator `Exp` differs between runtimes by its vector instructions. These functions consist of
operations that IEEE 754 rounds correctly and a table of powers of two (17 kB of a file in float64).
They take 7 ns an element in float64 and 12 of arrays that leave the cache, where a power takes 8,
and `Exp` 3; a single number takes 5 µs longer than by `Exp`.

Use `exp(x)` for the exponential alone. Use `times_exponential(factor, x)` for products
``factor * exp(x)`` with ``x`` within bounds: no part overflows or underflows before the product
does. Compute sums like ``exp(x) - 1`` from the two parts of `exponential`. All three accept a small
``rest`` that is added to ``x``.
"""

import math

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import constant, polynomial
from pytensor_onnx.functions.special.coefficients import REDUCED_HALF_COTH
from pytensor_onnx.ops.special.portable import half_power_of_two


def exponential(
    x: TensorVariable, rest: TensorVariable | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """Split the exponential of ``x + rest`` into an excess over one and half of a power of two.

    With ``x = k log(2) + r`` for the nearest whole ``k``, ``exp(r) - 1 = r + r c / (2 - c)``, where
    ``c = r + 2 - r coth(r/2)`` is ``r`` less a small even function.

    Parameters
    ----------
    x
        Numbers from -744 to 710, in float32 from -102.9 to 89, or NaN. The exponential of numbers
        less than that, by 2 at most, is right where it is rounded to one bit; that of greater ones,
        up to 1000, is infinite.
    rest
        Correction to ``x`` of less than a few units in its last place.

    Returns
    -------
    excess, half
        ``exp(x + rest) = 2 * half * (1 + excess)``.
    """
    k = pt.round(x * constant(x, 1 / math.log(2)))
    # Below, half of the power would be zero; one bit of the result is left.
    k = pt.maximum(k, constant(x, -1073.0, float32=-148.0))
    upper, lower = log_2(x)
    below = k * lower if rest is None else k * lower - rest
    return expm1_of_reduced((x - k * upper) - below), half_power_of_two(k)


def expm1_of_reduced(r: TensorVariable) -> TensorVariable:
    """``exp(r) - 1`` for numbers from ``-log(2) / 2`` to ``log(2) / 2``."""
    square = r * r
    c = r - square * polynomial(square, REDUCED_HALF_COTH)
    return r + r * c / (constant(r, 2.0) - c)


def times_exponential(
    factor: TensorVariable, x: TensorVariable, rest: TensorVariable | None = None
) -> TensorVariable:
    """Multiply a number by the exponential of ``x + rest``, for the numbers of `exponential`."""
    excess, half = exponential(x, rest)
    product = factor + factor * excess
    return (product + product) * half


def exp(x: TensorVariable, rest: TensorVariable | None = None) -> TensorVariable:
    """Exponential of any number and of a rest, within 1 ulp."""
    bounds = constant(x, -746.0, float32=-105.0), constant(x, 710.0, float32=89.0)
    excess, half = exponential(pt.clip(x, *bounds), rest)
    near_one = constant(x, 1.0) + excess
    return (near_one + near_one) * half


def log_2(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return ``log(2)`` as a sum of a number with some trailing zero bits and a correction."""
    return (
        constant(x, 0.6931471803691238, float32=0.693359375),
        constant(x, 1.9082149292705877e-10, float32=-2.12194440e-4),
    )
